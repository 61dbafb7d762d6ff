"""Loaders of every kind, continued in the middle: the batches that would have come."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds import drawn, seeding
from tradewind.torch.feeds.feed import Feed, OrderedFeed
from tradewind.torch.feeds.sources import feed_of
from tradewind.torch.surroundings import Surroundings
from tradewind.torch.trees import dumped, loaded


class Noisy(Dataset[Any]):
    """Each sample is its number, and a number from every generator."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.own, self.old, self.tensors = (
            np.random.default_rng(),
            random.Random(),
            torch.Generator(),
        )

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> list[float]:
        drawn = [random.random(), float(np.random.rand()), float(torch.rand(()))]
        own = [float(self.own.random()), self.old.random()]
        return [index, *drawn, *own, float(torch.rand((), generator=self.tensors))]


class Batched(Noisy):
    """Fetches all of a batch at once."""

    def __getitems__(self, indices: list[int]) -> list[list[float]]:
        shift = random.random()
        return [[index, shift] for index in indices]


class Stream(IterableDataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        first, every = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, self.size, every):
            yield [index, random.random()]


class Bucketed:
    """Batches of a sampler of the user's own, not as many in each epoch."""

    def __init__(self, size: int) -> None:
        self.size, self.epoch = size, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(self.size))
        random.shuffle(order)
        length = 3 + self.epoch % 2
        yield from (order[at : at + length] for at in range(0, self.size, length))


def as_they_come(samples: list[Any]) -> list[Any]:
    return [*samples, random.random()]


def feed(data: Any, seed: int = 5, rank: int = 0, world: int = 1) -> Feed:
    made = feed_of(data, seed, Surroundings(rank, world))
    assert made is not None
    return made


def all_of(made: Feed, last_epoch: int = 1, most: int = 1000) -> list[Any]:
    batches: list[Any] = []
    made.open(last_epoch)
    while len(batches) < most:
        try:
            batches.append(made.next(None))
        except StopIteration:
            break
    made.close()
    return batches


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


def loader(kind: str, workers: int) -> DataLoader[Any]:
    more: dict[str, Any] = {"num_workers": workers, "collate_fn": as_they_come}
    noisy = Noisy(31)
    made: dict[str, dict[str, Any]] = {
        "shuffled": {"batch_size": 4, "shuffle": True},
        "in order": {"batch_size": 4, "drop_last": True},
        "one by one": {"batch_size": None, "collate_fn": None},
        "subset": {"dataset": Subset(noisy, range(20)), "batch_size": 4, "shuffle": True},
        "at once": {"dataset": Batched(31), "batch_size": 4, "shuffle": True},
        "distributed": {"batch_size": 4, "sampler": DistributedSampler(noisy, 2, 1, seed=9)},
        "weighted": {"batch_size": 4, "sampler": WeightedRandomSampler([1.0, 2.0] * 15, 25)},
        "some": {"batch_size": 4, "sampler": SubsetRandomSampler(range(5, 30))},
        "sampled": {"batch_sampler": BatchSampler(RandomSampler(noisy), 4, drop_last=False)},
        "sequential": {"batch_sampler": BatchSampler(SequentialSampler(noisy), 4, drop_last=False)},
        "bucketed": {"batch_sampler": Bucketed(31)},
        "stream": {"dataset": Stream(31), "batch_size": 4},
    }
    return DataLoader(**{"dataset": noisy, **more, **made[kind]})


