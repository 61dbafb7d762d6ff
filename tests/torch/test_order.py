"""Every sample once an epoch, at least one on every rank, whatever happens to the world."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.order import (
    Point,
    Span,
    Step,
    following,
    permutation,
    slices,
    steps,
    steps_in,
    take,
)
from tradewind.torch.feeds.scattered import Scattered

SIZE = st.integers(1, 300)
WORLD = st.integers(1, 9)
BATCH = st.integers(1, 17)


def taken(step: Step, world: int, batch: int) -> list[tuple[int, int]]:
    """What the ranks take, one after the other; that each has some, and not too much."""
    seen = []
    for rank in range(world):
        mine = [
            (span.epoch, at) for span in step.of(rank, world) for at in range(span.start, span.stop)
        ]
        assert 1 <= len(mine) <= max(batch, 2)
        assert batch == 1 or len(mine) <= batch
        seen += mine
    return seen


@given(SIZE, WORLD, BATCH)
def test_each_sample_is_seen_once_an_epoch(size: int, world: int, batch: int) -> None:
    if size < world:
        size += world
    seen = Counter[tuple[int, int]]()
    for step in steps(Point(), size, world, batch, last_epoch=2):
        seen.update(taken(step, world, batch))
    assert seen == Counter((epoch, at) for epoch in range(3) for at in range(size))


@given(st.integers(10, 300), BATCH, st.lists(st.tuples(WORLD, st.integers(1, 8)), max_size=8))
def test_and_when_the_number_of_ranks_changes(
    size: int, batch: int, worlds: list[tuple[int, int]]
) -> None:
    """Each world makes a few steps, and one rank ends what is left of the third epoch."""
    place, seen = Point(), Counter[tuple[int, int]]()
    for world, count in [*worlds, (1, 10_000)]:
        for _ in range(count):
            step = following(place, size, world, batch, last_epoch=2 if world == 1 else None)
            if step is None:
                break
            seen.update(taken(step, world, batch))
            place = step.after
    assert max(seen.values()) == 1
    assert set(seen) >= {(epoch, at) for epoch in range(3) for at in range(size)}


@given(SIZE, WORLD, BATCH)
def test_whole_batches_only_where_the_rest_is_dropped(size: int, world: int, batch: int) -> None:
    made = list(steps(Point(), size, world, batch, drop_last=True, last_epoch=1))
    assert len(made) == 2 * (size // (world * batch))
    for step in made:
        assert step.count == world * batch
        assert len(step.spans) == 1


@given(SIZE, WORLD)
def test_batches_as_the_unit_are_never_joined(size: int, world: int) -> None:
    """One each, a rest goes into the next epoch; only at the very end some come again."""
    if size < world:
        size += world
    seen = Counter[tuple[int, int]]()
    for step in steps(Point(), size, world, 1, single=True, last_epoch=2):
        assert step.count == world
        for rank in range(world):
            for span in step.of(rank, world):
                seen.update((span.epoch, at) for at in range(span.start, span.stop))
    assert set(seen) == {(epoch, at) for epoch in range(3) for at in range(size)}
    assert seen.total() - 3 * size == -3 * size % world


def test_a_step_is_a_function_of_the_place_alone() -> None:
    """Going on from any place makes the steps that would have come."""
    made = list(steps(Point(), 103, 3, 8, last_epoch=1))
    for number, step in enumerate(made):
        assert list(steps(step.after, 103, 3, 8, last_epoch=1)) == made[number + 1 :]


@pytest.mark.parametrize(
    ("left", "world", "batch", "counts"),
    [
        (32, 2, 8, [16, 16]),
        (33, 2, 8, [16, 8, 9]),  # 17 are too many for one step and one too few for two ranks
        (18, 2, 8, [16, 2]),
        (15, 2, 8, [15]),
        (5, 3, 1, [5]),
        (7, 2, 1, [2, 2, 3]),
    ],
)
def test_the_tail(left: int, world: int, batch: int, counts: list[int]) -> None:
    made = steps(Point(0, 100), 100 + left, world, batch, last_epoch=0)
    assert [step.count for step in made] == counts


def test_few_samples_after_a_change_of_the_world() -> None:
    step = following(Point(0, 98), 100, 3, 4)
    assert step is not None
    assert step.spans == (Span(0, 98, 100), Span(1, 0, 10))
    assert step.after == Point(1, 10)
    last = following(Point(0, 98), 100, 3, 4, last_epoch=0)
    assert last is not None
    assert last.spans == (Span(0, 98, 100), Span(0, 0, 1))
    assert following(last.after, 100, 3, 4, last_epoch=0) is None


def test_slices_are_even() -> None:
    assert slices(10, 4) == [(0, 3), (3, 6), (6, 8), (8, 10)]


def test_orders_differ_by_seed_and_epoch_and_come_again() -> None:
    orders = {tuple(permutation(50, seed, epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9
    assert all(sorted(order) == list(range(50)) for order in orders)
    # As it was on the day when it was written: checkpoints outlive versions.
    assert list(permutation(8, 1, 2)) == [4, 7, 2, 1, 3, 6, 0, 5]
    assert mixed(1, 2) != mixed(2, 1)


@given(st.integers(1, 3000), st.integers(0, 1 << 64))
def test_an_order_without_memory_has_every_sample_once(size: int, key: int) -> None:
    order = Scattered(size, key)
    whole = order[0:size].tolist()
    assert sorted(whole) == list(range(size))
    assert order[size // 3 : size // 2].tolist() == whole[size // 3 : size // 2]
    assert order[size : size + 5].tolist() == []


def test_large_epochs_are_ordered_without_a_list() -> None:
    size = 10**9
    first, second = permutation(size, 3, 0), permutation(size, 3, 1)
    assert len(first) == size
    here = first[500_000_000:500_000_064].tolist()
    assert len(set(here)) == 64
    assert max(here) < size
    assert here == permutation(size, 3, 0)[500_000_000:500_000_064].tolist()
    assert here != second[500_000_000:500_000_064].tolist()
    # Spread out: neighbours come from anywhere.
    drawn = first[0:20_000]
    assert 0.49 < drawn.mean() / size < 0.51
    assert abs(drawn[1:] - drawn[:-1]).mean() / size > 0.3


@given(
    size=st.integers(0, 200),
    world=st.integers(1, 5),
    batch=st.integers(1, 9),
    drop_last=st.booleans(),
)
def test_the_steps_of_an_epoch_are_counted_without_making_them(
    size: int, world: int, batch: int, drop_last: bool
) -> None:
    made, left = 0, size
    while some := take(left, world, batch, drop_last=drop_last):
        made, left = made + 1, left - some
    assert steps_in(size, world, batch, drop_last=drop_last) == made
