"""Disks that are full for a while: the store's, the machine's, the user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.system.chain import Chain
from tests.system.conftest import SmallDisk
from tradewind.supervisor import disk

pytestmark = pytest.mark.system

COUNT = """
import os, time
n = 0
while not os.path.exists(os.environ["ENOUGH"]):
    print("line", n, "x" * 100, flush=True)
    n += 1
    time.sleep(0.02)
print("whole", n)
"""


def counting(made: Chain) -> Path:
    """A job that prints until it is told that it is enough."""
    told = f"  env: {{ENOUGH: {made.folder / 'enough'}}}\n"
    return made.job("python count.py", more=told, count__py=COUNT)


def enough(made: Chain) -> None:
    (made.folder / "enough").touch()


def whole(log: bytes) -> bool:
    """Whether no line is missing or torn, whatever else is in it."""
    lines = log.decode().splitlines()
    told = [line.split() for line in lines if line.startswith("line")]
    many = [int(line.split()[1]) for line in lines if line.startswith("whole")]
    return [int(words[1]) for words in told] == list(range(many[0])) and all(
        words[2] == "x" * 100 for words in told
    )


def printed_after(made: Chain, run: str, many: int) -> None:
    """The job, whatever others do, has printed so much more."""
    spool = next(made.machines().glob("*/spool.log"))
    size = spool.stat().st_size
    eventually(lambda: spool.stat().st_size > size + many)


def test_a_full_store_is_waited_for(small_disk: SmallDisk, chain: Callable[..., Chain]) -> None:
    made = chain(store=str(small_disk.path / "store"))
    work = counting(made)
    run = made.detach(work)
    made.says(run, b"line 20 ")
    small_disk.fill()
    printed_after(made, run, 20_000)
    assert run in made.cli("ps")
    assert "leg 1 is up" in made.cli("show", run)
    assert "line 20 " in made.cli("logs", run)
    refused = made.cli("run", str(work), "--local", "--yes", "--detach", code=5)
    assert "No space left on device" in refused
    assert made.ids() == [run], "what could not be submitted leaves nothing"
    small_disk.free()
    enough(made)
    state = made.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 1)
    assert whole(made.log(run))
    made.quiet()


def test_a_store_that_stays_full_costs_a_leg_and_no_more(
    small_disk: SmallDisk, chain: Callable[..., Chain]
) -> None:
    made = chain(store=str(small_disk.path / "store"), speed=10)
    run = made.detach(counting(made))
    made.says(run, b"line 20 ")
    small_disk.fill()
    eventually(lambda: list(made.machines().glob("*/ended.json")))
    assert "ended with exit code 0" in next(made.machines().glob("*/ended.json")).read_text()
    assert run in made.cli("ps")
    small_disk.free()
    enough(made)
    state = made.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 2)
    assert whole(made.raw("logs", run, "--leg", "2"))
    made.quiet()


def test_a_machine_whose_disk_is_full_works_on(
    small_disk: SmallDisk, chain: Callable[..., Chain]
) -> None:
    """And whoever watches it, whose log is on the same disk, too."""
    made = chain(home=small_disk.path / "home")
    run = made.detach(counting(made))
    made.says(run, b"line 20 ")
    small_disk.fill()
    printed_after(made, run, 20_000)
    assert run in made.cli("ps")
    assert "leg 1 is up" in made.cli("show", run)
    small_disk.free()
    eventually(lambda: "No space left" in (made.home / "watch" / f"{run}.log").read_text())
    enough(made)
    state = made.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 1)
    assert whole(made.log(run))
    made.quiet()


def test_a_full_home_takes_no_run_and_loses_none(
    small_disk: SmallDisk, chain: Callable[..., Chain]
) -> None:
    """A local run is written down at home before it is in the store: without that it could never
    start."""
    made = chain(home=small_disk.path / "home")
    work = str(counting(made))
    small_disk.fill()
    said = made.cli("run", work, "--local", "--yes", "--detach", code=5)
    assert "cannot be written: No space left" in said
    assert made.ids() == []
    small_disk.free()
    run = made.detach(Path(work))
    enough(made)
    assert made.over(run).outcome == "succeeded"
    made.quiet()


def test_a_job_that_fails_on_a_full_disk_is_not_to_blame(
    small_disk: SmallDisk, chain: Callable[..., Chain]
) -> None:
    """It goes on once there is room, and no try is counted."""
    made = chain(home=small_disk.path / "home")
    started = made.folder / "started"
    write = f"touch {started}; sleep 3; head -c 8000000 /dev/zero > data && rm data && echo done"
    run = made.detach(made.job(write))
    eventually(started.exists)
    small_disk.fill()
    eventually(lambda: made.state(run).over_cause == "infrastructure")
    small_disk.free()
    assert made.over(run).outcome == "succeeded"
    assert b"the machine's disk is full" in made.log(run)
    assert made.log(run).endswith(b"done\n")
    made.quiet()


def test_whose_disk_it_is_that_is_full(small_disk: SmallDisk) -> None:
    mine = small_disk.path / "mine"
    mine.mkdir()
    assert not disk.is_full_of_others(mine)
    small_disk.fill()
    assert disk.is_full_of_others(mine)
    small_disk.free()
    (mine / "data").write_bytes(b"x" * 20_000_000)
    small_disk.fill()
    assert not disk.is_full_of_others(mine), "that was ours"