KINDS = (
    "shuffled, in order, one by one, subset, at once, distributed, weighted, some, sampled,"
    " sequential, bucketed, stream"
).split(", ")


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_gives_what_would_have_come(kind: str) -> None:
    """After every batch, through a checkpoint; and numbers of the training are left alone."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    whole = plain(all_of(feed(loader(kind, 0))))
    after = (random.random(), float(np.random.rand()), float(torch.rand(())))
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    assert after == (random.random(), float(np.random.rand()), float(torch.rand(())))
    assert len(whole) > 9
    for count in (0, 1, 7, 8, 9, len(whole) - 1):
        first = feed(loader(kind, 0))
        begun = plain(all_of(first, most=count))
        shared, mine = loaded(dumped((first.shared(), first.mine())))
        second = feed(loader(kind, 0), seed=6)  # but the checkpoint's counts
        said = second.restore(shared, mine)
        assert bool(said) == (kind == "stream" and count > 0 and first.shared()["count"] > 0)
        assert begun + plain(all_of(second)) == whole


@pytest.mark.parametrize("kind", ["shuffled", "bucketed", "at once", "stream"])
def test_workers_make_no_difference(kind: str) -> None:
    one = plain(all_of(feed(loader(kind, 0))))
    two = plain(all_of(feed(loader(kind, 2))))
    if kind == "stream":  # each worker has its own part of it: but going on is the same
        first = feed(loader(kind, 2))
        begun = plain(all_of(first, most=3))
        second = feed(loader(kind, 2))
        second.restore(first.shared(), first.mine())
        one = begun + plain(all_of(second))
    assert one == two


@pytest.mark.parametrize("kind", ["shuffled", "subset", "some"])
def test_ranks_share_what_one_would_have_had(kind: str) -> None:
    """The same samples with the same noise, in another arrangement."""
    alone = plain(all_of(feed(loader(kind, 0)), last_epoch=0))
    shared = [plain(all_of(feed(loader(kind, 0), rank=r, world=3), last_epoch=0)) for r in range(3)]
    assert len({len(each) for each in shared}) == 1

    def samples(batches: list[Any]) -> list[Any]:
        return [sample for batch in batches for sample in batch[:-1]]

    assert sorted(samples(alone)) == sorted(samples([b for each in shared for b in each]))


def test_all_generators_go_on_where_they_were() -> None:
    """Python's, with half of a pair of normal numbers kept; NumPy's and PyTorch's."""

    def numbers() -> list[float]:
        return [random.random(), random.gauss(0, 1), np.random.normal(), torch.rand(()).item()]

    seeding.cpu(5)
    random.gauss(0, 1)
    state, first = seeding.captured(), numbers()
    numbers()
    seeding.restored(state)
    assert numbers() == first
    with seeding.aside():
        numbers()
    there = numbers()
    seeding.restored(state)
    numbers()
    assert numbers() == there


def test_plain_data_is_not_seeded_for_nothing() -> None:
    data = TensorDataset(torch.arange(10))
    batches = all_of(feed(DataLoader(data, batch_size=3, shuffle=True)), last_epoch=0)
    assert sorted(x for (batch,) in batches for x in batch.tolist()) == list(range(10))


def test_lists_of_batches_are_skipped_through() -> None:
    first = feed([10, 20, 30])
    assert all_of(first, most=4) == [10, 20, 30, 10]
    second = feed([10, 20, 30])
    assert "1 batches" in second.restore(first.shared(), first.mine())[0]
    assert all_of(second) == [20, 30]


def test_lists_of_other_batches_are_refused() -> None:
    first = feed([10, 20, 30])
    all_of(first, most=4)
    other = feed([11, 20, 30])
    other.restore(first.shared(), first.mine())
    with pytest.raises(InvalidValue, match="gives other batches than before the checkpoint"):
        all_of(other)


def test_loaders_with_a_state_of_their_own_are_used_by_it() -> None:
    class Own:
        at = 0

        def __iter__(self) -> Iterator[int]:
            while self.at < 5:
                self.at += 1
                yield self.at
            self.at = 0

        def state_dict(self) -> dict[str, int]:
            return {"at": self.at}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.at = state["at"]

    first = feed(Own())
    assert all_of(first, most=7) == [1, 2, 3, 4, 5, 1, 2]
    second = feed(Own())
    assert second.restore(first.shared(), first.mine()) == []
    assert all_of(second) == [3, 4, 5]
    assert second.restore(first.shared(), None)


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(InvalidValue, match="no samples"):
        feed(DataLoader(TensorDataset(torch.empty(0)), batch_size=2))
    with pytest.raises(InvalidValue, match="2 samples an epoch, and a step needs 3"):
        all_of(feed(DataLoader(TensorDataset(torch.empty(2)), batch_size=2), world=3))
    with pytest.raises(InvalidValue, match="cannot be iterated again"):
        feed(iter([1, 2]))


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_order_of_an_epoch_is_drawn_when_it_is_due(batch: int) -> None:
    """A sampler may follow what the training has learned so far."""

    class Learning(SequentialSampler):
        drawn = 0

        def __iter__(self) -> Iterator[int]:
            Learning.drawn += 1
            return iter(range(len(dataset)))

    dataset = TensorDataset(torch.arange(41))
    loader = DataLoader(dataset, batch_size=batch, sampler=Learning(dataset))
    made = feed(loader)
    made.open(None)
    length = made.length()
    assert length is not None
    for _ in range(length):
        made.next(None)
    assert Learning.drawn == 1
    made.next(None)
    assert Learning.drawn == 2


