"""What a variable of a script is, in a word that can be compared after a restart.

A number is itself; of what holds several there is its length and a digest of some of its contents;
of tensors, arrays and random generators a digest; of iterators and generator functions how far they
are. Objects of the user's own classes, and tables of options, are looked into.
"""

from __future__ import annotations

import hashlib
import operator
import sys
import warnings
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.sessions import users

Word = float | str
"""Of a variable: a number, a length, or a digest."""

NONE = "None"
_MOST = 4000
_MOST_DIGESTS = 128
_SAMPLED = 16
_INSIDE = 2
"""How deep lists lie in lists, where a digest of them is made."""
_THEIR_MOST = 2000
"""Objects among which generators are looked for in one of a library's."""
_OPTIONS = {"Namespace", "SimpleNamespace", "DictConfig", "ConfigDict", "FieldReference"}
"""Classes of libraries whose objects have nothing but what a script puts there."""


class Words:
    """`held` are the ids of what checkpoints have anyway."""

    def __init__(self, held: set[int]) -> None:
        self.found: dict[str, Word] = {}
        self._held = held
        self._seen: set[int] = set()
        self._digests = 0

    def full(self) -> bool:
        return len(self.found) >= _MOST

    def tell(self, name: str, value: Any, depth: int) -> None:
        if self.full() or id(value) in self._held:
            return
        try:
            self._tell(name, value, depth)
        except Exception:  # of a class of the user's, which answers in its own way
            return

    def _tell(self, name: str, value: Any, depth: int) -> None:
        kind, found = type(value), self.found
        simple = _simple(value)
        if simple is not None:
            found.setdefault(name, simple)
        elif id(value) in self._seen or isinstance(value, ModuleType):
            return
        elif self._digests < _MOST_DIGESTS and (word := _digest(value)) is not None:
            self._seen.add(id(value))
            self._digests += 1  # of a tensor on a GPU: it has to be waited for
            found.setdefault(name, word)
        elif isinstance(value, (list, tuple, set, frozenset, deque, Mapping)):
            self._seen.add(id(value))
            self._container(name, value, depth)
            if users.is_users_class(kind):  # type: ignore[arg-type]
                self._attributes(name, value, depth)
        elif isinstance(value, (FunctionType, MethodType, partial, GeneratorType, Iterator)):
            self._seen.add(id(value))
            self._code(name, value, depth)
        elif isinstance(value, type):
            if depth > 0 and users.is_users_class(value):
                self._seen.add(id(value))
                self._of_class(name, value)
        elif depth > 0 and (users.is_users_class(kind) or kind.__name__ in _OPTIONS):  # type: ignore[arg-type]
            self._seen.add(id(value))
            self._attributes(name, value, depth)
        elif depth > 0 and _is_theirs(value) and self._digests < _MOST_DIGESTS:
            self._seen.add(id(value))
            inside, kinds = seeding.within(value, most=_THEIR_MOST), seeding.kinds()
            theirs = [each for each in inside if isinstance(each, kinds)]
            if theirs:  # such as an environment's own
                self._digests += 1
                found.setdefault(f"random numbers of {name}", _digest_of_generators(theirs))

    def attributes(self, name: str, value: Any, but: Collection[str], depth: int) -> None:
        """Of what a checkpoint has only in part."""
        for key, inner in attributes_of(value):
            if key not in but:
                self.tell(f"{name}.{key}", inner, depth)

    def _attributes(self, name: str, value: Any, depth: int) -> None:
        from torch.nn import Module

        but = of_modules() if isinstance(value, Module) else ()
        self.attributes(name, value, but, depth - 1)

    def _container(self, name: str, value: Any, depth: int) -> None:
        if not isinstance(value, tuple):
            self.found.setdefault(f"len({name})", float(len(value)))
        if isinstance(value, (set, frozenset)):  # which have another order in each process
            return
        pairs: list[tuple[str, Any]]
        try:
            if isinstance(value, Mapping):
                some_of_it = list(islice(value.items(), 10 * _SAMPLED))
                pairs = [(_key(number, key), each) for number, (key, each) in enumerate(some_of_it)]
            else:
                pairs = [(str(k), each) for k, each in enumerate(islice(value, 10 * _SAMPLED))]
        except Exception:  # a mapping of the user's own, which answers in its own way
            return
        if isinstance(value, Mapping):
            for key, each in pairs[:_SAMPLED] if depth > 0 else ():
                self.tell(f"{name}[{key}]", each, depth - 1)
            pairs = pairs[_SAMPLED if depth > 0 else 0 :]
        else:
            for key, each in pairs[:_SAMPLED] if depth > 0 else ():
                if not _is_content(each):
                    self.tell(f"{name}[{key}]", each, depth - 1)
        digest = hashlib.sha256()
        some = [each for _, each in pairs[:: max(1, len(pairs) // _SAMPLED)]]
        if self._add(digest, some, _INSIDE):
            self.found.setdefault(name, "#" + digest.hexdigest()[:12])

    def _add(self, digest: Any, some: Iterable[Any], depth: int) -> bool:
        """Whether there was anything in it that has a word."""
        any_of_it = False
        for each in some:
            if id(each) in self._held:
                continue
            if (simple := _simple(each)) is not None:
                digest.update(f"{simple} ".encode())
            elif isinstance(each, (list, tuple)):
                if depth == 0 or not self._add(digest, each[:_SAMPLED], depth - 1):
                    continue
            elif self._digests < _MOST_DIGESTS and (word := _digest(each)) is not None:
                self._digests += 1
                digest.update(word.encode())
            else:
                continue
            any_of_it = True
        return any_of_it

    def _of_class(self, name: str, kind: type) -> None:
        for key, value in list(vars(kind).items()):
            if not key.startswith("__") and not isinstance(value, (str, FunctionType, type)):
                self.tell(f"{name}.{key}", value, 0)

    def _code(self, name: str, value: Any, depth: int) -> None:
        """What functions remember: closures, attributes, defaults that change; and iterators."""
        if isinstance(value, MethodType):
            self.tell(name, value.__self__, depth)
        elif isinstance(value, partial):
            self.tell(name, value.func, depth)
        elif isinstance(value, FunctionType):
            if users.is_users(value.__code__.co_filename):
                self.function(name, value, depth)
        elif isinstance(value, GeneratorType):
            self._generator(name, value, depth)
        elif type(value).__module__ in ("builtins", "itertools"):
            if (place := _place(value)) is not None:
                self.found.setdefault(f"place in {name}", place)
        elif depth > 0 and users.is_users_class(type(value)):  # type: ignore[arg-type]
            self._attributes(name, value, depth)

    def function(self, name: str, function: FunctionType, depth: int) -> None:
        if depth <= 0:
            return
        for key, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=False
        ):
            try:
                self.tell(f"{name}.{key}", cell.cell_contents, depth - 1)
            except ValueError:  # not assigned yet
                continue
        for key, value in list(vars(function).items()):
            if not key.startswith("__"):
                self.tell(f"{name}.{key}", value, depth - 1)
        for number, value in enumerate(function.__defaults__ or ()):
            if isinstance(value, (list, dict, set, deque)):
                self.tell(f"{name}({number})", value, depth - 1)

    def _generator(self, name: str, generator: Any, depth: int) -> None:
        frame = generator.gi_frame
        if generator.gi_running or not users.is_users(generator.gi_code.co_filename):
            return
        self.found.setdefault(f"place in {name}", NONE if frame is None else float(frame.f_lasti))
        for key, value in list(frame.f_locals.items()) if frame is not None and depth > 0 else ():
            self.tell(f"{name}.{key}", value, depth - 1)


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    found = list(getattr(value, "__dict__", {}).items())
    for name in _slots(type(value)):  # type: ignore[arg-type]
        if hasattr(value, name):
            found.append((name, getattr(value, name)))
    return found


@cache
def _slots(kind: type) -> list[str]:
    found = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        found += [slots] if type(slots) is str else list(slots)
    return [name for name in found if not name.startswith("__")]


@cache
def of_modules() -> frozenset[str]:
    """What every module of PyTorch has, most of it in checkpoints."""
    from torch import nn

    return frozenset({*vars(nn.Module()), "training"})


def _simple(value: Any) -> Word | None:
    """Of what is no container and no array."""
    kind = type(value)
    if value is None:
        return NONE
    if kind in (int, float, bool):
        return _number(value)
    if kind is str:  # a digest: whatever it says is none of a checkpoint's business
        return "'" + hashlib.sha256(value[:1000].encode(errors="replace")).hexdigest()[:12]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.number, numpy.bool_)):
        return _number(value) if not numpy.iscomplexobj(value) else f"#{value!r}"
    return None


