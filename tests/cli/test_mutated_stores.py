"""Ten commands on stores in which somebody has changed something: each ends by itself, with what it
is for or with what is wrong, and never as a bug of ours."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from tests.cli.conftest import Cli
from tests.mutations import mutated
from tradewind import store as stores
from tradewind.sim.faults import RUN, simulate
from tradewind.store.base import Store

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ps", "--all"),
    ("show", RUN),
    ("show", RUN, "--json"),
    ("cost",),
    ("logs", RUN),
    ("top", RUN, "--once"),
    ("get", RUN),
    ("stop", RUN, "--no-wait"),
    ("tick",),
    ("sweep",),
)
MOST_S = 60
STRAY = (
    "volumes/x",
    "volumes/00000000000000000007.jsonl",
    "journal/x",
    "machines/../x",
    "rehearsal.json",
)


def a_store(at: Path, seed: int) -> Store:
    rng = Random(f"store/{seed}")
    objects = dict(simulate(seed % 7).objects)
    for _ in range(rng.choice((1, 1, 2))):
        kinds = sorted({_kind(key) for key in objects})
        kind = rng.choice(kinds)
        key = rng.choice(sorted(each for each in objects if _kind(each) == kind))
        objects[key] = mutated(rng, objects[key])
    if rng.random() < 0.3:
        objects[f"runs/{RUN}/{rng.choice(STRAY)}"] = rng.choice((b"", b"{}", b"\xff"))
    if rng.random() < 0.1:
        del objects[rng.choice(sorted(objects))]
    objects.setdefault(f"live/{RUN}", b"{}")
    for key, data in objects.items():
        place = at / key
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return stores.open(str(at))


def _kind(key: str) -> str:
    parts = key.split("/")
    return parts[2] if parts[0] == "runs" and len(parts) > 3 else parts[0]


def _late(number: int, frame: FrameType | None) -> None:
    raise AssertionError(f"a command went on for {MOST_S} s")


@pytest.mark.parametrize(
    ("first", "many"),
    [(0, 3), *(pytest.param(at, 50, marks=pytest.mark.long) for at in range(3, 2003, 50))],
)
def test_commands_on_mutated_stores_end_with_a_value_or_an_error(
    first: int, many: int, cli: Cli, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGALRM, _late)
    try:
        for seed in range(first, first + many):
            store = a_store(tmp_path / str(seed), seed)
            for command in COMMANDS:
                signal.alarm(MOST_S)
                ran = cli(*command, "--store", store.url)
                signal.alarm(0)
                said = ran.out + ran.err
                assert "this is a bug" not in said, (seed, command, said)
                assert ran.code == 0 or "error" in ran.err or ran.out, (seed, command, said)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
