"""A file of the user's that remembers something."""

from __future__ import annotations

from typing import Any

ticks = 0


def tick_once() -> None:
    global ticks
    ticks += 1
    tick.calls += 1


tick: Any = tick_once
tick.calls = 0


def noted(value: int, seen: list[int] = []) -> None:  # noqa: B006 -- as people write it
    seen.append(value)
