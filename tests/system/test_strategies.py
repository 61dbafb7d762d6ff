"""Every strategy killed and resumed; more ranks and combinations than `make test` has time for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import and_long
from tests.torch.lives import Nursery, Training, differ
from tests.torch.test_strategies import CLIPPED, far, killed, losses, options

pytestmark = pytest.mark.system
Make = Callable[[str], Training]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def spread(nursery: Nursery, tmp_path: Path) -> Make:
    return lambda name: Training(nursery, tmp_path / name, "tests.torch.spread")


HALF = {"sharding": "zero3", "recompute": "full", "micro_batch": 2, "precision": "bf16"}


@pytest.mark.parametrize(
    ("given", "world"),
    and_long(
        [
            (options(compress={"kind": "topk", "share": 0.1}), 3),
            (options(HALF), 2),
            (options({"pp": 2, "micro_batch": 2, "precision": "bf16"}, "--schedule", "gpipe"), 2),
            (options({"tp": 2, "dp": 2, "sharding": "zero3"}), 4),
        ],
        [
            (options({"dp": 4, "sharding": "hybrid", "shard": 2, "micro_batch": 1}), 4),
            (options(compress="fp16"), 2),
            (options(compress="bf16"), 2),
            (options(compress={"kind": "powersgd", "start": 3, "min_rate": 0.5}), 2),
            (options({"precision": "fp16", "micro_batch": 1}), 2),
            (options({"sharding": "zero1", "recompute": "selective", "precision": "fp16"}), 2),
            (options({"tp": 2, "micro_batch": 4, "precision": "bf16"}), 2),
            (options({"pp": 2, "micro_batch": 2}, "--traced"), 2),
            (options({"pp": 2, "dp": 2, "micro_batch": 2}), 4),
            (options({"pp": 2, "dp": 2, "micro_batch": 2, "sharding": "zero1"}), 4),
            (options({"pp": 2, "tp": 2, "micro_batch": 2}), 4),
        ],
    ),
    ids=str,
)
def test_killed_and_resumed_it_comes_to_the_same_bits(
    spread: Make, given: list[str], world: int
) -> None:
    whole, broken = spread("whole"), spread("broken")
    batch = "9" if world == 3 else "8"
    given = [*given, "--dropout", "0.1", "--batch", batch]
    life = whole.start(*given, world=world).done()
    killed(broken, given, world=world)
    assert losses(life)[-1] < losses(life)[0]
    assert differ(whole, broken) == []


@pytest.mark.parametrize(
    ("layout", "world"),
    and_long(
        [
            ({"sharding": "zero1", "recompute": "selective", "micro_batch": 2}, 2),
            ({"tp": 2, "dp": 2, "sharding": "zero3", "recompute": "full"}, 4),
            ({"pp": 2, "dp": 2, "micro_batch": 2, "sharding": "zero3"}, 4),
        ],
        [
            ({"sharding": "zero2"}, 2),
            ({"pp": 2, "dp": 2, "micro_batch": 2}, 4),
            ({"pp": 2, "tp": 2, "micro_batch": 2}, 4),
            ({"dp": 4, "sharding": "hybrid", "shard": 2}, 4),
        ],
    ),
    ids=str,
)
def test_more_ranks_come_to_what_one_would(
    spread: Make, layout: dict[str, Any], world: int
) -> None:
    alone, more = spread("alone"), spread("more")
    alone.start(*CLIPPED).done()
    more.start(*options(layout, *CLIPPED), world=world).done()
    assert far(alone, more) < 1e-4


def test_a_training_goes_on_in_another_layout(spread: Make) -> None:
    """As a run does that moves to other machines: stages, then shards, then one process."""
    alone, moved = spread("alone"), spread("moved")
    alone.start().done()
    slowly = ("--step-s", "0.03")
    pipe = options({"pp": 2, "micro_batch": 2}, *slowly)
    moved.start(*pipe, world=2).has_saved(5).kill()
    both = options({"tp": 2, "sharding": "zero3"}, *slowly)
    life = moved.start(*both, world=4)
    life.has_saved(moved.lives[0].saved()[-1] + 1).kill()
    stages = moved.start(*options({"pp": 2, "micro_batch": 4}, *slowly), world=2)
    stages.has_saved(life.saved()[-1] + 1).kill()
    last = moved.start().done()
    assert last.begun() > stages.begun() > life.begun() > 0
    assert far(alone, moved) < 1e-3


def test_deepspeed_comes_to_what_one_process_would(spread: Make) -> None:
    alone = spread("alone")
    alone.start(*CLIPPED).done()
    for sharding in ("zero1", "zero2", "zero3"):
        more = spread(sharding)
        layout = {"sharding": sharding, "micro_batch": 2}
        more.start(*options(layout, *CLIPPED, "--engine", "deepspeed"), world=2).done()
        assert far(alone, more) < 1e-4


@pytest.mark.parametrize("sharding", and_long(["zero3"], ["zero1"]))
def test_deepspeed_killed_and_resumed(spread: Make, sharding: str) -> None:
    whole, broken = spread("whole"), spread("broken")
    given = options({"sharding": sharding, "precision": "bf16"}, "--engine", "deepspeed")
    given += ["--dropout", "0.1"]
    whole.start(*given, world=2).done()
    killed(broken, given)
    assert differ(whole, broken) == []
    fewer = broken.start(*given, "--steps", "30")
    assert fewer.codes() != [0]
    assert "no deepspeed for these ranks (it is of 2)" in fewer.log()
