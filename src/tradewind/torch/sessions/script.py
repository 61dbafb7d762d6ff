"""The variables of the script itself, which no checkpoint holds: its counters, sums and buffers.

They cannot be put back, but it can be said which of them begin anew. A checkpoint has a word about
each that changes in the loop (looking.py). When the training goes on, they are compared at the same
place of the loop; a counter that is made in the loop (`for i, …`) is compared one step later, by
how far it is from the number of steps. What does not change is compared where random numbers are
drawn before the loop: it may have been drawn, and would be drawn again.

What is looked at: the variables of the functions that the loop is in, as far as they are in the
user's own files, what the functions, classes and other files of the user's keep, and a few levels
into objects of the user's own classes. Done before the loop, at its first steps and at saves, so it
costs the others nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import FunctionType
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds.samples import below
from tradewind.torch.sessions import users
from tradewind.torch.sessions.looking import NONE, Word, Words, of_modules

HINT = "session.variables(…) keeps them; session.enumerate(…) and session.step_number count"
_LOOKS = 3
"""Steps after which counters have shown themselves."""

_DEPTH = 3
_TOLD = 6
_STILL = 1000
_ISSUED, _TO_COME = 1e9, 1e10  # seconds since 1970, of any clock of these decades


class Script:
    """`held` is what the session holds, and itself; `models`, `optimizers` and `data` of it are
    looked into all the same, for what only their classes know, and so is what `objects` gives: by
    name, the attributes of each."""

    def __init__(
        self,
        held: Iterable[Any],
        models: Mapping[str, Any],
        optimizers: Mapping[str, Any],
        data: Any,
        objects: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        # Not by the ids of None, numbers and texts, which all who have the same share.
        self._held = {
            id(each)
            for each in held
            if each is not None and not isinstance(each, (int, float, str))
        }
        self._models, self._optimizers, self._objects = models, optimizers, objects
        self._data = data
        self._began_s = clock.stopwatch()
        self._zero: dict[str, Word] = {}
        """Before the loop."""
        self._last: dict[str, Word] = {}
        self._first: dict[str, Word] = {}
        self._changing: set[str] = set()
        self._counters: dict[str, dict[str, float]] = {}
        """Of numbers that have kept their distance from a base so far: these distances."""
        self._before: dict[str, Any] = {}
        """Of the checkpoint."""

    # -- while it trains ---------------------------------------------------------------------------

    def before(self) -> None:
        """Before the first batch: some things change in the first step and never again."""
        self._zero = self.words()

    def look(self, bases: Mapping[str, int]) -> None:
        """After a step. `bases` are numbers that go on when the training does: its step, the place
        in its epoch."""
        now = self.words()
        counters = {}
        for name, word in now.items():
            if self._last.get(name, self._zero.get(name, word)) != word:
                self._changing.add(name)
            if type(word) is float and word.is_integer():
                apart = {base: word - value for base, value in bases.items()}
                if name in self._last:
                    known = self._counters.get(name, {}).items()
                    apart = {base: offset for base, offset in known if apart.get(base) == offset}
                counters[name] = apart
        self._first = self._first or now
        self._last, self._counters = now, counters

    def state(self) -> dict[str, Any]:
        """For a checkpoint, just after a look."""
        changing = [name for name in self._last if name in self._changing]
        still = {
            name: word
            for name, word in self._last.items()
            if name not in self._changing and not self._is_time(word) and _may_be_drawn(word)
        }
        return {
            "still": dict(list(still.items())[:_STILL]),
            "first": {name: self._first[name] for name in changing if name in self._first},
            "last": {name: self._last[name] for name in changing},
            "counters": {n: c for n in changing if (c := self._counters.get(n))},
            "times": [name for name in changing if self._is_time(self._last[name])],
        }

    # -- when it goes on ---------------------------------------------------------------------------

    def restore(self, state: dict[str, Any]) -> None:
        self._before = state
        self._changing |= set(state.get("last", ()))

    def begins_anew(self, drawn_for: Iterable[int] | None) -> list[str]:
        """Before the first batch: what is other than at the checkpoint, a few words each.
        `drawn_for`: random numbers were drawn since the checkpoint was read, and numbers may differ
        by these all the same."""
        now, before = self._zero, dict(self._before.get("last", {}))
        if drawn_for is not None:
            apart = {0.0, *map(float, drawn_for)}
            before |= {
                name: was
                for name, was in self._before.get("still", {}).items()
                if name in now and _is_drawn(was, now[name], apart)
            }
        both = [name for name in before if name in now]
        for name in both:
            self._before.get("counters", {}).pop(name, None)
        return _in_words(
            [n for n in both if now[n] != before[n] and not self._ticks(n, now[n])], before, now
        )

    def counted_from(self, epoch: int) -> list[str]:
        """Numbers of epochs that are as they were at the checkpoint, before any was gone through:
        the script has them from elsewhere."""
        now = self.words()
        return [
            name
            for name, apart in self._before.get("counters", {}).items()
            if apart.get("epoch") in (0, 1) and now.get(name) == apart["epoch"] + epoch
        ]

    def counts_anew(self, bases: Mapping[str, int], *, in_step: bool) -> list[str]:
        """After the first step: of counters that are made in the loop. `in_step`: there was no time
        before the first batch, so what is as it was after the very first step begins anew too."""
        before, self._before = self._before, {}
        counters = before.get("counters", {})
        if not counters and not in_step:
            return []
        now, found = self.words(), []
        for name, apart in counters.items():
            wanted = [bases[base] + offset for base, offset in apart.items() if base in bases]
            if wanted and type(now.get(name)) is float and now[name] not in wanted:
                found.append(f"{name} would be {wanted[0]:g} and is {now[name]:g}")
        first, last = before.get("first", {}), before.get("last", {})
        names = [
            name
            for name in (first if in_step else ())
            if name not in counters and now.get(name) == first[name] != last.get(name)
        ]
        return found + _in_words(names, last, now)

    # -- looking -----------------------------------------------------------------------------------

    def words(self) -> dict[str, Word]:
        """By name: of what models and optimizers have besides what is in checkpoints, of the frames
        of the user's own that lead here, the innermost first, of the data, of the user's files."""
        words = Words(self._held)
        for name, module in self._models.items():
            for inner, each in module.named_modules():
                if users.is_users_class(type(each)):  # type: ignore[arg-type]
                    whole = ".".join(filter(None, (name, inner)))
                    words.attributes(whole, each, of_modules(), 1)
        for name, optimizer in self._optimizers.items():
            if any(users.is_users_class(kind) for kind in type(optimizer).__mro__):
                words.attributes(name, optimizer, _of_optimizers(), 1)
        for name, attributes in self._objects().items():
            for key, value in list(attributes.items()):
                if not key.startswith("_"):
                    words.tell(f"{name}.{key}", value, 1)
        around = list(users.frames())
        for number, frame in enumerate(around):
            name = frame.f_code.co_name
            prefix = "" if number == 0 or name == "<module>" else f"{name}: "
            for each, value in list(frame.f_locals.items()):
                if not each.startswith("__") and each != "_":
                    words.tell(f"{prefix}{each}", value, _DEPTH)
        self._of_data(words)
        self._of_files(words, {id(frame.f_globals) for frame in around})
        return words.found

    def _of_data(self, words: Words) -> None:
        data = self._data
        for name in ("sampler", "batch_sampler"):
            sampler = getattr(data, name, None)
            if hasattr(sampler, "__dict__"):  # weights of samples, which the loop may change
                words.attributes(name, sampler, ("data_source", "sampler", "dataset"), 1)
        users_own = [
            each
            for each in below(getattr(data, "dataset", None))
            if users.is_users_class(type(each))  # type: ignore[arg-type]
        ]
        for number, each in enumerate(users_own):
            words.tell(f"dataset{number or ''}", each, _DEPTH)
        if (collate := getattr(data, "collate_fn", None)) is not None:
            words.tell("collate_fn", collate, 1)

    @staticmethod
    def _of_files(words: Words, seen: set[int]) -> None:
        """Counters at the top of other files of the user's, and what functions and classes keep."""
        for module in users.modules():
            table = vars(module)
            prefix = "" if id(table) in seen else f"{module.__name__}."
            for name, value in list(table.items()):
                if name.startswith("__") or words.full():
                    continue
                if isinstance(value, FunctionType):
                    if value.__globals__ is table:
                        words.function(f"{prefix}{name}", value, 1)
                elif isinstance(value, type):
                    if value.__module__ == module.__name__:
                        words.tell(f"{prefix}{name}", value, 1)
                elif prefix and not isinstance(value, str):
                    words.tell(f"{prefix}{name}", value, 1)

    def _is_time(self, value: Word) -> bool:
        """Perhaps of a clock."""
        if type(value) is not float:
            return False
        uptime = self._began_s - 600 <= value <= clock.stopwatch() + 1
        return _ISSUED < value < _TO_COME or uptime

    def _ticks(self, name: str, now: Word) -> bool:
        """Of a clock, which is another one each time: so it was then, and so it is now. A loss may
        look like a clock once, and hardly ever after it has started again."""
        return name in self._before.get("times", ()) and self._is_time(now)


