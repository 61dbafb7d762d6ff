"""Orders of shards: every sample once, few shards at a time, whatever the number of ranks."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tradewind.torch.data.shardorder import ShardOrder
from tradewind.torch.feeds.order import Point, steps

COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=20).filter(any)
LANES = st.integers(1, 9)
BLOCK = st.integers(1, 17)
MIX = st.integers(0, 5)


@given(COUNTS, LANES, BLOCK, MIX, st.integers(0, 99))
def test_every_sample_comes_once(
    counts: list[int], lanes: int, block: int, mix: int, seed: int
) -> None:
    order = ShardOrder(counts, seed, 1, lanes, block, mix)
    size = sum(counts)
    whole = order[0:size]
    assert len(order) == size
    assert sorted(whole) == list(range(size))
    if not mix:
        assert whole == list(range(size))
    # Any slice, asked for in any order, is that of the whole.
    rng = random.Random(seed)
    for _ in range(10):
        start = rng.randint(0, size)
        stop = rng.randint(start, size)
        assert order[start:stop] == whole[start:stop]
        starts = [sum(counts[:n]) for n in range(len(counts) + 1)]
        touched = {
            next(n for n in range(len(counts)) if starts[n] <= each < starts[n + 1])
            for each in whole[start:stop]
        }
        assert touched <= set(order.near(start, stop))


def test_the_ranks_that_began_stay_with_their_shards() -> None:
    counts, world, batch = [100] * 40, 4, 10
    order = ShardOrder(counts, 3, 0, world, batch, 2)
    of: dict[int, Counter[int]] = {rank: Counter() for rank in range(world)}
    for step in steps(Point(), len(order), world, batch, last_epoch=0):
        for rank in range(world):
            for span in step.of(rank, world):
                of[rank].update(each // 100 for each in order[span.start : span.stop])
    assert [len(shards) for shards in of.values()] == [10] * world
    assert all(samples == 100 for shards in of.values() for samples in shards.values())


def test_epochs_and_seeds_differ_and_shards_are_mixed() -> None:
    counts = [50] * 16
    orders = [ShardOrder(counts, seed, epoch, 1, 8, 4)[0:800] for seed, epoch in
              [(1, 0), (1, 1), (2, 0)]]  # fmt: skip
    assert len({tuple(each) for each in orders}) == 3
    assert orders[0] == ShardOrder(counts, 1, 0, 1, 8, 4)[0:800]
    first = Counter(each // 50 for each in orders[0][:100])
    assert len(first) == 4  # of the four that are read together
    assert min(first.values()) > 10
