"""That the chaos bench would notice: what it counts as lost, doubled, torn, late and left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventually import eventually
from tradewind.base import clock
from tradewind.bench.chaos import job, left, ours, records
from tradewind.bench.chaos.killer import WEIGHTS, Killer
from tradewind.bench.chaos.measure import is_whole
from tradewind.store.local import LocalStore

SLEEPING = "import sys, time; time.sleep(600)"


def record(folder: Path, machine: str, pid: int, *lines: tuple[float, int]) -> list[bytes]:
    """As a job puts it down; gives its output."""
    output = [job.line(f"1 {pid}", step) for _, step in lines]
    (folder / f"r 1 {machine} {pid}").write_bytes(
        b"".join(
            b"%.3f %d %s" % (at_s, len(data), data)
            for (at_s, _), data in zip(lines, output, strict=True)
        )
    )
    return output


def test_a_line_is_lost_gone_doubled_or_torn(tmp_path: Path) -> None:
    kept = record(tmp_path, "m1", 7, (1.0, 1), (1.5, 2), (2.0, 3))
    gone = record(tmp_path, "m2", 8, (3.0, 4), (3.5, 5))
    tries = records.read(tmp_path)
    said = b"tradewind: the job is stopped\nKilled\n"
    whole = records.judged(tries, {"r": b"".join(kept) + said + b"".join(gone)}, {})
    assert whole == records.Verdict(lines=5)
    log = kept[0] + kept[1][10:] + kept[2] + kept[2] + said
    found = records.judged(tries, {"r": log}, {"m2": 4.0})
    assert (found.lost_bytes, found.doubled, found.torn) == (len(kept[1]), 1, 1)
    assert found.gone_bytes == sum(map(len, gone))
    assert found.oldest_gone_s == 1.0
    assert records.judged(tries, {"r": log}, {}).lost_bytes == len(kept[1]) + found.gone_bytes


def test_what_was_not_put_down_whole_was_not_written(tmp_path: Path) -> None:
    record(tmp_path, "m1", 7, (1.0, 1), (1.5, 2))
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-5])
    (only,) = records.read(tmp_path)
    assert [line.step for line in only.lines] == [1]


def test_recovery_ends_with_a_step_that_nobody_had_done(tmp_path: Path) -> None:
    record(tmp_path, "m-1-0", 7, (1.0, 1), (2.0, 2), (3.0, 3))
    record(tmp_path, "m-1-1", 6, (1.0, 1), (2.0, 2), (3.0, 3), (4.5, 4))
    record(tmp_path, "m-2-0", 8, (7.0, 2), (8.0, 3), (9.5, 4))
    tries = records.read(tmp_path)
    run = frozenset({"r"})
    # The second kill stops nothing: the run was stopped. After the last nothing was to be done.
    moments = [(2.5, run), (4.0, run), (5.0, frozenset({"other"})), (10.0, run)]
    assert records.recoveries_s(tries, moments) == [7.0]
    assert records.recoveries_s(tries, []) == []
    assert records.middle([]) is None


@pytest.mark.parametrize(
    ("place", "orphan"),
    [
        ("controllers/.memory.json.12-1.new", True),
        ("local/launches/run-1-1.json", True),
        ("local/machines/local-run-1-1-0/spool.log", True),
        ("store/.tradewind-new/host-1-2-3", True),
        ("somewhere/else", True),
        ("local/tokens/run-1-1", False),
        ("controllers/memory.json", False),
        ("store/runs/run-1/journal/1.json", False),
    ],
)
def test_files_that_should_not_be_left(tmp_path: Path, place: str, orphan: bool) -> None:
    store = LocalStore(tmp_path / "elsewhere")
    path = tmp_path / "home" / place
    path.parent.mkdir(parents=True)
    if "launches" in place:
        path.write_text('{"rentals": []}')
        path = path.with_suffix(".damaged")  # a whole one without machines is forgotten
    path.write_text("{}")
    found = left.files(tmp_path / "home", store)
    assert bool(found) == orphan


def test_keys_that_should_not_be_left(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for key in ("runs/r/journal/1.json", "controllers/lease.json"):
        store.create(key, b"{}")
    assert left.keys(store) == []
    store.create("live/r", b"{}")
    assert left.keys(store) == ["key live/r"]


def test_processes_are_found_by_their_home_and_killed(tmp_path: Path) -> None:
    assert ours.all_of(tmp_path) == []
    command = [sys.executable, "-c", SLEEPING, "tradewind", "watch"]
    env = {**os.environ, "TRADEWIND_HOME": str(tmp_path)}
    process = subprocess.Popen(command, env=env)
    try:
        (found,) = eventually(lambda: [p for p in ours.all_of(tmp_path) if p.kind != "other"])
        assert (found.pid, found.kind, found.machine) == (process.pid, "controller", "")
        assert left.processes(tmp_path, within_s=0.0) != []
        killer = Killer(tmp_path, clock.generator(3))
        assert eventually(killer.kill) in ("controller", "everything")
        assert process.wait() == -signal.SIGKILL
        assert killer.killed.processes == 1
    finally:
        process.kill()
    assert left.processes(tmp_path) == []
    assert not any(killer.kill() for _ in range(20))
    assert set(killer.killed.kinds) <= set(WEIGHTS)


def test_anything_lost_is_a_failure() -> None:
    names = ("lost_runs", "lost_log_bytes", "orphans", "doubled_lines", "torn_lines")
    good = dict.fromkeys(names, 0)
    assert is_whole(good)
    assert not any(is_whole(good | {name: 1}) for name in names)