class Watch:
    """Looks at the script's variables in the first steps and at saves, and says what begins anew.
    `strict`: that is an error."""

    def __init__(
        self, script: Script, warn: Callable[[str], None], *, strict: bool, hint: str = HINT
    ) -> None:
        self._script, self._warn, self._strict, self._hint = script, warn, strict, hint
        self._looks = 0
        self._resumed = self._begun = False

    def goes_on(self, state: dict[str, Any]) -> None:
        self._script.restore(state)
        self._resumed = True

    def begins(self, drawn_for: Iterable[int] | None = None, also: Iterable[str] = ()) -> None:
        """Before the first batch, and only then. `drawn_for`: random numbers were drawn since the
        checkpoint was read; steps and epochs by which numbers may differ. `also`: more such."""
        if self._begun:
            return
        self._begun = True
        self._script.before()
        if self._resumed:
            self._differ([*also, *self._script.begins_anew(drawn_for)])

    def counted_from(self, epoch: int) -> list[str]:
        return self._script.counted_from(epoch) if self._resumed else []

    def due(self) -> bool:
        return self._looks < _LOOKS

    def made(self, bases: Mapping[str, int], *, in_step: bool = False) -> None:
        """After a step, where it is due. `in_step`: nobody has seen the beginning of the loop."""
        if self._resumed:
            self._resumed = False
            self._differ(self._script.counts_anew(bases, in_step=in_step))
        self._script.look(bases)
        self._looks += 1

    def state(self, bases: Mapping[str, int]) -> dict[str, Any]:
        self._script.look(bases)
        return self._script.state()

    def _differ(self, found: list[str]) -> None:
        if not found:
            return
        words = (
            f"variables of the script are in no checkpoint, and start from scratch: {told(found)}"
        )
        if self._strict:
            raise InvalidValue(words, hint=self._hint)
        self._warn(f"{words}; {self._hint}")


