"""The blocks that a model repeats: what is sharded, recomputed and put into stages one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tradewind.base.errors import InvalidValue


def blocks(model: Any, given: Iterable[Any] | None = None) -> list[tuple[str, Any]]:
    """Names and modules. Given ones are modules, names or classes; else the members of the longest
    lists of alike modules, none inside another. A model without such a list has none."""
    if given is not None:
        return _given(model, list(given))
    lists = []
    for name, module in model.named_modules():
        members = [(f"{name}.{key}" if name else key, each) for key, each in _members(module)]
        if len(members) > 1:
            lists.append(members)
    found: list[tuple[str, Any]] = []
    for members in lists:  # outer ones come first
        if not any(_within(name, outer) for name, _ in members[:1] for outer, _ in found):
            found += members
    return found


def _members(module: Any) -> list[tuple[str, Any]]:
    """Of a list, those of the class that it has most of, if they have parts of their own: rows of
    Linear and ReLU are no blocks."""
    import torch

    if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
        return []
    kinds: dict[type, list[tuple[str, Any]]] = {}
    for name, child in module.named_children():
        if any(True for _ in child.children()) and any(True for _ in child.parameters()):
            kinds.setdefault(type(child), []).append((name, child))
    return max(kinds.values(), key=len, default=[])


def _within(name: str, outer: str) -> bool:
    return name == outer or name.startswith(f"{outer}.")


def _given(model: Any, wanted: list[Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for each in wanted:
        before = len(found)
        for name, module in model.named_modules():
            is_it = module is each or name == each or type(module).__name__ == each
            if is_it or (isinstance(each, type) and isinstance(module, each)):
                found.append((name, module))
        if len(found) == before:
            shown = each if isinstance(each, str) else getattr(each, "__name__", type(each))
            raise InvalidValue(
                f"blocks names {shown}, which is no part of the model",
                hint="give modules, their names (as in named_modules) or their classes",
            )
    return found
