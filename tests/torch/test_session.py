"""Trainings that are killed and go on: to the bit what they would have been."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.torch.lives import Training, differ

Make = Callable[[str], Training]


def killed(training: Training, *options: str, world: int = 1, kills: int = 2, seed: int = 0) -> None:
    """Trains in several lives; all but the last end by SIGKILL, at any instant of some step after
    something was saved."""
    rng = random.Random(f"{options} {seed}")
    step = 0
    for _ in range(kills):
        step += rng.randint(6, 12)
        life = training.start(*options, "--step-s", "0.03", world=world)
        life.has_saved(life.begun() + 1 if not step else step - 5).at(step).kill()
    training.start(*options, world=world).done()
    assert training.lives[-1].begun() > 0


@pytest.mark.parametrize(
    ("options", "world"),
    [
        (["--workers", "2", "--ema", "--amp", "bf16"], 1),
        (["--accumulate", "4", "--amp", "scaler"], 1),
        (["--kind", "ddp", "--powersgd", "--workers", "2"], 2),
        (["--kind", "fsdp", "--accumulate", "3"], 2),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else str(given),
)
def test_the_weights_are_those_of_an_uninterrupted_training(
    training: Make, options: list[str], world: int
) -> None:
    whole, broken = training("whole"), training("broken")
    options = ["--every-steps", "5", *options]
    whole.start(*options, world=world).done()
    killed(broken, *options, world=world)
    assert differ(whole, broken) == []
    assert whole.seen() == broken.seen()
