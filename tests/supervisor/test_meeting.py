"""How machines meet, and two of them with torchrun, a fake and the real one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.machines import RUN, MachineUnderTest, Run
from tradewind.base import signing
from tradewind.model import places
from tradewind.store.memory import MemoryStore
from tradewind.supervisor import meeting
from tradewind.supervisor.meeting import Address, with_address

HERE = Address("10.0.0.1", 29500)
TOLD = "--nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --master-port=29500"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("torchrun --nproc-per-node=8 train.py", f"torchrun {TOLD} --nproc-per-node=8 train.py"),
        ("torchrun\ttrain.py", f"torchrun {TOLD}\ttrain.py"),
        ("torchrun", f"torchrun {TOLD}"),
        ("torchrun --nnodes=4 train.py", None),
        ("torchrun --rdzv-backend=c10d train.py", None),
        ("torchrun --rdzv_endpoint x train.py", None),
        ("torchrun --standalone train.py", None),
        ("python train.py", None),
        ("torchrunner train.py", None),
        (
            "torchrun --master_port 1234 train.py",
            "torchrun --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --master_port 1234 train.py",
        ),
    ],
)
def test_what_torchrun_is_told(command: str, told: str | None) -> None:
    assert with_address(command, 2, 1, HERE) == (told or command)


KEY = signing.key_of(b"seed", "run-1-1")


def test_rank_0_keeps_its_address_when_it_is_started_again() -> None:
    store = MemoryStore()
    assert meeting.find(store, RUN, 1, KEY) is None
    first = meeting.publish(store, RUN, 1, "fd00::1", KEY)
    assert first.host == "fd00::1"
    assert meeting.publish(store, RUN, 1, "fd00::1", KEY) == first
    assert meeting.find(store, RUN, 1, KEY) == first


@pytest.mark.parametrize(
    "planted",
    [
        b"10.6.6.6:29500",
        signing.signed(b"10.6.6.6:29500", signing.key_of(b"seed", "run-2-1"), signing.ADDRESS),
        signing.signed(b"10.6.6.6:29500", KEY, signing.HEARTBEAT),
        signing.signed(b"--master-addr=x y:29500", KEY, signing.ADDRESS),
        signing.signed(b"10.6.6.6:99999", KEY, signing.ADDRESS),
        b"nonsense",
        b"\xff" * 200,
        b"",
    ],
)
def test_no_address_of_somebody_else_is_followed(planted: bytes) -> None:
    store = MemoryStore()
    store.create(places.address(RUN, 1), planted)
    assert meeting.find(store, RUN, 1, KEY) is None
    mine = meeting.publish(store, RUN, 1, "10.0.0.1", KEY)
    assert mine.host == "10.0.0.1"
    assert meeting.find(store, RUN, 1, KEY) == mine


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[MachineUnderTest]]:
    machines: list[MachineUnderTest] = []
    yield machines
    for each in machines:
        each.end()


def test_two_machines_meet(tmp_path: Path, two: list[MachineUnderTest]) -> None:
    fake = tmp_path / "bin" / "torchrun"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$TRADEWIND_RANK: $*"\n')
    fake.chmod(0o755)
    path = f"{fake.parent}:/usr/bin:/bin"
    run = Run(tmp_path, nodes=2, command="torchrun train.py --lr 1", env={"PATH": path})
    two.append(run.machine(1, host="127.0.0.1").start())  # who comes first waits
    two.append(run.machine(0, host="127.0.0.2").start())
    for machine in two:
        machine.does("finished")
    port = int(run.calm.get(places.address(RUN, 1)).decode().removeprefix("127.0.0.2:"))
    for machine in two:
        rest = f"--master-addr=127.0.0.2 --master-port={port} train.py --lr 1\n"
        assert machine.log() == f"{machine.rank}: --nnodes=2 --node-rank={machine.rank} {rest}"


SCRIPT = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
print(f"sum={value.item():.0f} of {dist.get_world_size()}")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_machines_of_one_process_each_reduce_with_torchrun(
    tmp_path: Path, two: list[MachineUnderTest]
) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    bin_folder = Path(sys.executable).parent
    env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    env["GLOO_SOCKET_IFNAME"] = "lo"
    run = Run(tmp_path, nodes=2, command=f"torchrun --nproc-per-node=1 {script}", env=env)
    for rank in (0, 1):
        two.append(run.machine(rank, speed=1.0).start())
    for machine in two:
        assert machine.does("finished", "failed").doing == "finished", machine.spool()
        assert "sum=3 of 2" in machine.log()
