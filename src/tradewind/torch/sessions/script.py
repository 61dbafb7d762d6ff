"""The variables of the script itself, which no checkpoint holds: its counters, sums and buffers.

They cannot be put back, but it can be said which of them begin anew. A checkpoint has a word about
each that changes in the loop: a number itself, of a list how long it is, of tensors and arrays a
digest of some of their numbers. When the training goes on, they are compared at the same place of
the loop; a counter that is made in the loop (`for i, …`) is compared one step later, by how far it
is from the number of steps.

What is looked at: the variables of the functions that the loop is in, as far as they are in the
user's own files, and one or two levels into objects of the user's own classes. Done at the first
steps and at saves, so it costs the others nothing.
"""

from __future__ import annotations

import hashlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds import seeding
from tradewind.torch.sessions import users

HINT = "session.variables(…) keeps them; session.enumerate(…) and session.step_number count"
_LOOKS = 3
"""Steps after which counters have shown themselves."""

Word = float | str
"""Of a variable: a number, a length, or a digest."""

_MOST = 2000
_MOST_DIGESTS = 64
_DEPTH = 3
_SAMPLED = 16
_TOLD = 6
_ISSUED, _TO_COME = 1e9, 1e10  # seconds since 1970, of any clock of these decades
_THEIR_DEPTH, _THEIR_MOST = 6, 2000
"""How far generators are looked for in objects of libraries."""


