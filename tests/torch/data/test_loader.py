"""Settings of loaders: what follows from what was measured, what is remembered, what is refused."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import tradewind.torch as tw
from tradewind.base.errors import InvalidValue
from tradewind.torch.data import choice
from tradewind.torch.data.choice import Probe, Trial, candidates, chosen
from tradewind.torch.data.machine import Machine, machine

EIGHT = Machine(cores=8, ranks=1, gpu=True, memory=1 << 34, shared=1 << 34)
HEAVY = Probe(batch_s=0.4, cpu_s=0.4, queued_s=0.0, batch_bytes=10**6, uneven=1.1)
DISTANT = Probe(batch_s=0.4, cpu_s=0.01, queued_s=0.0, batch_bytes=10**6, uneven=1.1)


def trials(probe: Probe, here: Machine, step_s: float | None) -> list[Trial]:
    return [choice.expected(each, probe, here) for each in candidates(probe, here, step_s)]


@pytest.mark.parametrize(
    ("probe", "step_s", "workers", "ahead"),
    [
        (HEAVY, None, 8, 2),
        (HEAVY, 0.25, 2, 2),
        (HEAVY, 10.0, 1, 2),
        (DISTANT, None, 16, 4),
        (DISTANT, 0.4, 2, 4),
        (Probe(1e-4, 1e-4, 0.0, 1000, 1.0), None, 0, None),
        (Probe(5e-3, 5e-3, 4.5e-3, 1000, 1.0), 0.005, 0, None),
        (HEAVY, 0.01, 8, 2),
        (Probe(0.4, 0.4, 0.0, 10**6, 5.0), None, 8, 4),
    ],
)
def test_workers_follow_from_what_was_measured(
    probe: Probe, step_s: float | None, workers: int, ahead: int | None
) -> None:
    found = chosen(probe, trials(probe, EIGHT, step_s), EIGHT, step_s, 1.5)
    assert (found.num_workers, found.prefetch_factor) == (workers, ahead)
    assert found.pin_memory
    assert found.persistent_workers == (workers > 0)
    assert "measured in 1.5 s" in found.why


def test_batches_that_wait_must_fit_into_shared_memory() -> None:
    """A container's 64 MB, with batches of 10 MB."""
    small = Machine(cores=8, ranks=1, gpu=False, memory=1 << 34, shared=64 << 20)
    large = Probe(batch_s=0.4, cpu_s=0.4, queued_s=0.0, batch_bytes=10 << 20, uneven=9.0)
    found = chosen(large, trials(large, small, None), small, None, 1.0)
    assert found.num_workers == 1
    assert found.prefetch_factor == 3
    assert candidates(large, Machine(8, 1, False, 1 << 34, 1 << 20), None) == []


def test_cores_and_memory_are_those_of_the_container_and_shared_by_ranks(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/meminfo", "MemTotal: 64000 kB\nMemAvailable:   32000 kB\n")
    (tmp_path / "dev/shm").mkdir(parents=True)
    real = len(os.sched_getaffinity(0))
    plain = machine(gpu=False, env={}, root=tmp_path)
    assert (plain.cores, plain.ranks, plain.memory) == (real, 1, 32000 * 1024)
    write("proc/self/cgroup", "0::/pod/container\n")
    write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n")
    write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n")
    write("sys/fs/cgroup/pod/container/memory.max", "9000000\n")
    write("sys/fs/cgroup/pod/container/memory.current", "1000000\n")
    found = machine(gpu=True, env={"LOCAL_WORLD_SIZE": "4"}, root=tmp_path)
    assert (found.cores, found.ranks, found.memory, found.gpu) == (0.125, 4, 2_000_000, True)
    write("proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/docker/1\n")
    write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "25000")
    write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000")
    assert machine(gpu=False, env={}, root=tmp_path).cores == 0.25
    with pytest.raises(InvalidValue, match="LOCAL_WORLD_SIZE is 'x'"):
        machine(gpu=False, env={"LOCAL_WORLD_SIZE": "x"})


