"""A training that is tried for some steps: what `tradewind verify` asks of it, and what it writes.

The environment names a file with the plan: where checkpoints go, after which step the state is
saved, and where the process is killed, asked to end, or done. After each step a line is written:
what the weights, the random numbers, the learning rates and the metrics are, as digests; and for
each batch one, by its epoch and its place in it.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tradewind.base import clock
from tradewind.torch.feeds import contents, seeding
from tradewind.torch.sessions import claims, named

VARIABLE = "TRADEWIND_VERIFY"
WAITS = "the save waits for gradients that are partly accumulated: "
_HEARD_S = 0.4
_LOOKS = 3
"""Steps after which copies and averages are looked for, and after the last."""


class Plan(Struct):
    folder: str
    """For checkpoints, in the place of the script's own."""
    rows: str
    """The file of lines; of rank 0."""
    steps: int
    save: int = 0
    """From which step on a save is due; 0: never."""
    kill: int = 0
    """How many steps after that save."""
    notice: int = 0
    """After which step."""


class Row(Struct, omit_defaults=True):
    step: int = 0
    epoch: int = 0
    index: int = -1
    """Of a batch; then there is only `data`."""
    data: str = ""
    weights: str = ""
    beside: dict[str, str] = {}
    """Of copies and averages that the session does not hold."""
    optimizers: str = ""
    numbers: dict[str, str] = {}
    """Of each generator."""
    rates: list[float] = []
    metrics: dict[str, float] = {}


def plan() -> Plan | None:
    path = os.environ.get(VARIABLE)
    return json.decode(Path(path).read_bytes(), type=Plan) if path else None


def begun(asked: Plan, rank: int, folder: Path, say: Callable[[str], None]) -> Trial | None:
    """That of the script's first session; a session beside it is not tried. What comes after the
    first is not even begun. `folder` is what the script says."""
    if not _trials:
        _trials.append(Trial(asked, rank, folder))
        return _trials[0]
    if not _trials[0].begun:
        return None
    if folder == _trials[0].folder:
        say(f"warning: {claims.continued(folder)}")
    say("the script makes another session; its first is what is tried")
    os._exit(0)


class Trial:
    """`folder` is the script's own for checkpoints."""

    def __init__(self, asked: Plan, rank: int, folder: Path) -> None:
        self.plan, self.folder = asked, folder
        self.begun = False
        """Or over, without having anything left to do."""
        self._saved_at = self._steps = 0
        self._waited = False
        self._rows = Path(asked.rows) if rank == 0 else None

    def gave(self, epoch: int, index: int, batch: Any) -> None:
        if self._rows is not None:
            self._write(Row(epoch=epoch, index=index, data=contents.digest(batch)))

    def made(self, step: int, parts: Any, metrics: dict[str, float], unheld: Any) -> None:
        """After everything of the step."""
        self._steps += 1
        self.begun = True
        if self._rows is not None:
            rates = [
                float(g["lr"])
                for o in parts.optimizers.values()
                for g in o.param_groups
                if "lr" in g
            ]
            self._write(
                Row(
                    step=step,
                    weights=_bits(_weights(parts)),
                    optimizers=_bits(_of_optimizers(parts)),
                    beside=unheld.beside(anew=self._steps <= _LOOKS or step == self.plan.steps),
                    numbers=_numbers(),
                    rates=rates,
                    metrics=metrics,
                )
            )

    def saves(self, step: int) -> bool:
        """Whether a save is due, as it is by time: it may wait for gradients to be used up."""
        return 0 < self.plan.save <= step and not self._saved_at

    def saved(self, step: int) -> None:
        self._saved_at = self._saved_at or step

    def waits(self, name: str, say: Callable[[str], None]) -> None:
        """A save does, for these gradients."""
        if not self._waited:
            self._waited = True
            say(f"{WAITS}{name}")

    def ends(self, step: int) -> None:
        """As the plan says. Done means done: what the script would still do is of no interest."""
        if self._saved_at and step == self._saved_at + self.plan.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == self.plan.notice:
            os.kill(os.getpid(), signal.SIGTERM)
            clock.sleep(_HEARD_S)  # or quick steps would all be made before anybody looks
        if step >= self.plan.steps:
            os._exit(0)

    def _write(self, row: Row) -> None:
        assert self._rows is not None
        with self._rows.open("ab") as stream:
            stream.write(json.encode(row) + b"\n")


_trials: list[Trial] = []


def _weights(parts: Any) -> list[Any]:
    return [each for key in parts.modules for each in parts.held(key, frozen=True)[0].values()]


def _of_optimizers(parts: Any) -> list[Any]:
    import torch

    return [
        value
        for optimizer in parts.optimizers.values()
        for values in optimizer.state.values()
        if isinstance(values, dict)
        for _, value in sorted(values.items(), key=lambda item: str(item[0]))
        if isinstance(value, torch.Tensor)
    ]


def _bits(tensors: list[Any]) -> str:
    """Of all of these, to the bit."""
    import torch

    sums = []
    for tensor in tensors:
        local = getattr(tensor, "_local_tensor", tensor).detach()
        if local.is_complex():
            local = torch.view_as_real(local)
        kind = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        flat = local.contiguous().view(-1).view(kind[local.element_size()])
        sums += [flat.sum(dtype=torch.int64), flat[::3].sum(dtype=torch.int64)]
    words = [int(each) for each in sums]
    return hashlib.sha256(repr(words).encode()).hexdigest()[:12]


def _numbers() -> dict[str, str]:
    state = {**seeding.captured(), **named.captured()}
    return {name: _digest(each) for name, each in state.items()}


def _digest(state: Any) -> str:
    """Of every number: that of data takes only some of a long list."""
    if isinstance(state, (list, tuple)):
        words = repr([_digest(each) for each in state]) if len(state) < 100 else repr(state)
    else:
        words = repr(state.tolist() if hasattr(state, "tolist") else state)
    return hashlib.sha256(words.encode()).hexdigest()[:12]
