"""The loop of a training, as a script writes it.

A checkpoint is taken when the loop asks for its next batch, so everything that the loop's body does
belongs to the step, wherever `session.step()` stands in it. A loop without data has no such moment:
there it is taken in `step` itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.errors import InvalidValue
from tradewind.torch.sessions.training import Training
from tradewind.torch.telemetry.tally import now_s

_UNSTEPPED = 1000


class Session(Training):
    """A training that goes on from its newest checkpoint, if there is one.

    `model`, `optimizer`, `scheduler`, `scaler` and `ema` may each be one object, a list or a table
    of them. `extra` names more objects that have state_dict and load_state_dict. With
    `frozen=False`, parameters that need no gradient are left out of checkpoints: the script loads
    them itself, as the model under adapters. `data` is an ordinary DataLoader. Checkpoints go to
    the run's store under `tradewind run`, else to `folder` (`checkpoints`). `seed` orders
    and augments the data; by default it is PyTorch's.

    Saves come as often as the run says, or `every_s` seconds or `every_steps` steps; without all
    that, every ten minutes. A bucket is sent `upload_rate` bytes a second at most, by each rank,
    but after a notice as much as it takes: then there are `grace_s` seconds. What has changed since
    the checkpoint, of the code, `config` or the data, is said; with `strict` it is an error.

    `telemetry` names who is told metrics besides the folder's files: `wandb`, `mlflow`. Those that
    the script itself has begun a run with are told anyway. False: no telemetry at all. `grad_norm`
    measures the norm of all gradients before each optimizer step."""

    _iterating = False
    _unstepped = 0
    _last_epoch: int | None = None

    @property
    def _this_epoch(self) -> int:
        """The one that is begun or gone on with: counted by the loop, and kept with the rest."""
        return self._saver.epoch

    @_this_epoch.setter
    def _this_epoch(self, number: int) -> None:
        self._saver.epoch = number

    @property
    def epoch(self) -> int:
        """The epoch of the newest batch."""
        return self._feed.epoch if self._feed is not None else 0

    @property
    def metrics(self) -> list[dict[str, float]]:
        """What `step` was told of the last thousand steps or so, as far as it is read yet."""
        return list(self._teller.rows)

    def batches(self, max_steps: int | None = None, *, epochs: int | None = None) -> Iterator[Any]:
        """Batches from where the training is: until so many steps are made or so many epochs are
        over, in all; without either, until the end of this epoch (see `epochs`). A training that
        is done gets none. At its end the last state is saved."""
        if self._feed is None:
            raise InvalidValue("the session has no data", hint="give it a loader: data=loader")
        feed, this_epoch = self._feed, self._this_epoch
        whole = max_steps is not None or epochs is not None
        last_epoch = self._last_epoch if not whole else None if epochs is None else epochs - 1
        waited = self.tally.waited
        self._iterating = True
        try:
            if max_steps is None or self.step_number < max_steps:
                feed.open(last_epoch)
                self.settle()
            while max_steps is None or self.step_number < max_steps:
                from_s = now_s()
                try:
                    batch = feed.next(None if whole else this_epoch)
                except StopIteration:
                    break
                waited(from_s, batch)
                self._unstepped += 1
                if whole:
                    self._this_epoch = feed.epoch
                yield batch
                self.between()
                if self._unstepped == _UNSTEPPED:
                    self._voice.warn(
                        f"{_UNSTEPPED} batches without session.step(): nothing is saved or told"
                    )
        finally:
            self._iterating = False
            if whole:
                feed.close()
        if whole:
            self.save_last()
        else:
            self._this_epoch = this_epoch + 1

    def epochs(self, number: int) -> Iterator[int]:
        """The numbers of the epochs that are left of so many, for loops that do something between
        them: in each, `batches()` gives the rest of that epoch."""
        self._last_epoch = number - 1
        while (epoch := self._this_epoch) < number:
            yield epoch
            self._this_epoch = epoch + 1
        if self._feed is not None:
            self._feed.close()
        self.save_last()

    def step(self, **values: Any) -> None:
        """A step is made; on every rank, as often. Values are kept as metrics of rank 0: tensors
        stay where they are, and nothing waits for them. `tokens` is how many of them this step had
        on this rank, where that cannot be seen in its batch."""
        self._unstepped = 0
        self.made(values)
        if not self._iterating:
            self.between()