class Script:
    """`held` is what the session holds, and itself; `models` and `data` of it are looked into all
    the same, for what only their classes know, and so is what `objects` gives: by name, the
    attributes of each."""

    def __init__(
        self,
        held: Iterable[Any],
        models: Mapping[str, Any],
        data: Any,
        objects: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        # Not by the ids of numbers and texts, which all who have the same share.
        self._held = {id(each) for each in held if not isinstance(each, (int, float, str))}
        self._models, self._objects = models, objects
        self._dataset = getattr(data, "dataset", None)
        self._sampler = getattr(data, "sampler", None)
        self._began_s = clock.stopwatch()
        self._last: dict[str, Word] = {}
        self._first: dict[str, Word] = {}
        self._changing: set[str] = set()
        self._counters: dict[str, dict[str, float]] = {}
        """Of numbers that have kept their distance from a base so far: these distances."""
        self._before: dict[str, Any] = {}
        """Of the checkpoint."""
        self._digests = 0

    # -- while it trains ---------------------------------------------------------------------------

    def look(self, bases: Mapping[str, int]) -> None:
        """After a step. `bases` are numbers that go on when the training does: its step, the place
        in its epoch."""
        now = self.words()
        counters = {}
        for name, word in now.items():
            if name in self._last and self._last[name] != word:
                self._changing.add(name)
            if type(word) is float and word.is_integer():
                apart = {base: word - value for base, value in bases.items()}
                if name in self._last:
                    known = self._counters.get(name, {}).items()
                    apart = {base: offset for base, offset in known if apart.get(base) == offset}
                counters[name] = apart
        self._first, self._last, self._counters = self._first or now, now, counters

    def state(self) -> dict[str, Any]:
        """For a checkpoint, just after a look."""
        changing = [name for name in self._last if name in self._changing]
        return {
            "first": {name: self._first[name] for name in changing if name in self._first},
            "last": {name: self._last[name] for name in changing},
            "counters": {n: c for n in changing if (c := self._counters.get(n))},
            "times": [name for name in changing if self._is_time(self._last[name])],
        }

    # -- when it goes on ---------------------------------------------------------------------------

    def restore(self, state: dict[str, Any]) -> None:
        self._before = state

    def begins_anew(self) -> list[str]:
        """Before the first batch: what is other than at the checkpoint, a few words each."""
        now, before = self.words(), self._before.get("last", {})
        both = [name for name in before if name in now]
        for name in both:
            self._before.get("counters", {}).pop(name, None)
        return [
            f"{n} {_was(before[n], now[n])}"
            for n in _worst_first(both, before)
            if now[n] != before[n] and not self._ticks(n, now[n])
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
        for name in first if in_step else ():
            if name not in counters and now.get(name) == first[name] != last.get(name):
                found.append(f"{name} {_was(last[name], now[name])}")
        return found

    # -- looking -----------------------------------------------------------------------------------

    def words(self) -> dict[str, Word]:
        """By name, of the frames of the user's own that lead here; the innermost first."""
        found: dict[str, Word] = {}
        seen: set[int] = set()
        self._digests = 0
        for name, module in self._models.items():
            for inner, each in module.named_modules():
                if users.is_users_class(type(each)):  # type: ignore[arg-type]
                    for key, value in vars(each).items():
                        if not key.startswith("_") and key != "training":
                            whole = ".".join(filter(None, (name, inner, key)))
                            self._tell(whole, value, 1, found, seen)
        for name, attributes in self._objects().items():
            for key, value in list(attributes.items()):
                if not key.startswith("_"):
                    self._tell(f"{name}.{key}", value, 1, found, seen)
        for key, value in vars(self._sampler).items() if hasattr(self._sampler, "__dict__") else ():
            if value is not self._dataset:  # weights of samples, which the loop may change
                self._tell(f"sampler.{key}", value, 0, found, seen)
        if users.is_users_class(type(self._dataset)):  # type: ignore[arg-type]
            self._tell("dataset", self._dataset, 1, found, seen)
        for number, frame in enumerate(_frames()):
            name = frame.f_code.co_name
            prefix = "" if number == 0 or name == "<module>" else f"{name}: "
            for each, value in list(frame.f_locals.items()):
                if not each.startswith("__") and each != "_":
                    self._tell(f"{prefix}{each}", value, _DEPTH, found, seen)
                if len(found) >= _MOST:
                    return found
        return found

    def _tell(
        self, name: str, value: Any, depth: int, found: dict[str, Word], seen: set[int]
    ) -> None:
        if len(found) >= _MOST or id(value) in self._held:
            return
        kind = type(value)
        if kind in (int, float, bool):
            found.setdefault(name, _number(value))
        elif kind is str:  # a digest: whatever it says is none of a checkpoint's business
            found.setdefault(
                name, "#" + hashlib.sha256(value[:1000].encode(errors="replace")).hexdigest()[:12]
            )
        elif id(value) in seen:
            return
        elif kind in (list, tuple, dict, set, deque):
            seen.add(id(value))
            self._tell_container(name, value, depth, found, seen)
        elif self._digests < _MOST_DIGESTS and (word := _digest(value)) is not None:
            self._digests += 1  # of a tensor on a GPU: it has to be waited for
            found.setdefault(name, word)
        elif depth > 0 and users.is_users_class(kind):  # type: ignore[arg-type]
            seen.add(id(value))
            for each, inner in list(getattr(value, "__dict__", {}).items()):
                self._tell(f"{name}.{each}", inner, depth - 1, found, seen)
        elif depth > 0 and _is_theirs(value) and self._digests < _MOST_DIGESTS:
            seen.add(id(value))
            theirs = seeding.generators(value, depth=_THEIR_DEPTH, most=_THEIR_MOST)
            if theirs:  # such as an environment's own
                self._digests += 1
                found.setdefault(f"random numbers of {name}", _digest_of_generators(theirs))

    def _tell_container(
        self, name: str, value: Any, depth: int, found: dict[str, Word], seen: set[int]
    ) -> None:
        if type(value) is not tuple:
            found.setdefault(f"len({name})", float(len(value)))
        if depth > 0 and type(value) is dict:
            for key, inner in list(value.items())[:_SAMPLED]:
                self._tell(f"{name}[{key!r:.40}]", inner, depth - 1, found, seen)

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
        self._resumed = False

    def goes_on(self, state: dict[str, Any]) -> None:
        self._script.restore(state)
        self._resumed = True

    def begins(self) -> None:
        """Before the first batch."""
        if self._resumed:
            self._differ(self._script.begins_anew())

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


def _was(before: Word, now: Word) -> str:
    if isinstance(before, str) or isinstance(now, str):
        return "is another"
    return f"was {before:g} and is {now:g}"


def _worst_first(names: list[str], before: Mapping[str, Word]) -> list[str]:
    """Counters and sums, then lengths, then what is only known to be another: of that much is
    made anew in each step."""

    def rank(name: str) -> tuple[int, str]:
        if isinstance(before[name], str):
            return (3 if not name.startswith("random numbers") else 1), name
        return (2 if name.startswith("len(") else 0), name

    return sorted(names, key=rank)


def told(found: list[str]) -> str:
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return "; ".join(found[:_TOLD]) + more


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if users.is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _is_theirs(value: Any) -> bool:
    """An object of a library's, but for PyTorch's and NumPy's own."""
    kind = type(value)
    if isinstance(value, (type, ModuleType)) or callable(value) or not hasattr(value, "__dict__"):
        return False
    return kind.__module__.partition(".")[0] not in ("torch", "numpy", "builtins", "tradewind")


def _digest_of_generators(generators: list[Any]) -> str:
    states = repr([seeding.state_of(each) for each in generators])
    return "#" + hashlib.sha256(states.encode()).hexdigest()[:12]


def _digest(value: Any) -> str | None:
    """Of some of the numbers of a tensor or an array, of a generator's state; None of the rest."""
    import torch

    if isinstance(value, torch.Tensor):
        return digest_of([value])
    if isinstance(value, seeding.kinds()):
        return "#" + hashlib.sha256(repr(seeding.state_of(value)).encode()).hexdigest()[:12]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype != object:
        flat = value.reshape(-1)
        some = flat[:: max(1, flat.size // _SAMPLED)]
        return "#" + hashlib.sha256(f"{value.shape}".encode() + some.tobytes()).hexdigest()[:12]
    return None


def digest_of(tensors: list[Any]) -> str:
    """Of a few numbers of each."""
    import torch

    digest = hashlib.sha256()
    for tensor in tensors:
        local = getattr(tensor, "_local_tensor", tensor)
        if local.device.type == "meta" or local.is_sparse or local.is_quantized:
            continue
        flat = local.detach().reshape(-1) if local.is_contiguous() else local.detach().flatten()
        some = flat[:: max(1, flat.numel() // _SAMPLED)]
        kind = torch.complex128 if some.is_complex() else torch.float64
        digest.update(f"{tuple(local.shape)} {some.to('cpu', kind).tolist()}".encode())
    return "#" + digest.hexdigest()[:12]
