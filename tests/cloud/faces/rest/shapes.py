"""JSON with holes, and what fills them.

A text `"$name"` stands for a fact, `"$kind.gpus"` for one inside another; `"$name?"` is left out
where there is none. One is a shape of the facts inside a fact; Each and Keyed are shapes of each of
a list, as an array and as an object by name. Everything else is itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class One:
    of: str
    shape: Any


@dataclass(frozen=True)
class Each:
    of: str
    shape: Any


@dataclass(frozen=True)
class Keyed:
    of: str
    by: str
    shape: Any


_NOTHING = object()


def filled(shape: Any, facts: Mapping[str, Any]) -> Any:
    if isinstance(shape, One):
        return filled(shape.shape, _fact(shape.of, facts))
    if isinstance(shape, Each):
        return [filled(shape.shape, each) for each in _fact(shape.of, facts)]
    if isinstance(shape, Keyed):
        return {_fact(shape.by, each): filled(shape.shape, each) for each in _fact(shape.of, facts)}
    if isinstance(shape, Mapping):
        pairs = {name: filled(inner, facts) for name, inner in shape.items()}
        return {name: value for name, value in pairs.items() if value is not _NOTHING}
    if isinstance(shape, list):
        return [filled(each, facts) for each in shape]
    if isinstance(shape, str) and shape.startswith("$"):
        value = _fact(shape[1:].removesuffix("?"), facts)
        return _NOTHING if shape.endswith("?") and value in (None, "", []) else value
    return shape


def found(at: str, given: Any) -> Any:
    """What lies there in a request, or None."""
    for part in at.split("."):
        given = given.get(part) if isinstance(given, Mapping) else None
    return given


def _fact(name: str, facts: Mapping[str, Any]) -> Any:
    for part in name.split("."):
        facts = facts[part]
    return facts
