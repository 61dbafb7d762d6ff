"""How a value that people make by hand says what is wrong with it: all of it, field by field.

A check is a generator of `Fault`s over a mapping of what was given. The value itself raises them as
one InvalidValue when it is made; a reader of files asks for them first, so that it can name lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from tradewind.base.errors import InvalidValue

MOST = 10**18  # no count that means something here is larger
NOTHING: Collection[str] = frozenset()


class Fault(NamedTuple):
    field: str  # as the file names it
    message: str
    hint: str = ""


def raise_any(value: str, faults: Iterable[Fault]) -> None:
    found = list(faults)
    if found:
        lines = [f"{value}.{fault.field}: {fault.message}" for fault in found]
        hints = [fault.hint for fault in found if fault.hint]
        raise InvalidValue("\n".join(lines), hint=hints[0] if hints else None)


def fields_of(value: Any) -> dict[str, Any]:
    """Of a dataclass."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def whole(values: Mapping[str, Any], *names: str, field: str = "") -> Iterator[Fault]:
    """Each a whole number from 1, or left out. `field` is its name in a file, if that differs."""
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            yield Fault(field or name, f"{shown(value)} is not a whole number")
        elif value < 1:
            yield Fault(field or name, f"{value} is not more than 0")
        elif value > MOST:
            yield Fault(field or name, f"{value:.3g} is more than can be")


def positive(values: Mapping[str, Any], *names: str, field: str = "") -> Iterator[Fault]:
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield Fault(field or name, f"{shown(value)} is not a number")
        elif not 0 < value <= MOST:
            yield Fault(field or name, f"{value:g} is not more than 0")


def text(values: Mapping[str, Any], *names: str, most: int = 1000) -> Iterator[Fault]:
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or not value.strip():
            yield Fault(name, f"{shown(value)} is no text")
        elif len(value) > most:
            yield Fault(name, f"it is longer than {most:,} characters")


def choice(values: Mapping[str, Any], name: str, choices: Iterable[str]) -> Iterator[Fault]:
    value, legal = values.get(name), list(choices)
    if value is not None and value not in legal:
        yield Fault(name, f"{shown(value)} is none of {', '.join(legal)}")


def flag(values: Mapping[str, Any], *names: str) -> Iterator[Fault]:
    for name in names:
        value = values.get(name)
        if value is not None and not isinstance(value, bool):
            yield Fault(name, f"{shown(value)} is neither true nor false")


def listed(values: Mapping[str, Any], *names: str) -> Iterator[Fault]:
    """Each a tuple of text that is not empty: a list that allows nothing is never meant."""
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, tuple) or not all(isinstance(v, str) and v for v in value):
            yield Fault(name, f"{shown(value)} is not a tuple of names")
        elif not value:
            yield Fault(name, "an empty list allows nothing", "leave the field out to allow all")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
