"""The loop of a training, as a script writes it.

A checkpoint is taken when the loop asks for its next batch, so everything that the loop's body does
belongs to the step, wherever `session.step()` stands in it. A loop that fetches ahead asks in the
middle of a step, and one without data or `steps` has no such moment: there it is taken in `step`
itself, which then has to be the last line of the body.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from threading import get_ident
from types import FrameType
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions import draws, environments, unheld
from tradewind.torch.sessions.again import Again
from tradewind.torch.sessions.draws import Draws
from tradewind.torch.sessions.loops import inside, taker, zipped
from tradewind.torch.sessions.restoring import Back
from tradewind.torch.sessions.script import Script, Watch
from tradewind.torch.sessions.second import Second
from tradewind.torch.sessions.training import Training
from tradewind.torch.sessions.variables import Variables
from tradewind.torch.telemetry.tally import now_s

_UNSTEPPED = 1000


class Session(Training):
    """A training that goes on from its newest checkpoint, if there is one.

    `model`, `optimizer`, `scheduler`, `scaler` and `ema` may each be one object, a list or a table
    of them. A scheduler, a gradient scaler or an AveragedModel that exists and was not given is
    taken too. `extra` names more objects that have state_dict and load_state_dict. With
    `frozen=False`, parameters that need no gradient are left out of checkpoints: the script loads
    them itself, as the model under adapters. `data` is an ordinary DataLoader. Checkpoints go to
    the run's store under `tradewind run`, else to `folder` (`checkpoints`). `seed` orders
    and augments the data; by default it is PyTorch's.

    Saves come as often as the run says, or `every_s` seconds or `every_steps` steps; without all
    that, after the first minute, then more and more rarely, until it is every ten minutes. A bucket
    is sent `upload_rate` bytes a second at most, by each rank, but after a notice as much as it
    takes: then there are `grace_s` seconds. What has changed since the checkpoint, of the code,
    `config`, the data or the script's own variables, is said; with `strict` it is an error.

    `telemetry` names who is told metrics besides the folder's files: `wandb`, `mlflow`. Those that
    the script itself has begun a run with are told anyway. False: no telemetry at all. `grad_norm`
    measures the norm of all gradients before each optimizer step."""

    _takes = True
    _iterating = False
    _last_epoch: int | None = None
    _counted = False  # by `epochs`
    _asked_epoch = False

    def _after(self, given: list[Any]) -> None:
        self._variables = Variables()
        self._seconds: list[Second] = []
        self._kept_streams: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        self._unheld = unheld.Unheld(
            self._parts,
            lambda: self.step_number,
            self._voice.warn,
            first=self._around.rank == 0,
            data=[given[2]],
            refuses=not self.resumed,
            strict=self._strict,
            kept=lambda: [self._variables.values],
        )
        self._unheld.begun = self._feed is None
        parts = self._parts
        held = [parts.modules, parts.optimizers, parts.others, parts.each, parts.powersgd]
        mine = [*given, *(each for table in held for each in table.values()), self]
        mine.append(self._variables.values)
        script = Script(mine, parts.modules, parts.optimizers, given[2])
        self._watch_script = Watch(script, self._voice.warn_once, strict=self._strict)
        modules = list(parts.modules.values())
        # The outermost: inside a compiled one, a hook would be compiled too.
        self._draws = Draws(modules[0], self._voice.warn_once) if self._unread(modules) else None
        self._index = 0
        """How many batches of this epoch were given."""
        self._index_epoch = self._feed.epoch if self._feed is not None else 0
        self._over = self._this_epoch if self.resumed else 0
        """Epochs that are over, which a loop that begins at 0 again is given nothing for."""
        self._again = Again(self._parts) if self._over else None
        self._random = draws.now() if self.resumed else ""
        if self._back is not None:
            self._go_on_with(self._back)

    def _unread(self, modules: list[Any]) -> bool:
        """Whether the script has its batches from elsewhere."""
        return self._feed is None and bool(modules)

    def _go_on_with(self, back: Back) -> None:
        shared, mine = back.shared, back.mine
        if self._draws is not None:
            self._draws.goes_on(shared.get("draws"))
        index, epoch = shared.get("index") or [0, self._index_epoch]
        if epoch == self._index_epoch:
            # With other ranks, about as far: batches are of another size.
            self._index = index * back.world // self._around.world
        self._variables.load_state_dict(shared.get("variables") or {})
        streams = shared.get("streams") or []
        mine_of = mine.get("streams") if mine is not None else None
        self._kept_streams = list(zip(streams, mine_of or [None] * len(streams), strict=True))
        if back.world == self._around.world:
            self._pace.restore(shared.get("pace") or {})
            self._watch_script.goes_on(shared.get("script") or {})

    def _where(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        mark = self._pace.mark()
        return super()._where() if mark is None else mark[:2]

    def _mark(self) -> tuple[Any, ...]:
        return (*super()._where(), [self._index, self._index_epoch])

    def _more(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._unheld.look()
        mark = self._pace.mark()
        return {
            "index": [self._index, self._index_epoch] if mark is None else mark[2],
            "pace": self._pace.state(),
            "script": self._watch_script.state(self._bases()),
            "variables": self._variables.state_dict(),
            "draws": self._draws.state() if self._draws is not None else None,
            "streams": [each.shared() for each in self._seconds],
        }, {"streams": [each.mine() for each in self._seconds]}

    def _end(self, words_s: float) -> None:
        self._unheld.close()
        if self._draws is not None:
            self._draws.close()
        for each in self._seconds:
            each.close()
        super()._end(words_s)

    # -- where it is -------------------------------------------------------------------------------

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
        self._asked_epoch = True
        return self._feed.epoch if self._feed is not None else self._this_epoch

    @property
    def metrics(self) -> list[dict[str, float]]:
        """What `step` was told of the last thousand steps or so, as far as it is read yet."""
        return list(self._teller.rows)

    # -- loops -------------------------------------------------------------------------------------

    def batches(self, max_steps: int | None = None, *, epochs: int | None = None) -> Iterator[Any]:
        """Batches from where the training is: until so many steps are made or so many epochs are
        over, in all; without either, until the end of this epoch (see `epochs`). A training that
        is done gets none. At its end the last state is saved."""
        return self._goes_out(each for _, each in self._given(max_steps, epochs))

    def enumerate(
        self, max_steps: int | None = None, *, epochs: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """As `batches`, with the number of each batch in its epoch: what `enumerate(loader)`
        counts, and a training that goes on goes on with."""
        return self._goes_out(self._given(max_steps, epochs))

    def _goes_out(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What the script has is known, so that it is seen what it is zipped with."""
        self._out = weakref.ref(batches)
        return batches

    def _given(self, max_steps: int | None, epochs: int | None) -> Iterator[tuple[int, Any]]:
        if self._feed is None:
            raise InvalidValue("the session has no data", hint="give it a loader: data=loader")
        whole = max_steps is not None or epochs is not None
        if not whole and self._is_over():
            return
        feed, this_epoch = self._feed, self._this_epoch
        last_epoch = self._last_epoch if not whole else None if epochs is None else epochs - 1
        waited, pace, given = self.tally.waited, self._pace, 0
        within = None if whole else this_epoch
        self._iterating = True
        try:
            if self._wanted(max_steps):
                with unheld.reading:
                    feed.open(last_epoch)
                self._reader = get_ident()
                self._begin(within_epoch=not whole)
            while self._wanted(max_steps):
                from_s = now_s()
                if pace.ahead is None:
                    self._taker = taker()
                pace.gave(self._mark)
                unheld.reading.depth += 1
                try:
                    batch = feed.next(within)
                except StopIteration:
                    pace.took_back()
                    break
                finally:
                    unheld.reading.depth -= 1
                waited(from_s, batch)
                given += 1
                self._count()
                if self._trial is not None:
                    self._trial.gave(self._index_epoch, self._index - 1, batch)
                if whole:
                    self._this_epoch = feed.epoch
                yield self._index - 1, batch
                self._asks()
        finally:
            self._iterating = False
            if whole:
                feed.close()
        if whole:
            self._remind(given, max_steps, epochs)
            self.save_last()
        else:
            self._this_epoch = this_epoch + 1

    def steps(self, number: int) -> Iterator[int]:
        """For loops without a loader: the numbers, from 0, of the steps that are left of so many.
        `session.step()` is called in each."""
        if self._feed is not None:
            raise InvalidValue("the session has data", hint="iterate session.batches(…)")
        self._iterating = True
        first, without = self.step_number, 0
        try:
            self._begin()
            while self.step_number < number:
                before = self.step_number
                yield before
                if self.step_number > before:
                    without = 0
                    self.between()
                    continue
                without += 1  # one that is left out, for a loss that is no number
                if before == first or without == _UNSTEPPED:
                    raise InvalidValue(
                        "the body of session.steps(…) made no step",
                        hint="call session.step() in it",
                    )
        finally:
            self._iterating = False
        self.save_last()

    def epochs(self, number: int) -> Iterator[int]:
        """The numbers of the epochs that are left of so many, for loops that do something between
        them: in each, `batches()` gives the rest of that epoch."""
        self._last_epoch, self._counted = number - 1, True
        while (epoch := self._this_epoch) < number:
            yield epoch
            self._this_epoch = epoch + 1
        if self._feed is not None:
            self._feed.close()
        self.save_last()

    def stream(self, loader: Any) -> Iterator[Any]:
        """A second loader, for ever: when its epoch is over, the next begins. What `next` takes in
        a step belongs to the step, and a training that goes on goes on with it. To be called before
        the loop, and in the same order each time."""
        kept = self._kept_streams
        number = len(self._seconds)
        second = Second(loader, self._seed, number, self._around, kept[number : number + 1])
        for words in second.said:
            self._voice.warn_once(words)
        self._seconds.append(second)
        self._unheld.data.append(loader)
        return second

    def variables(self, **defaults: Any) -> Any:
        """Variables of the script's own that checkpoints hold: numbers, texts, lists and tensors.
        They are attributes of what comes back, with these values at the very first."""
        return self._variables.declared(defaults)

    def step(self, **values: Any) -> None:
        """A step is made; on every rank, as often. Values are kept as metrics of rank 0: tensors
        stay where they are, and nothing waits for them. `tokens` is how many of them this step had
        on this rank, where that cannot be seen in its batch."""
        if self._pace.ahead is None:
            self._learn()
        else:
            self._pace.made()
        self.made(values)
        if self._draws is not None:
            self._draws.made()
        if not self._iterating:
            self._begun_alone()
            self.between()
        elif self._pace.ahead:
            self._noted = self._moved()
            self.between()

    _out: weakref.ref[Any] | None = None
    _taker: FrameType | None = None
    _reader = 0
    """The thread that reads batches."""

    def _learn(self) -> None:
        """Whether the loop fetches ahead."""
        if self._reader not in (0, get_ident()):
            raise InvalidValue(
                "session.batches() is read by another thread than the one that calls"
                " session.step(): which batches are consumed cannot be known",
                hint="read it in the loop; num_workers=… of the loader reads ahead, and so may a"
                " class of your own around the loader (data=…)",
            )
        if inside(self._taker):
            self._pace.plain()
        self._taker = None
        self._pace.made()
        if self._pace.ahead:
            self._voice.say(
                f"the loop fetches its batches {self._pace.ahead} ahead: those that no step was"
                " made with count as not consumed, and session.step() has to be the last line"
            )

    # -- between two steps -------------------------------------------------------------------------

    _noted: tuple[Any, ...] | None = None

    def _asks(self) -> None:
        """The loop asks for its next batch."""
        pace = self._pace
        if pace.ahead:  # in the middle of a step: its checkpoint was taken at the end of the last
            if self._noted is not None and self._noted != self._moved():
                self._unheld.doubt(
                    InvalidValue(
                        "something is stepped after session.step(), in a loop that fetches its"
                        " batches ahead: it would be missing from checkpoints",
                        hint="make session.step() the last line of the loop's body",
                    )
                )
            self._noted = None
        elif pace.unstepped == 0:
            self.between()
        elif pace.unstepped >= _UNSTEPPED and pace.unstepped % _UNSTEPPED == 0:
            self._voice.warn(
                f"{pace.unstepped} batches without session.step(): nothing is saved or told"
            )

    def _moved(self) -> tuple[Any, ...]:
        """What a scheduler's step changes."""
        others = self._parts.others.values()
        return tuple(getattr(each, "last_epoch", None) for each in others)

    def between(self) -> None:
        if self._unheld.due():
            self._unheld.look()
        if self._watch_script.due():
            self._watch_script.made(self._bases(), in_step=not self._iterating)
        super().between()

    def _between(self) -> None:
        if self._feed is None or self._pace.known():  # else the second step tells
            super()._between()

    def _bases(self) -> dict[str, int]:
        return {"step": self.step_number, "index": self._index, "epoch": self._this_epoch}

    def _begin(self, *, within_epoch: bool = True) -> None:
        """Before the first batch. `within_epoch`: the loop is over one epoch."""
        drawn_for = None
        if self._back is not None and draws.now() != self._random:
            drawn_for = (self.step_number, self._this_epoch, self._index)
        self.settle()
        if self._draws is not None:
            self._draws.made()
        self._unheld.begins()
        beside = []
        if self.resumed and (self._index or not within_epoch):
            beside = [
                f"the {kind} zipped with the batches is at its beginning"
                for kind in zipped(self._out)
            ]
        self._watch_script.begins(drawn_for, beside)
        self._say_environments()

    def _begun_alone(self) -> None:
        """A loop that only calls `step`, whose beginning nobody has seen."""
        if not self._unheld.begun or self._back is not None:
            self._say_environments()
        self._unheld.begun = True
        self._back = None

    _environments_said = False

    def _say_environments(self) -> None:
        if not self.resumed or self._environments_said:
            return
        self._environments_said = True
        if words := environments.words(self._unheld.held()):
            self._voice.warn_once(words)

    def _wanted(self, max_steps: int | None) -> bool:
        return max_steps is None or self.step_number + self._pace.in_flight() < max_steps

    def _count(self) -> None:
        """The place of the batch in its epoch."""
        assert self._feed is not None
        if self._feed.epoch != self._index_epoch:
            if self._index:
                self._pace.epoch_ended()
            self._index_epoch, self._index = self._feed.epoch, 0
        self._index += 1

    # -- loops over epochs that the script counts itself -------------------------------------------

    def _is_over(self) -> bool:
        """Whether this epoch of the script's own loop is one that was over at the checkpoint."""
        if self._counted or self._over <= 0:
            if self._again is not None and not self._counted:
                self._again.put_back()
            self._again = None
            return False
        if self._asked_epoch:
            self._voice.warn_once(
                f"the script has asked for session.epoch, so its loop is taken to begin at epoch"
                f" {self._over}; if it begins at 0, epochs are trained twice: write"
                " `for epoch in session.epochs(N):`"
            )
            self._over, self._again = 0, None
            return False
        if self._over == self._this_epoch and self._again is not None:
            if counted := self._watch_script.counted_from(self._this_epoch):
                self._voice.warn_once(
                    f"{counted[0]} is {self._this_epoch} already, so the loop is taken to begin at"
                    " that epoch, by a checkpoint of the script's own: leave that out, and write"
                    " `for epoch in session.epochs(N):`"
                )
                self._over, self._again = 0, None
                return False
            self._voice.say(self._again.words(self._over))
        self._over -= 1
        return True

    def _remind(self, given: int, max_steps: int | None, epochs: int | None) -> None:
        if not given and self._pace.given and not self._stopping:
            asked = f"max_steps={max_steps}" if epochs is None else f"epochs={epochs}"
            self._voice.warn_once(
                f"session.batches({asked}) was asked again and gives nothing: it counts all that"
                " was ever done. For a loop over epochs: `for epoch in session.epochs(N):` with"
                " session.batches() in it"
            )
