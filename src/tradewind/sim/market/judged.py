"""Many markets, in some processes, and how far each run is from what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from msgspec import Struct

from tradewind.sim.market import bounds
from tradewind.sim.market.play import play
from tradewind.sim.market.script import Script

BOUNDS = ("dear", "any", "over", "late")


class Judged(Struct, frozen=True):
    name: str
    says: str
    outcome: str
    cost: int
    """Micro-dollars."""
    done_s: float
    legs: int
    asked: int
    most: float
    """What it may cost."""
    broken: tuple[str, ...]
    bounds: dict[str, float]
    """Of those that it does not keep: how many times what is allowed."""
    story: tuple[str, ...]


def one(script: Script, *, story: bool = False) -> Judged:
    played = play(script, tell=story)
    return Judged(
        script.name,
        script.says,
        played.outcome,
        played.cost,
        played.done_s,
        played.legs,
        played.asked,
        bounds.most(script),
        tuple(bounds.broken(script, played)),
        bounds.passed(script, played),
        played.story,
    )


def judged(scripts: Sequence[Script], jobs: int, *, story: bool = False) -> Iterator[Judged]:
    """In their order, whoever is done first."""
    if jobs == 1:
        for script in scripts:
            yield one(script, story=story)
        return
    # Not forked: numpy has threads of its own.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(one, story=story), scripts, chunksize=4)
