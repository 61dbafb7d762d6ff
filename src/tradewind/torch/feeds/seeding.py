"""The random numbers of Python, NumPy and PyTorch: kept, put back, and begun anew."""

from __future__ import annotations

import random  # noqa: TID251 -- its global generator is what people's code draws from
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tradewind.torch.feeds.order import mixed

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
    """The generators of the processor, as they were when it was made."""

    def __init__(self) -> None:
        import torch

        self._numpy = sys.modules["numpy"].random if "numpy" in sys.modules else None
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._keys = self._numpy.get_state() if self._numpy else None

    def back(self) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy:
            self._numpy.set_state(self._keys)


@contextmanager
def aside() -> Iterator[None]:
    """What is drawn inside is not drawn from what the training draws from."""
    before = Aside()
    try:
        yield
    finally:
        before.back()


# -- generators that a dataset keeps for itself ----------------------------------------------------


def generators(owner: Any, depth: int = 3) -> list[Any]:
    """Those among its attributes, in an order that does not depend on the process; datasets wrap
    datasets and transforms, so a few levels down."""
    import torch

    kinds = [random.Random, torch.Generator]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        kinds += [numpy.Generator, numpy.RandomState]
    found: dict[int, Any] = {}
    _search(owner, tuple(kinds), depth, found, set())
    return list(found.values())


def _search(
    owner: Any, kinds: tuple[type, ...], depth: int, found: dict[int, Any], seen: set[int]
) -> None:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    if isinstance(owner, kinds):
        found.setdefault(id(owner), owner)
        return
    inside: list[Any] = []
    if isinstance(owner, (list, tuple)) and len(owner) <= 64:
        inside = list(owner)
    elif isinstance(owner, dict) and len(owner) <= 64:
        inside = list(owner.values())
    elif not isinstance(owner, (str, bytes, int, float, type)):
        inside = list(getattr(owner, "__dict__", {}).values())
    if depth > 0:
        for each in inside:
            _search(each, kinds, depth - 1, found, seen)


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
