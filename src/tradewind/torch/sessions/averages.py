"""Averages of the weights, wherever a script or a library keeps them: lists and tables of tensors
that have the shapes of a trained model's parameters, or one long tensor of all of them.

Modules are not looked for here. What is looked for is found from the tensors that exist: those of
one shape, which few parameters have, and what refers to them. So it makes no difference how deep it
lies in which objects. It counts once it has a name: a variable of the functions that lead here, a
closure, something at the top of a file, or an attribute.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

from tradewind.torch.sessions import users
from tradewind.torch.sessions.looking import attributes_of, digest_of
from tradewind.torch.sessions.state import Parts, bare

_MOST = 64
"""Tensors of the shape that is looked for: more are data."""
_COMPARED = 64
_OURS = ("tradewind", "torch")
Shapes = Counter[tuple[int, ...]]


class Average:
    """Tensors that belong together. `inside` is what holds them: a list, a table, an object whose
    attributes they are; or the one tensor itself."""

    def __init__(self, inside: Any, name: str, owner: Any, apart: set[int]) -> None:
        self.inside, self.name, self.owner, self._apart = inside, name, owner, apart

    def seen(self) -> Seen:
        tensors = self._tensors()
        return Seen(self.name, id(self.inside), [ref(each) for each in tensors], self.word())

    def word(self) -> str:
        return digest_of(self._tensors()[:_COMPARED])

    def _tensors(self) -> list[Any]:
        return _tensors(self.inside, self._apart) or [self.inside]


class Seen(NamedTuple):
    """What it was, without keeping it alive."""

    name: str
    inside: int
    tensors: list[Any]
    word: str

    def is_that(self, other: Seen) -> bool:
        """Whether this is the same, perhaps changed, and nothing that was made anew. What one
        attribute has is."""
        pairs = zip(self.tensors, other.tensors, strict=False)
        same = any((there := mine()) is not None and there is theirs() for mine, theirs in pairs)
        return same or self.inside == other.inside or (self.name == other.name and "." in self.name)


def found(parts: Parts, held: Callable[[], Iterable[Any]]) -> list[Average]:
    """Those that the session does not hold. `held`: objects that it holds, or somebody else
    does."""
    wanted = [each for key in parts.trained if (each := _shapes(parts.modules[key]))]
    if not wanted:
        return []
    alive, apart = _alive(parts)
    there: dict[int, Any] = {}
    for shapes in wanted:
        sought, total = _sought(shapes), (_total(shapes),)
        some = [each for each in alive if each.shape == sought]
        some = some[:: max(1, shapes[sought] // 2)]  # of each average at least one
        if 0 < len(some) <= _MOST:
            there |= {id(each): each for each in _containers(some, shapes, apart)}
        if len(shapes) > 1:
            there |= {id(each): each for each in alive if each.shape == total}
    if there:
        known = {id(each) for each in held()}
        there = {at: each for at, each in there.items() if at not in known}
    names = _names(list(there.values())) if there else {}
    return [Average(there[at], name, owner, apart) for at, (name, owner) in names.items()]


def as_weights(parts: Parts) -> set[str]:
    """What copies of the weights look like just now: they are made anew from them."""
    made = set()
    for key in parts.trained:
        trained = [p for p in bare(parts.modules[key]).parameters() if p.requires_grad]
        made.add(digest_of(trained[:_COMPARED]))
    return made


# -- what is looked for ----------------------------------------------------------------------------


def _shapes(module: Any) -> Shapes:
    """Of all that is trained of it; nothing where each rank has only a part."""
    trained = [p for p in bare(module).parameters() if p.requires_grad]
    return Counter() if any(not _is_whole(p) for p in trained) else _counted(trained)


def _counted(tensors: Iterable[Any]) -> Shapes:
    return Counter(tuple(each.shape) for each in tensors)


def _sought(shapes: Shapes) -> tuple[int, ...]:
    return min(shapes, key=lambda shape: (shapes[shape], -math.prod(shape)))


def _total(shapes: Shapes) -> int:
    return sum(math.prod(shape) * count for shape, count in shapes.items())


def _alive(parts: Parts) -> tuple[list[Any], set[int]]:
    """Tensors that may be averages, being no intermediate results; and the ids of those that belong
    to modules, or are held."""
    import torch

    apart = _of_session(parts)
    tensors = []
    for each in alive((torch.nn.Module, torch.Tensor)):
        if isinstance(each, torch.Tensor):
            tensors.append(each)
            continue
        for name in ("_parameters", "_buffers"):
            apart |= {id(value) for value in vars(each).get(name, {}).values()}
    some = [each for each in tensors if id(each) not in apart]
    return [each for each in some if _is_free(each)], apart


def alive(kinds: tuple[type, ...]) -> list[Any]:
    """Objects of these kinds that the process has."""
    objects = _there.get()
    return _of(kinds, gc.get_objects() if objects is None else objects)


@contextmanager
def looked_once() -> Iterator[None]:
    """All that is asked inside is answered from one look at the process: it may have millions of
    objects, and each look at them takes a second then."""
    import torch
    from torch.optim.lr_scheduler import LRScheduler

    kinds = (torch.nn.Module, torch.Tensor, LRScheduler, torch.amp.GradScaler)
    token = _there.set(_of(kinds, gc.get_objects()))
    try:
        yield
    finally:
        _there.reset(token)


_there: ContextVar[list[Any] | None] = ContextVar("there", default=None)


def _of(kinds: tuple[type, ...], objects: list[Any]) -> list[Any]:
    wanted = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
    return [each for each in objects if type(each) in wanted]


def _is_free(tensor: Any) -> bool:
    """No intermediate result, and whole."""
    try:
        return tensor.grad_fn is None and _is_whole(tensor)
    except RuntimeError:
        return False  # undefined: PyTorch keeps some that have no values at all


def _is_whole(tensor: Any) -> bool:
    """With all its values here."""
    return not hasattr(tensor, "placements") and tensor.device.type != "meta"


def _of_session(parts: Parts) -> set[int]:
    held = {id(each) for each in parts.names}
    held |= {id(each.grad) for each in parts.names if each.grad is not None}
    for optimizer in parts.optimizers.values():
        for values in optimizer.state.values():
            if isinstance(values, Mapping):
                held |= {id(value) for value in values.values()}
    return held


# -- where it is -----------------------------------------------------------------------------------


def _containers(some: list[Any], shapes: Shapes, apart: set[int]) -> list[Any]:
    """What holds tensors of all these shapes."""
    return [
        each
        for each in gc.get_referrers(*some)
        if each is not some and _counted(_tensors(each, apart)) >= shapes
    ]


def _tensors(container: Any, apart: set[int]) -> list[Any]:
    import torch

    values: Iterable[Any] = ()
    if isinstance(container, Mapping):
        values = list(container.values())
    elif isinstance(container, (list, tuple)):
        values = container
    elif not isinstance(container, (type, ModuleType, FrameType, CellType, torch.Tensor)):
        values = [value for _, value in attributes_of(container)]
    return [v for v in values if isinstance(v, torch.Tensor) and id(v) not in apart]


Named = dict[int, tuple[str, Any]]
"""By what it is of: its name, and the object that has it."""


def _names(some: list[Any]) -> Named:
    """Of those that have one that a script could mean."""
    made: Named = {}
    left = {id(each) for each in some}
    for frame in users.frames():
        there = frame.f_locals
        left -= {id(there), id(frame.f_globals)}  # this function's variables themselves
        for name, value in list(there.items()):
            if id(value) in left:
                made.setdefault(id(value), _variable(name, value))
    for module in users.modules():
        made = {**_of_file(module, left), **made}
    some = [each for each in some if id(each) in left - made.keys()]
    above = gc.get_referrers(*some) if some else []
    tables = [each for each in above if type(each) is dict]
    above += gc.get_referrers(*tables) if tables else []
    ids = {id(each) for each in some}
    for each in above:
        if isinstance(each, CellType):
            named = _closed(each) if id(each.cell_contents) in ids else {}
        else:
            named = _attributes(each, ids)
        made = {**named, **made}
    return made


def _variable(name: str, value: Any) -> tuple[str, Any]:
    plain = isinstance(value, (list, tuple, Mapping)) or hasattr(value, "grad_fn")
    return (name, None) if plain else (f"{name} ({type(value).__name__})", value)


def _of_file(module: ModuleType, ids: set[int]) -> Named:
    there = list(vars(module).items())
    return {id(value): _variable(name, value) for name, value in there if id(value) in ids}


def _closed(cell: CellType) -> Named:
    """A variable that a function remembers."""
    for closure in gc.get_referrers(cell):
        for each in gc.get_referrers(closure) if type(closure) is tuple else ():
            if isinstance(each, FunctionType) and not _is_apart(each.__module__ or ""):
                names = zip(each.__code__.co_freevars, each.__closure__ or (), strict=False)
                name = next((name for name, there in names if there is cell), "")
                return {id(cell.cell_contents): (f"{name} (of {each.__qualname__})", None)}
    return {}


def _attributes(owner: Any, ids: set[int]) -> Named:
    kind = type(owner)
    if _is_apart(kind.__module__) or isinstance(owner, (type, ModuleType)):
        return {}
    made: Named = {}
    if id(there := getattr(owner, "__dict__", None)) in ids:
        made[id(there)] = kind.__name__, owner
    for name, value in attributes_of(owner):
        if id(value) in ids:
            made[id(value)] = f"{kind.__name__}.{name}", owner
    return made


def _is_apart(module: str) -> bool:
    return module.partition(".")[0] in (*_OURS, "builtins", "types", "weakref", "collections")
