"""Bytes: what operators move, and what is alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

# They touch no memory: what they return is not written yet, or is their input.
_FREE = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided detach alias "
    "lift_fresh _unsafe_view is_same_size resize_ set_".split()
)
# They read as many rows as they return, not the whole table.
_GATHER = frozenset("embedding index index_select gather".split())
# They write their first argument without reading it.
_WRITE = frozenset("copy_ fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_".split())


class Meter:
    """Bytes moved by operators, and bytes alive. Every operator reads and writes all its tensors:
    what a compiler would fuse, or a cache keep, is for the reader of the figures to judge."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.moved = self.live = self.peak = 0
        self.unknown: set[str] = set()
        self._alive: dict[Any, Any] = {}
        self._facts: dict[Any, tuple[str, str, bool, bool]] = {}

    def lives(self, tensor: Any) -> None:
        """Counts the tensor's memory until it is freed; views share it."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._alive:
            return
        size = storage.nbytes()

        def freed(_: Any) -> None:
            self.live -= size
            del self._alive[key]

        self._alive[key] = weakref.ref(storage, freed)
        self.live += size
        self.peak = max(self.peak, self.live)

    def ran(self, operator: Any, args: Any, kwargs: Any, output: Any) -> None:
        library, name, view, mutable = self._known(operator)
        if library == "prim":
            return
        results = list(arguments(self.torch, output))
        for tensor in results:
            self.lives(tensor)
        if view or name in _FREE:
            return
        if library != "aten":
            self.unknown.add(f"{library}::{name}")
        read = list(arguments(self.torch, (*args, *kwargs.values())))
        if name in _GATHER and read and results:
            read = [*read[1:], *results]
        elif name in _WRITE:
            read = read[1:]
        if not mutable:
            # Nothing is copied where the result is the input: reshape, contiguous, to.
            sources = {t.untyped_storage()._cdata for t in read}
            results = [t for t in results if t.untyped_storage()._cdata not in sources]
            if not results:
                return
        self.moved += sum(map(_bytes, read)) + sum(map(_bytes, results))

    def _known(self, operator: Any) -> tuple[str, str, bool, bool]:
        if operator not in self._facts:
            schema = getattr(operator, "_schema", None)
            if schema is None:  # a higher-order operator: flex attention, cond
                facts = ("aten", str(operator), False, False)
            else:
                library, _, name = schema.name.partition("::")
                facts = (library, name, bool(operator.is_view), bool(schema.is_mutable))
            self._facts[operator] = facts
        return self._facts[operator]


def _bytes(tensor: Any) -> int:
    """What lies in memory: an expanded tensor is read from less than it seems."""
    size: int = min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
    return size


def storage_of(tensor: Any) -> Any:
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(tensor.untyped_storage())


def arguments(torch: Any, value: Any) -> Iterator[Any]:
    """Of an operator's arguments: tensors, and lists of them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arguments(torch, part)


def tensors_in(torch: Any, value: Any) -> list[Any]:
    """All in a user's value: nested sequences, mappings, and objects such as data classes."""
    from torch.utils import _pytree as tree

    found = []
    for leaf in tree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif isinstance(leaf, Mapping):
            found += tensors_in(torch, list(leaf.values()))
        elif hasattr(leaf, "__dataclass_fields__"):
            found += tensors_in(torch, [getattr(leaf, key) for key in leaf.__dataclass_fields__])
    return found
