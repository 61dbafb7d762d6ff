"""A model and its optimizer, spread as a layout says; and a step of training with them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.strategies import batches
from tradewind.torch.strategies.clip import clip as clipped
from tradewind.torch.strategies.layout import Layout
from tradewind.torch.strategies.passes import Tools


class Prepared:
    """What `prepare` gives. Give `model`, `optimizer`, `scaler` and `extra` to `tw.session`, or let
    `session(…)` do so."""

    def __init__(
        self,
        *,
        layout: Layout,
        device: Any,
        tools: Tools,
        passes: Any,
        optimizer: Any,
        extra: dict[str, Any],
        alike: bool,
        rank: int,
    ) -> None:
        self.layout, self.device, self.extra = layout, device, extra
        self.model, self.optimizer, self.scaler = tools.model, optimizer, tools.scaler
        """`scaler` is None where none is needed."""
        self._tools, self._passes = tools, passes
        self._alike, self.rank = alike, rank

    @property
    def batch_size(self) -> int | None:
        """Samples for a step on this rank, as the layout has it: a DataLoader's `batch_size`."""
        return self.layout.batch_size

    @property
    def micro_batch(self) -> int | None:
        """How many of them go through the model at once; None: all."""
        return self._tools.memory.micro

    def autocast(self) -> AbstractContextManager[Any]:
        """For passes of your own, such as an evaluation's."""
        return self._tools.autocast()

    def step(self, batch: Any, *, clip: float | None = None) -> Any:
        """One step of the optimizer with the batch of this rank, in micro-batches; gives the mean
        loss of its samples. `clip` limits the norm of the gradients."""
        if self.optimizer is None:
            raise InvalidValue(
                "there is no optimizer to make a step", hint="prepare(model, optimizer, …)"
            )
        loss = self._passes.run(batches.moved(batch, self.device))
        self._say(self._tools.memory)
        if self.scaler is not None and clip is not None:
            self.scaler.unscale_(self.optimizer)
        if clip is not None:
            clipped(self.model, clip, stages=self.layout.pp, alike=self._alike)
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def session(self, **more: Any) -> Any:
        """`tw.session` of all that this consists of, and what else it is given."""
        from tradewind.torch.sessions.session import Session

        extra = {**self.extra, **(more.pop("extra", None) or {})}
        return Session(
            model=self.model, optimizer=self.optimizer, scaler=self.scaler, extra=extra, **more
        )

    def _say(self, memory: Any) -> None:
        if memory.said and self.rank == 0:
            memory.keep()
            with suppress(OSError):
                os.write(2, f"tradewind.torch: {memory.said}\n".encode())
        memory.said = ""
