"""What somebody else may have made of an object: the same bytes with something changed in them, by
whoever may write where it lies. A seed repeats it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

NASTY: tuple[Any, ...] = (
    -1, 0, 1, 2**31, 2**63 - 1, 2**63, 10**18, 10**30, 10**400, -(10**400), 1e-300, 1e300, 1.5,
    "", "x", "\0", "../../x", "=1+1", "\x1b]0;x\x07", "9" * 5000, "x" * 100_000, None, True, [], {},
    [[]], {"": ""},
)  # fmt: skip


def mutated(rng: Random, data: bytes) -> bytes:
    """Most often one value of a JSON document, or of one of its lines; else of its bytes."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        lines[at] = json.dumps(_changed(rng, value)).encode()
        return b"\n".join(lines)
    return _torn(rng, data)


def _changed(rng: Random, value: Any) -> Any:
    places = list(_places(value))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        where, key = rng.choice(places)
        if key not in (range(len(where)) if isinstance(where, list) else where):
            continue  # it was changed before
        how = rng.random()
        if how < 0.5:
            where[key] = _alike(rng, where[key])
        elif how < 0.7:
            where[key] = rng.choice(NASTY)
        elif how < 0.85 and isinstance(where, dict):
            where.pop(key, None)
        elif isinstance(where, list):
            where.append(where[key])
        else:
            where[str(rng.choice(NASTY))[:300]] = rng.choice(NASTY)
    return value


def _alike(rng: Random, value: Any) -> Any:
    """Of the same type, so that it is read: what is wrong with it shows later."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(
            (0, 1, -1, value + 1, -value, 2 * value, 10**9, 10**11, 10**15, 2**63 - 1)
        )
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e-12, 2 * value, -value, 1e15, 1e30))
    if isinstance(value, str):
        return rng.choice(("", "x", value + "x", value[:-1], "../../x", "\x1b[2J", "y" * 300))
    return rng.choice(NASTY)


def _places(value: Any) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def _torn(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    garbage = bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
    return rng.choice(
        (
            b"",
            data[:at],
            data[:at] + garbage + data[at:],
            data[:at] + data[at + rng.randrange(8) :],
            data + data,
            b"[" * 100_000,
            b"\xff" + data,
        )
    )