class Counted(Dataset[Any]):
    """Whose samples depend on how many it has made."""

    def __init__(self) -> None:
        self.made = 0

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> int:
        self.made += 1
        return self.made


def test_numbers_that_change_in_a_worker(capfd: pytest.CaptureFixture[str]) -> None:
    """Only the worker sees them; the training would not know."""
    loader = DataLoader(Subset(Counted(), range(16)), batch_size=2, num_workers=1)
    feed = OrderedFeed(loader, seed=1, rank=0, world=1)
    feed.open(0)
    for _ in range(8):
        feed.next(0)
    feed.close()
    said = capfd.readouterr().err
    assert said.count("made: numbers of the dataset that change while it makes samples") == 1


class Growing(BatchSampler):
    """Batches of a size that the loop changes between epochs."""

    def __init__(self, size: int) -> None:
        self.many, self.size = 12, size

    def __iter__(self) -> Iterator[list[int]]:
        numbers = torch.randperm(self.many).tolist()
        return iter([numbers[i : i + self.size] for i in range(0, self.many, self.size)])

    def __len__(self) -> int:
        return -(-self.many // self.size)


class Scaled(Dataset[Any]):
    def __init__(self) -> None:
        self.scale = 1

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        return self.scale


@pytest.mark.parametrize("workers", [0, 1])
def test_what_the_loop_changes_between_epochs(workers: int) -> None:
    """Counts from there on, as with the loader itself, however far ahead batches were made."""
    sampler, dataset = Growing(2), Scaled()
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers)
    feed = OrderedFeed(loader, seed=1, rank=0, world=1)
    seen = []
    for epoch in range(3):
        sampler.size, dataset.scale = 2 + epoch, 1 + epoch
        feed.open(None)
        while True:
            try:
                batch = feed.next(epoch)
            except StopIteration:
                break
            seen.append((epoch, len(batch), batch[0].item()))
    feed.close()
    assert seen == [(0, 2, 1)] * 6 + [(1, 3, 2)] * 4 + [(2, 4, 3)] * 3


class Endless(Sampler[int]):
    """As StyleGAN's."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield random.randrange(31) + int(torch.randint(2, ()).item())


class Unsaid(Sampler[int]):
    """Which has an end, and does not say where."""

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(31).tolist())


@pytest.mark.parametrize("kind", ["replaced", "endless", "batches"])
def test_endless_epochs_are_drawn_piece_by_piece(kind: str) -> None:
    """And go on where they were, also far behind what is held of them."""
    noisy = Noisy(32)
    much = RandomSampler(noisy, replacement=True, num_samples=10**10)

    def made() -> DataLoader[Any]:
        if kind == "batches":
            return DataLoader(noisy, batch_sampler=_Batches(much))
        return DataLoader(noisy, batch_size=4, sampler=much if kind == "replaced" else Endless())

    whole = plain(all_of(feed(made()), most=60))
    assert len(whole) == 60
    for count in (1, 40):
        first = feed(made())
        begun = plain(all_of(first, most=count))
        second = feed(made(), seed=6)
        assert second.restore(*loaded(dumped((first.shared(), first.mine())))) == []
        assert begun + plain(all_of(second, most=60 - count)) == whole


class _Batches(Sampler[list[int]]):
    def __init__(self, inner: RandomSampler) -> None:
        self.inner = inner

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.inner)
        while True:
            yield [next(numbers) for _ in range(4)]


def test_a_long_epoch_is_what_its_list_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "_PIECE", 16)
    sampler = RandomSampler(range(31), replacement=True, num_samples=999)
    seeding.begin(5)
    whole = list(sampler)
    state = random.getstate(), torch.get_rng_state()
    long = drawn.Drawn(sampler, len(sampler), 5, [])
    for start, stop in ((0, 4), (4, 90), (700, 720), (3, 60), (990, 999), (0, 1)):
        assert long[start:stop] == whole[start:stop]
    assert len(long._there) < 200
    assert random.getstate() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])
    with pytest.raises(InvalidValue, match="draws 1200 samples an epoch, and ends after 999"):
        drawn.Drawn(sampler, 1200, 5, [])[990:1004]
    unsaid = feed(DataLoader(TensorDataset(torch.arange(32)), batch_size=4, sampler=Unsaid()))
    assert unsaid.length() == 8