class Counted:
    """Counts what is asked of it in this process."""

    def __init__(self) -> None:
        self.asked = 0

    def __len__(self) -> int:
        return 500

    def __getitem__(self, index: int) -> Any:
        self.asked += 1
        return torch.full((8,), index + 0 * random.random() + 0 * torch.rand(()))


def test_a_choice_is_said_and_remembered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = Counted()
    random.seed(3)
    torch.manual_seed(3)
    before = random.getstate(), torch.get_rng_state()
    first = tw.loader(data, batch_size=16, shuffle=True, folder=tmp_path / "here")
    assert type(first) is DataLoader
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    asked = data.asked
    assert asked > 16
    said = capfd.readouterr().err
    assert said.startswith("tradewind.torch: loader: ")
    assert said.count("\n") == 1
    assert "a batch takes" in said
    again = tw.loader(data, batch_size=16, shuffle=True, folder=tmp_path / "here")
    assert data.asked == asked
    assert again.num_workers == first.num_workers
    assert again.prefetch_factor == first.prefetch_factor
    assert "as chosen before" in capfd.readouterr().err
    (key,) = json.loads((tmp_path / "here" / "loader.json").read_text())
    assert "Counted of 500, batches of 16" in key
    # Another batch is another question, and a damaged memory is none.
    tw.loader(data, batch_size=500, folder=tmp_path / "here")
    (tmp_path / "here" / "loader.json").write_text("{")
    tw.loader(data, batch_size=16, folder=tmp_path / "here", quiet=True)
    assert len(json.loads((tmp_path / "here" / "loader.json").read_text())) == 1


def test_what_the_script_says_is_kept(tmp_path: Path) -> None:
    data = Counted()
    made = tw.loader(data, 8, num_workers=1, drop_last=True, folder=tmp_path)
    assert (made.num_workers, made.drop_last, data.asked) == (1, True, 0)
    sampler = torch.utils.data.BatchSampler(range(500), 5, False)
    assert tw.loader(data, batch_sampler=sampler, folder=tmp_path).batch_sampler is sampler
    small = tw.loader(TensorDataset(torch.zeros(3, 2)), 16, pin_memory=False, folder=tmp_path)
    assert [len(batch[0]) for batch in small] == [3]


class Stream(IterableDataset[Any]):
    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Iterator[Any]:
        while self.at < 1000:
            self.at += 1
            yield torch.zeros(3)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


def test_a_stream_is_where_it_was_and_keeps_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Stream()
    first = tw.loader(data, 4, folder=tmp_path)
    assert data.at == 0
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "64")  # another machine
    assert tw.loader(Stream(), 4, folder=tmp_path).num_workers == first.num_workers
    assert len(json.loads((tmp_path / "loader.json").read_text())) == 1


def test_under_a_run_it_is_remembered_in_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("TRADEWIND_RUN", "run-1")
    tw.loader(Counted(), 4)
    assert (tmp_path / "store" / "runs" / "run-1" / "loader.json").exists()


def test_words_for_what_is_wrong(tmp_path: Path) -> None:
    for wrong, words in [
        (3, "a int is no dataset"),
        (DataLoader([1, 2]), "a DataLoader already"),
        ([], "has no samples"),
    ]:
        with pytest.raises(InvalidValue, match=words):
            tw.loader(wrong, folder=tmp_path)
    with pytest.raises(InvalidValue, match="a batch cannot have 0 samples"):
        tw.loader([1], 0, folder=tmp_path)
    with pytest.raises(InvalidValue, match="a step cannot take -1 s"):
        tw.loader([1], step_s=-1, folder=tmp_path)


def test_a_loader_that_is_ended_early_has_all_its_workers_done() -> None:
    """None is cut off while it sends a batch: of what was begun, all is taken."""
    from tradewind.torch.data.measuring import Ending

    asked: list[int] = []

    def batches() -> Iterator[list[int]]:
        for number in range(1000):
            asked.append(number)
            yield [number]

    sampler = Ending(batches())
    own = iter(DataLoader(list(range(1000)), batch_sampler=sampler, num_workers=2))
    taken = [next(own) for _ in range(3)]
    sampler.end(own)
    assert len(taken) == 3
    assert own._tasks_outstanding == 0
    assert len(asked) < 12
