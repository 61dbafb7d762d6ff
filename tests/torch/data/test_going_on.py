"""Trainings of shards and of tokens that are killed: to the bit what they would have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import tradewind.torch as tw
from tests.torch.data.test_shards import numbered
from tests.torch.lives import Training, differ
from tests.torch.test_session import killed

pytestmark = pytest.mark.slow

Make = Callable[[str], Training]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    tw.write_shards(place / "shards", numbered(101), shard_bytes=30_000)
    numbers = ([number] * 4 for number in range(101))
    tw.write_tokens(place / "tokens.npy", [*numbers, [0]], vocab=200)
    return place


@pytest.mark.parametrize("workers", [0, 2])
def test_shards_go_on_to_the_bit(training: Make, data: Path, workers: int) -> None:
    """By way of a cache that holds a part of them, from a folder as from a store."""
    whole, broken = training("whole"), training("broken")
    options = ["--data", "shards", "--where", str(data / "shards"), "--cache-bytes", "400000"]
    options += ["--workers", str(workers), "--every-steps", "5"]
    whole.start(*options).done()
    killed(broken, *options)
    assert differ(whole, broken) == []
    assert whole.seen() == broken.seen()


def test_every_sample_of_shards_is_seen_once_whatever_the_world(training: Make, data: Path) -> None:
    moved = training("moved")
    options = tuple("--data shards --epochs 3 --batch 4 --every-steps 3 --layernorm".split())
    options += ("--where", str(data / "shards"))
    slowly = (*options, "--step-s", "0.03", "--kind", "ddp")
    first = moved.start(*slowly, world=2).has_saved(3).at(5)
    first.kill()
    second = moved.start(*slowly, "--workers", "2", world=3)
    second.has_saved(first.saved()[-1] + 1).kill()
    last = moved.start(*options, "--workers", "1").done()
    assert last.begun() > second.begun() > 0
    assert moved.seen() == Counter((epoch, index) for epoch in range(3) for index in range(101))


def test_tokens_go_on_to_the_bit(training: Make, data: Path) -> None:
    whole, broken = training("whole"), training("broken")
    options = ["--data", "tokens", "--where", str(data / "tokens.npy"), "--workers", "2"]
    options += ["--every-steps", "5"]
    whole.start(*options).done()
    killed(broken, *options, kills=1)
    assert differ(whole, broken) == []
    assert whole.seen() == broken.seen()
    assert max(index for _, index in whole.seen()) == 100
