"""Trainings spread over two ranks: what one process would have made of them; and killed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.torch.lives import Life, Nursery, Training, differ

pytestmark = pytest.mark.slow

Make = Callable[[str], Training]


def options(layout: dict[str, Any] | None = None, *more: str, compress: Any = None) -> list[str]:
    found = list(more)
    if layout is not None:
        found += ["--layout", json.dumps(layout)]
    if compress is not None:
        found += ["--compress", json.dumps(compress)]
    return found


def losses(life: Life) -> list[float]:
    found = re.search(r"^losses (\[.*\])", life.log(), re.M)
    assert found, life.log()
    made: list[float] = json.loads(found[1])
    return made


def far(one: Training, other: Training) -> float:
    """The largest difference of any weight."""
    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    return max(float((tensor - second[name]).abs().max()) for name, tensor in first.items())


def killed(training: Training, given: list[str], world: int = 2, kills: int = 1) -> None:
    rng = random.Random(str(given))
    step = 0
    for _ in range(kills):
        life = training.start(*given, "--step-s", "0.03", world=world)
        life.has_saved(step + 1).at(step + rng.randint(6, 10)).kill()
        step = life.saved()[-1]
    training.start(*given, world=world).done()
    assert training.lives[-1].begun() > 0


CLIPPED = ("--steps", "10", "--clip", "0.5")


@pytest.fixture(scope="module")
def alone(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """What one process makes of it."""
    made = Training(nursery, tmp_path_factory.mktemp("alone"), "tests.torch.spread")
    life = made.start(*CLIPPED).done()
    assert losses(life)[-1] < losses(life)[0] - 1
    return made


@pytest.mark.parametrize(
    "layout",
    [
        {"micro_batch": 3},
        {"sharding": "zero3", "recompute": "full", "micro_batch": 2},
        {"tp": 2, "micro_batch": 4},
        {"pp": 2, "micro_batch": 2},
    ],
    ids=str,
)
def test_two_ranks_come_to_what_one_would(
    spread: Make, alone: Training, layout: dict[str, Any]
) -> None:
    """The layout comes as a supervisor gives it."""
    two = spread("two")
    two.start(*CLIPPED, world=2, env={"TRADEWIND_LAYOUT": json.dumps(layout)}).done()
    assert far(alone, two) < 1e-4


def test_killed_and_resumed_it_comes_to_the_same_bits(spread: Make) -> None:
    """Stages, of which each has its own; tests/system has all the others."""
    whole, broken = spread("whole"), spread("broken")
    given = options({"pp": 2, "micro_batch": 2}, "--dropout", "0.1")
    life = whole.start(*given, world=2).done()
    killed(broken, given)
    assert losses(life)[-1] < losses(life)[0]
    assert differ(whole, broken) == []


def test_error_feedback_is_put_back(spread: Make) -> None:
    """What compression left out before the kill is sent after it."""
    whole, broken = spread("whole"), spread("broken")
    given = options({"micro_batch": 2}, compress={"kind": "topk", "share": 0.2})
    whole.start(*given, "--steps", "14", world=2).done()
    broken.start(*given, "--steps", "14", "--step-s", "0.03", world=2).has_saved(5).kill()
    broken.start(*given, "--steps", "14", world=2).done()
    assert broken.lives[-1].begun() > 0
    assert differ(whole, broken) == []