def _may_be_drawn(word: Word) -> bool:
    return not isinstance(word, str) or word.startswith("#")


def _is_drawn(was: Word, now: Word, apart: set[float]) -> bool:
    """Whether it may have been drawn, and is drawn again. `apart`: what a count of steps or epochs
    before the loop may differ by."""
    if isinstance(was, str) or isinstance(now, str):
        return was != now
    switch = {was, now} <= {0.0, 1.0}
    return not switch and abs(was - now) not in apart


def _in_words(names: list[str], before: Mapping[str, Word], now: Mapping[str, Word]) -> list[str]:
    """The worst first. Of a list that has another length, what it has is not worth a word too."""
    longer = {name[4:-1] for name in names if name.startswith("len(")}
    some = [name for name in names if name not in longer]
    return [f"{name} {_was(before[name], now[name])}" for name in _worst_first(some, before)]


def _was(before: Word, now: Word) -> str:
    if NONE in (before, now):
        return f"was {_shown(before)} and is {_shown(now)}"
    if isinstance(before, str) or isinstance(now, str):
        return "is another"
    return f"was {before:g} and is {now:g}"


def _shown(word: Word) -> str:
    return f"{word:g}" if not isinstance(word, str) else NONE if word == NONE else "something"


def _worst_first(names: list[str], before: Mapping[str, Word]) -> list[str]:
    """Averages and the best so far, then counters and sums, then lengths, then what is only known
    to be another: of that much is made anew in each step. Clocks and meters come last. Of each
    object one, before there is a second of any."""
    of_meters = {_above(name) for name in names if _below(name) in _METERS}

    def rank(name: str) -> tuple[int, str]:
        words = set(re.split(r"[^a-z0-9]+", name.lower().replace("_", " ")))
        if words & _CLOCKS or _above(name) in of_meters:
            return 5, name
        if words & _FIRST:
            return 0, name
        if isinstance(before[name], str):
            return (4 if not name.startswith(("random numbers", "place in")) else 2), name
        return (3 if name.startswith("len(") else 1), name

    seen: Counter[str] = Counter()
    turns = {}
    for name in sorted(names, key=rank):
        above = _above(name)
        turns[name] = seen[above] if above else 0
        seen[above] += 1
    return sorted(names, key=lambda name: (rank(name)[0] == 5, turns[name], rank(name)))


_FIRST = {"best", "ema", "average", "averages", "averaged", "shadow", "patience", "baseline"}
_CLOCKS = {"time", "timer", "timers", "clock", "tic", "toc", "elapsed", "meter", "meters"} | {
    "pbar", "fps", "speed", "started", "began"
}  # fmt: skip
_METERS = {"avg", "val"}


def _above(name: str) -> str:
    return name.rpartition(".")[0]


def _below(name: str) -> str:
    return name.rpartition(".")[2]


def told(found: list[str]) -> str:
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return "; ".join(found[:_TOLD]) + more


@cache
def _of_optimizers() -> frozenset[str]:
    """What every optimizer of PyTorch has, or is given by it."""
    import torch

    plain = torch.optim.SGD([torch.zeros(1)])
    return frozenset({*vars(plain), "step", "_opt_called", "_step_count"})
