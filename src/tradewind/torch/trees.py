"""State as people's objects give it, taken apart: tensors by name, and the rest as plain values.

The engine writes tensors; what is left, with a mark where each tensor was, is small and is kept as
bytes. Putting it together again needs the tensors' shapes first, and those are in the marks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from tradewind.base.errors import InvalidValue

_MARK = "\0tensor"
_PLAIN = {str, int, float, bool, bytes, type(None)}


def apart(value: Any, name: str, tensors: dict[str, Any]) -> Any:
    """`value` without its tensors, which are put into `tensors`."""
    import torch

    if isinstance(value, torch.Tensor):
        while name in tensors:  # dots in names can make two of them the same
            name += "'"
        tensors[name] = value.detach()
        dtype = str(value.dtype).removeprefix("torch.")
        sharded = hasattr(value, "placements")
        return {_MARK: [name, dtype, list(value.shape), value.device.type == "cpu", sharded]}
    if isinstance(value, dict):
        return {key: apart(each, f"{name}.{key}", tensors) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        made = [apart(each, f"{name}.{number}", tensors) for number, each in enumerate(value)]
        if type(value) in (list, tuple):
            return type(value)(made)
        return made if isinstance(value, list) else tuple(made)
    if type(value).__module__ == "numpy":
        return _of_numpy(value, name, tensors) if value.ndim else value.item()
    return value


def _of_numpy(value: Any, name: str, tensors: dict[str, Any]) -> Any:
    """As a tensor, with a word in the mark that it was none."""
    import torch

    try:
        made: dict[str, list[Any]] = apart(torch.as_tensor(value), name, tensors)
    except TypeError:  # texts and objects: whoever packs it will say so
        return value
    made[_MARK].append("numpy")
    return made


def together(tree: Any, tensors: dict[str, Any]) -> Any:
    if isinstance(tree, dict):
        if _MARK in tree:
            found = tensors[tree[_MARK][0]]
            return found.cpu().numpy() if "numpy" in tree[_MARK][5:] else found
        return {key: together(each, tensors) for key, each in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(together(each, tensors) for each in tree)
    return tree


def empty(tree: Any, make: Callable[[str, Any, list[int], bool, bool], Any]) -> dict[str, Any]:
    """A tensor for each mark: `make(name, dtype, shape, on the CPU, sharded)`."""
    import torch

    made: dict[str, Any] = {}
    if isinstance(tree, dict):
        if _MARK in tree:
            name, dtype, shape, cpu, sharded = tree[_MARK][:5]
            return {name: make(name, getattr(torch, dtype), shape, cpu, sharded)}
        for each in tree.values():
            made |= empty(each, make)
    elif type(tree) in (list, tuple):
        for each in tree:
            made |= empty(each, make)
    return made


def packed(tree: Any, whose: str) -> bytes:
    """As bytes from which nothing but plain values can come back: a checkpoint runs no code."""
    try:
        data = dumped(tree)
    except Exception as error:
        raise _too_much(whose, error) from None
    if not _is_plain(tree):
        readable(data, whose)
    return data


def _is_plain(tree: Any) -> bool:
    """Whether it is sure to come back. Reading it again, to know, takes ten times as long."""
    kind = type(tree)
    if kind is dict:
        return all(map(_is_plain, tree)) and all(map(_is_plain, tree.values()))
    if kind is list or kind is tuple:
        return all(map(_is_plain, tree))
    return kind in _PLAIN


def readable(data: bytes, whose: str) -> None:
    """Raises InvalidValue where they cannot come back: better now than when they are needed."""
    try:
        loaded(data)
    except Exception as error:
        raise _too_much(whose, error) from None


def _too_much(whose: str, error: Exception) -> InvalidValue:
    kind = re.search(r"GLOBAL (\S+)", str(error))
    short = f"a {kind[1]}" if kind else str(error).split("\n")[0][:200]
    return InvalidValue(
        f"the state of {whose} holds more than numbers, texts, lists and tensors: {short}",
        hint="give an object whose state_dict() has only those",
    )


def dumped(state: Any) -> bytes:
    import torch

    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def loaded(data: bytes) -> Any:
    import torch

    return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
