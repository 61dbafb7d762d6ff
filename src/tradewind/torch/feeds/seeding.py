"""The random numbers of Python, NumPy and PyTorch: kept, put back, and begun anew."""

from __future__ import annotations

import random  # noqa: TID251 -- its global generator is what people's code draws from
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tradewind.torch.feeds.mixing import mixed

# -- all generators of a process -------------------------------------------------------------------


def captured() -> dict[str, Any]:
    """Of Python, of NumPy (if it is used), of PyTorch's CPU and of every device that has begun."""
    import torch

    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        import numpy as np

        legacy: Any = np.random.get_state(legacy=True)
        kind, keys, *rest = legacy
        state["numpy"] = (kind, torch.from_numpy(keys.astype(np.int64)), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restored(state: dict[str, Any]) -> None:
    import torch

    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        import numpy as np

        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
    devices = state.get("cuda") or []
    if devices and torch.cuda.is_available():
        for device, each in enumerate(devices[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(each, device)


def begun(seed: int) -> None:
    """All of them anew: where a rank has no numbers to go on with, because it is a new one."""
    import torch

    cpu(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def cpu(seed: int) -> None:
    import torch

    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)
    # Not torch.manual_seed: that one begins the devices anew as well.
    torch.default_generator.manual_seed(seed)


def begin(seed: int, own: Sequence[Any] = ()) -> None:
    """Those of the processor, and these others; devices go on."""
    cpu(seed)
    for number, generator in enumerate(own):
        _reseed(generator, mixed(seed, number))


class Aside:
    """The generators of the processor, and these others, as they were when it was made."""

    def __init__(self, own: Sequence[Any] = ()) -> None:
        import torch

        self._own = [(each, state_of(each)) for each in own]

        self._numpy = sys.modules["numpy"].random if "numpy" in sys.modules else None
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._keys = self._numpy.get_state() if self._numpy else None

    def back(self) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy:
            self._numpy.set_state(self._keys)
        for each, state in self._own:
            put_state(each, state)


@contextmanager
def aside() -> Iterator[None]:
    """What is drawn inside is not drawn from what the training draws from."""
    before = Aside()
    try:
        yield
    finally:
        before.back()


# -- generators of people's own ----------------------------------------------------


def generators(*owners: Any) -> list[Any]:
    """Those that these objects can reach, in an order that does not depend on the process: their
    own, those of what they hold (transforms in lists, datasets in datasets), and those that their
    functions name, at the top of their files or in the function around them."""
    return reached(kinds(), *owners)


def reached(kinds: tuple[type, ...], *owners: Any) -> list[Any]:
    """Objects of other kinds, in the same way."""
    search = _Search(kinds)
    for owner in owners:
        search.enter(owner, _DEPTH)
    return list(search.found.values())


_DEPTH = 16  # transforms lie in lists, in transforms, in datasets, in datasets
_LONG = 64  # of lists: longer ones are data
_MOST = 20_000


class _Search:
    def __init__(self, kinds: tuple[type, ...]) -> None:
        self._kinds = kinds
        self.found: dict[int, Any] = {}
        self._seen: set[int] = set()

    def enter(self, owner: Any, depth: int) -> None:
        if owner is None or isinstance(owner, (str, bytes, int, float, ModuleType)):
            return
        if id(owner) in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add(id(owner))
        if isinstance(owner, self._kinds):
            self.found.setdefault(id(owner), owner)
        elif depth > 0:
            for each in self._inside(owner):
                self.enter(each, depth - 1)

    def _inside(self, owner: Any) -> list[Any]:
        if isinstance(owner, (list, tuple)):
            return list(owner) if len(owner) <= _LONG else []
        if isinstance(owner, dict):
            return list(owner.values()) if len(owner) <= _LONG else []
        if isinstance(owner, FunctionType):
            return self._named(owner)
        if isinstance(owner, MethodType):
            return [owner.__self__, owner.__func__]
        if isinstance(owner, partial):
            return [owner.func, owner.args, owner.keywords]
        if isinstance(owner, type):
            return self._methods(owner)
        return [*_attributes(owner), type(owner)]

    def _methods(self, kind: type) -> list[Any]:
        """Only of classes that are written in Python by people who use PyTorch, not of it."""
        if kind.__module__.partition(".")[0] in ("torch", "builtins", "numpy", "abc", "typing"):
            return []
        found = [
            each for each in vars(kind).values() if isinstance(each, (FunctionType, *self._kinds))
        ]
        return [*found, *(base for base in kind.__bases__ if base is not object)]

    def _named(self, function: FunctionType) -> list[Any]:
        """What a function can name: of its file only generators and other functions of the file."""
        closed = [_content(cell) for cell in function.__closure__ or ()]
        own = function.__globals__
        named = [own[name] for name in _names(function.__code__) if name in own]
        near = [
            each
            for each in named
            if isinstance(each, self._kinds)
            or (isinstance(each, FunctionType) and each.__globals__ is own)
        ]
        return [*closed, *(function.__defaults__ or ()), *near]


def _names(code: CodeType) -> list[str]:
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return [*code.co_names, *inner]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def within(*owners: Any, most: int, but: tuple[str, ...] = ()) -> Iterator[Any]:
    """All that these objects hold, however deep it lies, those near first; at most so many. What
    their classes and functions name is not followed, nor what objects of these classes have."""
    waiting, seen = deque(owners), {id(owner) for owner in owners}
    while waiting:
        yield (owner := waiting.popleft())
        if type(owner).__name__ in but:
            continue
        for each in _held_by(owner):
            if type(each) in _SIMPLE or id(each) in seen or isinstance(each, (type, ModuleType)):
                continue
            if len(seen) >= most:
                break
            seen.add(id(each))
            waiting.append(each)


_SIMPLE = (str, bytes, int, float, bool, type(None))
_MANY = 1024  # environments side by side, for instance


def _held_by(owner: Any) -> Iterable[Any]:
    if isinstance(owner, (list, tuple, deque)):  # a set has another order in each process
        return list(islice(owner, _MANY))
    if isinstance(owner, dict):
        return list(islice(owner.values(), _MANY))
    if isinstance(owner, FunctionType):
        return [_content(cell) for cell in owner.__closure__ or ()]
    if isinstance(owner, MethodType):
        return [owner.__self__, owner.__func__]
    if isinstance(owner, partial):
        return [owner.func, owner.args, owner.keywords]
    return _attributes(owner)


def _attributes(owner: Any) -> list[Any]:
    held = list(getattr(owner, "__dict__", {}).values())
    for kind in type(owner).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        held += [getattr(owner, n, None) for n in ([slots] if type(slots) is str else slots)]
    return held


def kinds() -> tuple[type, ...]:
    """Of generators."""
    import torch

    found = [random.Random, torch.Generator]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        found += [numpy.Generator, numpy.RandomState]
    return tuple(found)


def state_of(generator: Any) -> Any:
    """In numbers, texts, lists and tensors."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return _plain(generator.bit_generator.state)
    if hasattr(generator, "manual_seed"):
        return generator.get_state()
    return _plain(generator.get_state(legacy=False))


def put_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        version, numbers, gauss = state
        generator.setstate((version, tuple(numbers), gauss))
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = _arrays(state)
    else:
        generator.set_state(state if hasattr(generator, "manual_seed") else _arrays(state))


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _plain(each) for key, each in state.items()}
    return {"array": state.tolist()} if hasattr(state, "tolist") else state


def _arrays(state: Any) -> Any:
    if isinstance(state, dict) and state.keys() == {"array"}:
        import numpy as np

        return np.array(state["array"], dtype=np.uint64)
    return {k: _arrays(v) for k, v in state.items()} if isinstance(state, dict) else state


def _reseed(generator: Any, seed: int) -> None:
    """`generator` goes on as a new one of its kind would begin."""
    if isinstance(generator, random.Random):
        generator.seed(seed)
    elif hasattr(generator, "bit_generator"):
        kind = type(generator.bit_generator)
        generator.bit_generator.state = kind(seed).state
    elif hasattr(generator, "manual_seed"):
        generator.manual_seed(seed)
    else:
        generator.seed(seed & 0xFFFFFFFF)