def _key(number: int, key: Any) -> str:
    """What a table's key is called; parameters, which change themselves, by their place."""
    return f"{key!r:.40}" if isinstance(key, (str, int, float, bytes, tuple)) else f"#{number}"


def _is_content(value: Any) -> bool:
    """What the digest of its container has."""
    if isinstance(value, (list, tuple)) or _simple(value) is not None:
        return True
    import torch

    numpy = sys.modules.get("numpy")
    return isinstance(value, torch.Tensor) or (
        numpy is not None and isinstance(value, numpy.ndarray)
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _place(iterator: Any) -> Word | None:
    """How far it is, without moving it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.14 has no such way into its itertools
        try:
            left = operator.length_hint(iterator, -1)
            if left >= 0:
                return float(left)
            _, inside, *state = iterator.__reduce__()
        except Exception:
            return None
    words = [_simple(each) for each in (*inside, *state)]
    words += [_place(each) for each in inside if isinstance(each, Iterator)]
    words += [
        float(len(each))
        for held in state
        if isinstance(held, tuple)
        for each in held[:1]
        if isinstance(each, list)
    ]
    known = [word for word in words if word is not None and word != NONE]
    return "#" + hashlib.sha256(repr(known).encode()).hexdigest()[:12] if known else None


def _is_theirs(value: Any) -> bool:
    """An object of a library's, but for PyTorch's and NumPy's own."""
    kind = type(value)
    if callable(value) or not hasattr(value, "__dict__"):
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
