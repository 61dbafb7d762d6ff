"""A training whose loop is a framework's.

The framework iterates `Fed`, which looks like the loader it was given. When it asks for the batch
after a step, nothing of that step is left to be done: evaluation, logging and schedulers included.
That is where a checkpoint is taken, or where the process ends because its machine goes. Frameworks
that fetch the batches of several backward passes at once ask for them before the step, so they do
not disturb that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds.sources import feed_of
from tradewind.torch.sessions import users
from tradewind.torch.sessions.script import Script, Watch
from tradewind.torch.sessions.training import Training
from tradewind.torch.sessions.unheld import Unheld
from tradewind.torch.surroundings import surroundings
from tradewind.torch.telemetry.tally import now_s

OPTIONS = (
    "folder",
    "seed",
    "every_s",
    "every_steps",
    "keep",
    "grace_s",
    "upload_rate",
    "strict",
    "frozen",
    "telemetry",
    "grad_norm",
    "extra",
)
"""Of a session, and of each framework's line."""


class Position:
    """The epoch that the framework iterates, and how many of its batches it was given. The data's
    own place does not say it: after the last batch of an epoch, has the next one begun?"""

    epoch = 0
    batches = 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "batches": self.batches}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.batches = state["epoch"], state["batches"]


class Driven(Training):
    """`fed` is what the framework iterates. `elastic`: it may go on with another number of ranks.
    `theirs` is the framework's own state, an object with state_dict and load_state_dict."""

    def __init__(
        self, fed: Fed, *, theirs: Any, extra: dict[str, Any], elastic: bool = False, **options: Any
    ) -> None:
        self.position = Position()
        more = {"position": self.position, "framework": theirs, **extra}
        super().__init__(data=fed.loader, extra=more, **options)
        self._stepped = self._inside = False
        fed.training = self
        self._unheld = Unheld(
            self._parts,
            lambda: self.step_number,
            self._voice.warn,
            first=self._around.rank == 0,
            data=[fed.loader],
            refuses=not self.resumed,
            strict=self._strict,
            kept=lambda: self.kept(),
            driven=True,
        )
        back = self._back
        if back is not None and back.world != self._around.world and not elastic:
            self.close()
            raise InvalidValue(
                f"the checkpoint {back.key} is of {back.world} processes and there are"
                f" {self._around.world}: the framework counts its epochs and its schedule in steps,"
                " which would be of another size",
                hint=f"use {back.world} processes again, or another folder to start from scratch;"
                " more: tradewind explain ranks",
            )

    watch: Watch | None = None
    """Of the script's own variables."""
    kept: Callable[[], Iterable[Any]] = tuple
    """Objects that the framework keeps."""

    def _end(self, words_s: float) -> None:
        self._unheld.close()
        super()._end(words_s)

    def watches(
        self,
        held: list[Any],
        data: Any,
        hint: str,
        objects: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        """`held`: what is not the script's own."""
        parts = self._parts
        tables = [parts.modules, parts.optimizers, parts.others, parts.each]
        mine = [self, *held, *(each for table in tables for each in table.values())]
        script = Script(mine, parts.modules, parts.optimizers, data, objects)
        self.watch = watch = Watch(script, self._voice.warn_once, strict=self._strict, hint=hint)
        if self._back is not None and self._back.world == self._around.world:
            watch.goes_on(self._back.shared.get("script") or {})

    def _bases(self) -> dict[str, int]:
        return {"step": self.step_number, "index": self.position.batches}

    def _more(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._unheld.look()
        return ({"script": self.watch.state(self._bases())} if self.watch is not None else {}), {}

    def between(self) -> None:
        if self._unheld.due():
            self._unheld.look()
        if self.watch is not None and self.watch.due():
            self.watch.made(self._bases())
        super().between()

    # -- what the framework's side says ------------------------------------------------------------

    def stepped(self, values: dict[str, Any]) -> None:
        """An optimizer step is made."""
        self.made(values)
        self._stepped = True

    def tell(self, values: dict[str, Any]) -> None:
        """Metrics of this step, besides: numbers, or tensors of one."""
        if self._around.rank == 0 and values:
            self._teller.made(self.step_number, values)

    def unchanged(self) -> None:
        """Before something other than an optimizer changes what is saved."""
        self._checkpoints.gate()

    def say(self, words: str) -> None:
        self._voice.say(words)

    def goes_on_at(self, epoch: int, batches: int, step: int) -> None:
        """Where a checkpoint of the framework's own has put it."""
        self.step_number = step
        self.position.epoch, self.position.batches = epoch, batches
        if self._feed is not None and (epoch or batches):
            self._feed.place(epoch, batches)

    # -- what the loader asks ----------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """The next one, where the last was given out or was left in the middle; else the one that
        the checkpoint was taken in."""
        assert self._feed is not None
        if self._inside:
            self.position.epoch, self.position.batches = self.position.epoch + 1, 0
            if self._feed.more(self.position.epoch - 1) is not False:
                self._feed.place(self.position.epoch, 0)
        self._inside = True

    def batch(self) -> Any:
        """The next of this epoch; StopIteration after its last."""
        assert self._feed is not None
        if self._stepped:
            self._stepped = False
            self.between()
        self._feed.open(None)
        if self._back is not None:
            self.settle()
            if self.watch is not None:
                self.watch.begins()
        from_s = now_s()
        try:
            batch = self._feed.next(self.position.epoch)
        except StopIteration:
            self._inside = False
            self.position.epoch, self.position.batches = self.position.epoch + 1, 0
            raise
        self.tally.waited(from_s, batch)
        if self._trial is not None:
            self._trial.gave(self.position.epoch, self.position.batches, batch)
        self.position.batches += 1
        return batch

    def last_of_epoch(self) -> bool:
        """Whether the batch that was given is; False too where nobody knows yet."""
        assert self._feed is not None
        return self._feed.more(self.position.epoch) is False

    def past_whole_epoch(self) -> None:
        """Where all of this epoch was given out, goes on with the next."""
        if self.position.batches and self.last_of_epoch():
            self.position.epoch, self.position.batches = self.position.epoch + 1, 0


class Fed:
    """The loader, as the framework sees it. `place` puts a batch where the model is."""

    def __init__(self, loader: Any, place: Callable[[Any], Any] | None = None) -> None:
        self.loader, self._place = loader, place
        self.training: Driven | None = None
        self._length: int | None = None

    @property
    def dataset(self) -> Any:
        return self.loader.dataset

    @property
    def batch_size(self) -> Any:
        return self.loader.batch_size

    def set_epoch(self, epoch: int) -> None:
        """The order of an epoch follows from its number already."""

    def __len__(self) -> int:
        if self._length is None:
            feed = feed_of(self.loader, 0, surroundings())
            assert feed is not None
            self._length = feed.length()
        if self._length is None:
            raise TypeError("the data does not say how long it is")
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """One epoch. Nothing happens before its first batch is asked for."""
        training = self.training
        assert training is not None
        training.begin_epoch()
        while True:
            try:
                batch = training.batch()
            except StopIteration:
                return
            yield self._place(batch) if self._place is not None else batch


def of_users(objects: Iterable[Any]) -> dict[str, Mapping[str, Any]]:
    """Attributes of those whose classes are the script's own: a framework keeps of them what they
    ask it to."""
    kinds = [(type(each), vars(each)) for each in objects if hasattr(each, "__dict__")]
    own = [(kind, held) for kind, held in kinds if users.is_users_class(kind)]  # type: ignore[arg-type]
    return {kind.__name__: held for kind, held in own}


def checked(options: dict[str, Any], whose: str) -> dict[str, Any]:
    """The options of a framework's line."""
    for name in options:
        if name not in OPTIONS:
            raise InvalidValue(
                f"{whose} has no option {name!r}", hint=f"it has {', '.join(OPTIONS)}"
            )
    return options
