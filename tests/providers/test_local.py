"""Local machines, with real processes that are really killed."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.providers.conformance import Conformance, Place
from tests.providers.local_machines import (
    IDLE,
    a_home,
    command,
    exists,
    folder,
    open_local,
    pid_in,
    pids,
    written,
)
from tradewind.base.errors import BadFile, InvalidValue, NotFound, TradewindError
from tradewind.model.run import Machine, Way
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.local import processes
from tradewind.providers.local.files import MachineFolder, Rental
from tradewind.providers.local.host import _live
from tradewind.providers.local.interruptions import Chaos, Replay
from tradewind.providers.local.provider import FACTS, LISTED_S, LocalProvider, _spawn, wall
from tradewind.providers.local.trace import Trace

pytestmark = pytest.mark.slow

WAY = Way(
    provider="local",
    region="local",
    zone="here",
    instance_type="process",
    market="on_demand",
    nodes=1,
    price=0,
    rate=1.0,
    start_s=1.0,
    facts=FACTS,
)
SPOT = replace(WAY, market="spot")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with a_home(tmp_path / "a home") as path:
        yield path


class TestLocal(Conformance):
    safety = "token"

    @pytest.fixture
    def place(self, home: Path, tmp_path: Path) -> Iterator[Place]:
        with a_home(tmp_path / "another's") as other:
            yield Place(
                open_local(str(home)),
                WAY,
                others=open_local(str(other)),
                again=lambda: open_local(str(home)),
                client=("tests.providers.local_machines:open_local", str(home)),
                alive=lambda machine: bool(pids(folder(home, machine))),
            )


def bought(provider: LocalProvider, way: Way = WAY, leg: int = 1, **more: Any) -> list[Machine]:
    request = Place(provider, way).request(leg=leg, nodes=way.nodes)
    return list(provider.launch(replace(request, **more), 3))


def local(home: Path, script: str = IDLE, **more: Any) -> LocalProvider:
    return LocalProvider(home, "file:///store", command=command(script), **more)


def ended(provider: LocalProvider, *machines: Machine) -> list[Machine]:
    """As listed, once all of them have ended."""
    names = {m.machine_id for m in machines}

    def look() -> list[Machine]:
        found = [m for m in provider.list_machines().machines if m.machine_id in names]
        return found if all(m.ended_s is not None for m in found) else []

    return eventually(look)


# A machine's life.


def test_what_a_supervisor_is_given(home: Path) -> None:
    script = "import shutil, sys; shutil.copy(sys.argv[1], 'given')\n"
    provider = local(home, script)
    one, two = bought(provider, replace(WAY, nodes=2), hard_stop_s=77)
    ended(provider, one, two)
    given = written(home, two, "given")
    assert given.pop("up_since_s") > 0
    assert given == {
        "store_url": "file:///store",
        "run_id": "run-1",
        "leg": 1,
        "rank": 1,
        "nodes": 2,
        "machine_id": "local-run-1-1-1",
        "launch_id": "run-1-1",
        "hard_stop_s": 77,
        "after": 3,
        "relieves": 0,
        "host": "127.0.0.1",
        "notice": str(folder(home, two) / "notice.json"),
        "secrets": str(home.resolve() / "local" / "secrets" / "run-1.json"),
        "python": given["python"],
        "key": "",
        "job_sha256": "",
        "kit": "",
        "pass_file": "",
        "public": "",
        "waits": False,
        "variables": {},
    }
    assert Path(given["python"]).exists()


def test_only_a_run_that_was_submitted_here_may_start_something(home: Path) -> None:
    script = "import shutil, sys; shutil.copy(sys.argv[1], 'given')\n"
    theirs = local(home, script, job_of={"run-2": "a" * 64}.get)
    request = Place(theirs, WAY).request(leg=1)
    with pytest.raises(Refused, match="run-1 was not submitted from this computer") as refused:
        theirs.launch(request, 3)
    assert refused.value.kind == "not_allowed"
    assert theirs.list_machines().machines == ()
    mine = local(home, script, job_of={"run-1": "a" * 64}.get)
    (machine,) = mine.launch(request, 3, "its key")
    ended(mine, machine)
    given = written(home, machine, "given")
    assert (given["job_sha256"], given["key"]) == ("a" * 64, "its key")


def test_a_journal_of_another_store_ends_nothing_here(home: Path) -> None:
    mine = local(home)
    (machine,) = bought(mine)
    theirs = LocalProvider(home, "file:///other", command=command(IDLE), own_only=True)
    theirs.terminate([machine.machine_id])
    assert mine.list_machines().machines == (machine,)
    mine.terminate([machine.machine_id])


def test_no_journal_starts_a_thousand_machines_here(home: Path) -> None:
    provider = local(home)
    with pytest.raises(Refused, match="too many for this computer"):
        provider.launch(Place(provider, WAY).request(leg=1, nodes=1000), 3)


def test_a_machine_is_off_when_its_supervisor_ends(home: Path) -> None:
    provider = local(home, "import sys; print('words of the job', flush=True); sys.exit(7)")
    (machine,) = bought(provider)
    (off,) = ended(provider, machine)
    assert off.ended_s is not None
    assert off.launched_s <= off.ended_s
    assert written(home, machine, "ended.json")["why"] == "its supervisor ended with exit code 7"
    assert "words of the job" in (folder(home, machine) / "host.log").read_text()


def test_a_supervisor_that_cannot_start_is_a_machine_that_ends(home: Path) -> None:
    provider = LocalProvider(home, "memory://", command=("/no/such/python",))
    (machine,) = bought(provider)
    ended(provider, machine)
    assert "could not be started" in written(home, machine, "ended.json")["why"]


def test_a_host_that_cannot_start_is_a_machine_that_ends(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    provider = local(home)
    (machine,) = bought(provider)
    assert machine.ended_s is not None
    assert "host did not start" in written(home, machine, "ended.json")["why"]


def test_processes_that_cannot_be_had_are_tried_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = local(home)
    with monkeypatch.context() as broken:
        broken.setattr("sys.executable", "/no/such/program")
        with pytest.raises(OutcomeUnknown, match="could not be started"):
            bought(provider, replace(WAY, nodes=2))
        assert len(provider.list_machines().machines) == 2
    provider.list_machines()
    machines = bought(provider, replace(WAY, nodes=2))
    assert all(pids(folder(home, machine)) for machine in machines)


def test_of_hosts_that_start_at_once_one_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when several launching processes were killed while their hosts were on the way."""
    provider = local(home, "open('began', 'a').write('x')\n" + IDLE)
    with monkeypatch.context() as broken:
        broken.setattr("sys.executable", "/no/such/program")
        with pytest.raises(OutcomeUnknown):
            bought(provider)
    (where,) = (home / "local" / "machines").iterdir()
    hosts = [_spawn(MachineFolder(where)) for _ in range(5)]
    assert [host.wait() for host in hosts] == [0] * 5
    (machine,) = provider.list_machines().machines
    (stays,) = [pid for pid in pids(where) if b".local.host" in cmdline(pid)]
    assert stays == written(home, machine, "host.json")["pid"]
    began = where / "began"
    eventually(lambda: began.exists() and began.read_text())
    os.kill(stays, signal.SIGKILL)
    # And there is never a second one, also if it died before anybody looked.
    assert _spawn(MachineFolder(where)).wait() == 0
    ended(provider, machine)
    assert began.read_text() == "x"


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_supervisor_that_hangs_ends_at_the_hard_stop(home: Path) -> None:
    provider = local(home)
    (machine,) = bought(provider, hard_stop_s=1)
    ended(provider, machine)
    assert "all that it was given" in written(home, machine, "ended.json")["why"]


DAEMONS = """
import os, subprocess, sys, signal, time
def daemon(name, **more):
    code = (
        "import os, signal\\n"
        "if os.fork(): os._exit(0)\\n"
        "os.setsid()\\n"
        "if os.fork(): os._exit(0)\\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
        f"with open({name!r}, 'w') as out: out.write(str(os.getpid()) + chr(10))\\n"
        "while True: signal.pause()\\n"
    )
    subprocess.run([sys.executable, "-S", "-E", "-c", code], **more)
    while not (os.path.exists(name) and open(name).read().endswith("\\n")):
        time.sleep(0.01)
daemon("marked")
daemon("unmarked", env={})
with open("supervisor", "w") as out:
    out.write(str(os.getpid()) + "\\n")
while os.path.exists("stay"): signal.pause()
"""


def daemons(home: Path, machine: Machine) -> dict[str, int]:
    where = folder(home, machine)
    names = ("supervisor", "marked", "unmarked")
    found = {name: pid_in(where / name) for name in names}
    host = eventually(lambda: written(home, machine, "host.json"))
    return {**found, "host": host["pid"]}


STAYING = DAEMONS.replace('while os.path.exists("stay")', "while True")


@pytest.mark.parametrize("way", ["terminate", "interrupt", "supervisor exits"])
def test_nothing_of_a_machine_outlives_it(home: Path, way: str) -> None:
    """Daemons that have left their session and their parents, one of them without the mark too."""
    provider = local(home, DAEMONS if way == "supervisor exits" else STAYING)
    (machine,) = bought(provider)
    found = daemons(home, machine)
    if way == "terminate":
        provider.terminate([machine.machine_id])
        assert not any(map(_runs, found.values()))
        assert written(home, machine, "ended.json")["why"] == "it was terminated"
    elif way == "interrupt":
        provider.interrupt([machine.machine_id], 0)
    ended(provider, machine)
    eventually(lambda: not any(map(exists, found.values())))
    assert pids(folder(home, machine)) == []


def test_a_killed_supervisor_is_started_again_on_its_machine(home: Path) -> None:
    """What only its disk has, the log's end above all, must not go with the supervisor."""
    script = "import os, signal\n" + (
        "with open(f'pid-{len(os.listdir())}', 'w') as out: out.write(f'{os.getpid()}\\n')\n"
    )
    provider = local(home, script + "while True: signal.pause()")
    (machine,) = bought(provider)
    where = folder(home, machine)
    found: set[int] = set()
    for times in range(1, 3):
        eventually(lambda: len(list(where.glob("pid-*"))) == times)  # noqa: B023
        (new,) = {pid_in(path) for path in where.glob("pid-*")} - found
        found.add(new)
        os.kill(new, signal.SIGKILL)
    eventually(lambda: len(list(where.glob("pid-*"))) == 3)
    assert provider.list_machines().machines[0].ended_s is None
    assert "killed by signal 9" in (where / "host.log").read_text()
    provider.terminate([machine.machine_id])
    assert pids(where) == []


def test_a_supervisor_that_dies_each_time_is_a_machine_that_ends(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.providers.local.host._AGAIN_S", (0.0, 0.0))
    where = MachineFolder(home / "machine")
    where.path.mkdir(parents=True)
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    rental = _rental(local(home, script))
    assert _live(where, rental) == "its supervisor was killed 3 times, at last by signal 9"


def _rental(provider: LocalProvider) -> Rental:
    return provider._bought(Place(provider, WAY).request(leg=1, nodes=1), 3, "", "").rentals[0]


LEAVING = """
import signal, sys, time
def leave(number, frame):
    time.sleep(0.3)
    with open("last-words", "w") as out: out.write("all is sent")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open("ready", "w").close()
while True: signal.pause()
"""


def test_a_supervisor_may_leave_before_its_machine_is_terminated(home: Path) -> None:
    """As by a cloud's shutdown: else the end of the job's log would be lost."""
    provider = local(home, LEAVING)
    machines = bought(provider, replace(WAY, nodes=2))
    for machine in machines:
        eventually((folder(home, machine) / "ready").exists)
    provider.terminate([machine.machine_id for machine in machines])
    for machine in machines:
        assert (folder(home, machine) / "last-words").read_text() == "all is sent"
        assert written(home, machine, "ended.json")["why"] == "it was terminated"
        assert pids(folder(home, machine)) == []


HEADLESS = """
import ctypes, os, threading, time
if os.fork(): time.sleep(3600)
def go():
    state = lambda: open("/proc/%d/stat" % os.getpid()).read().rpartition(")")[2].split()[0]
    while state() != "Z": time.sleep(0.01)
    with open("headless", "w") as out: out.write(str(os.getpid()) + chr(10))
    time.sleep(3600)
threading.Thread(target=go).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_killed_too(home: Path) -> None:
    """It looks like a zombie, and its environment cannot be read."""
    provider = local(home, HEADLESS)
    (machine,) = bought(provider)
    pid = pid_in(folder(home, machine) / "headless")
    provider.terminate([machine.machine_id])
    assert eventually(lambda: not exists(pid))


def _runs(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_a_host_that_is_killed_is_noticed_and_its_machine_ended(home: Path) -> None:
    provider = local(home, STAYING)
    (machine,) = bought(provider)
    found = daemons(home, machine)
    os.kill(found["host"], signal.SIGKILL)
    eventually(lambda: not exists(found["host"]))
    # One without the mark cannot be found once nobody has adopted it: we do that here.
    os.kill(found.pop("unmarked"), signal.SIGKILL)
    assert _runs(found["marked"])
    (off,) = ended(provider, machine)
    assert off.ended_s is not None
    assert not any(map(_runs, found.values()))
    assert written(home, machine, "ended.json")["why"] == "its host died"
    assert provider.list_machines().machines == (off,)


def test_a_host_that_was_stopped_is_terminated_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.providers.local.provider.STOP_S", -1.0)  # nobody to wait for
    provider = local(home, STAYING)
    (machine,) = bought(provider)
    found = daemons(home, machine)
    os.kill(found["host"], signal.SIGSTOP)
    provider.terminate([machine.machine_id])
    assert not any(map(_runs, found.values()))


def test_a_pid_that_is_anothers_by_now_is_let_alone(home: Path) -> None:
    provider = local(home)
    (machine,) = bought(provider)
    host = eventually(lambda: written(home, machine, "host.json"))
    os.kill(host["pid"], signal.SIGKILL)
    eventually(lambda: not exists(host["pid"]))
    path = folder(home, machine) / "host.json"
    path.write_text(path.read_text().replace(str(host["pid"]), str(os.getpid())))
    assert ended(provider, machine)  # and we are still here


def test_lists_and_terminations_at_once_while_hosts_die(home: Path) -> None:
    provider = local(home)
    machines = bought(provider, replace(WAY, nodes=4))
    hosts = [eventually(partial(written, home, m, "host.json"))["pid"] for m in machines]
    stop = threading.Event()

    def look() -> int:
        looks = 0
        while not stop.is_set():
            assert len(provider.list_machines().machines) == 4
            looks += 1
        return looks

    with ThreadPoolExecutor(6) as pool:
        looking = [pool.submit(look) for _ in range(2)]
        for host in hosts[:2]:
            os.kill(host, signal.SIGKILL)
        names = [m.machine_id for m in machines]
        ending = [pool.submit(provider.terminate, names) for _ in range(4)]
        for future in ending:
            future.result()
        stop.set()
        assert all(future.result() for future in looking)
    assert all(m.ended_s is not None for m in provider.list_machines().machines)


# Listing and forgetting.


def test_ended_machines_are_listed_for_a_while_and_bought_never_again(home: Path) -> None:
    provider = local(home, "")
    machines = bought(provider, replace(WAY, nodes=2))
    off = ended(provider, *machines)
    last_s = max(m.ended_s or 0 for m in off)
    soon = local(home, clock=lambda: last_s + LISTED_S - 1.0)
    assert list(soon.list_machines().machines) == off
    late = local(home, clock=lambda: last_s + LISTED_S + 0.0)
    assert late.list_machines().machines == ()
    assert list((home / "local" / "machines").iterdir()) == []
    assert list((home / "local" / "launches").iterdir()) == []
    with pytest.raises(Refused, match="long ago"):
        bought(provider)
    assert provider.list_machines().machines == ()


def test_forgetting_that_was_cut_off_is_finished(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a machine's folder is gone: it must not look like one that has yet to start."""
    provider = local(home, "")
    (machine,) = bought(provider)
    ended(provider, machine)
    late = local(home, clock=lambda: wall() + 2 * LISTED_S)

    class Cut(Exception):
        pass

    def cut(path: Path, **_: Any) -> None:
        (path / "ended.json").unlink()
        (path / "host.json").unlink()
        raise Cut

    with monkeypatch.context() as broken:
        broken.setattr("shutil.rmtree", cut)
        with pytest.raises(Cut):
            late.list_machines()
    assert provider.list_machines().machines == ()
    assert not folder(home, machine).exists()


def test_a_damaged_record_is_a_clear_error(home: Path) -> None:
    provider = local(home)
    bought(provider)
    path = home / "local" / "launches" / "run-1-1.json"
    good = path.read_bytes()
    path.write_bytes(good[:50])
    with pytest.raises(BadFile, match=r"run-1-1\.json is damaged"):
        provider.list_machines()
    path.write_bytes(good)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200, "a b", "\0"])
def test_launch_ids_that_could_not_be_files(home: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be the id"):
        bought(local(home), launch_id=name)
    assert not (home / "local").exists()


def test_it_says_that_it_needs_linux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pidfd_open")
    with pytest.raises(TradewindError, match="need Linux"):
        local(home)


# Interruptions.

WAITS_FOR_NOTICE = """
import json, os, sys, time
boot = json.load(open(sys.argv[1]))
while not os.path.exists(boot["notice"]): time.sleep(0.01)
with open("new", "w") as out: out.write(open(boot["notice"]).read())
os.rename("new", "noticed")
while True: time.sleep(1)
"""


def test_an_interruption_comes_with_notice(home: Path) -> None:
    provider = local(home, WAITS_FOR_NOTICE)
    one, two, three = bought(provider, replace(SPOT, nodes=3))
    provider.interrupt([one.machine_id, two.machine_id], 3600)
    for machine in (one, two):
        eventually(partial(written, home, machine, "noticed"))
    # It cannot be put off, but brought forward; and machines that are gone do not mind.
    provider.interrupt([one.machine_id], 7200)
    assert written(home, one, "notice.json") == written(home, two, "notice.json")
    provider.interrupt([one.machine_id], 0)
    ended(provider, one)
    assert written(home, one, "ended.json")["why"] == "the provider took it"
    provider.interrupt([one.machine_id], 0)
    assert [m.ended_s for m in provider.list_machines().machines][1:] == [None, None]
    assert written(home, three, "notice.json") is None


def test_what_was_written_half_goes_with_the_machine(home: Path) -> None:
    """A supervisor that is killed leaves it."""
    provider = local(home)
    (machine,) = bought(provider)
    left = folder(home, machine) / ".state.json.1-1.new"
    left.touch()
    provider.interrupt([machine.machine_id], 0)
    ended(provider, machine)
    assert not left.exists()


def test_interrupting_what_is_not_there(home: Path) -> None:
    provider = local(home)
    (machine,) = bought(provider)
    for name in ("none", "local-run-1-1-7", "../x-0"):
        with pytest.raises(NotFound, match="there is no machine"):
            provider.interrupt([machine.machine_id, name], 0)
    assert written(home, machine, "notice.json") is None
    with pytest.raises(InvalidValue):
        provider.interrupt([machine.machine_id], -1)


def test_a_notice_written_by_hand(home: Path) -> None:
    provider = local(home)
    (machine,) = bought(provider)
    path = folder(home, machine) / "notice.json"
    path.write_text('{"taken_at')
    path.write_text('{"taken_at_s": 5}')
    assert ended(provider, machine)


def test_chaos_takes_spot_machines_with_notice_and_no_others(home: Path) -> None:
    chaos = Chaos(mean_life_s=0.5, notice_s=0.2, seed=1)
    provider = local(home, interruptions=chaos)
    spot = bought(provider, replace(SPOT, nodes=2))
    (kept,) = bought(provider, leg=2)
    for machine in ended(provider, *spot):
        due = written(home, machine, "machine.json")["taken_at_s"]
        assert written(home, machine, "notice.json") == {"taken_at_s": due}
        assert machine.ended_s is not None
        assert machine.ended_s >= int(due)
        assert written(home, machine, "ended.json")["why"] == "the provider took it"
    assert written(home, kept, "machine.json")["taken_at_s"] is None
    assert kept in provider.list_machines().machines


def test_without_notice_none_is_given(home: Path) -> None:
    chaos = Chaos(mean_life_s=0.01, notice_s=0, seed=1)
    provider = local(home, interruptions=chaos)
    (machine,) = bought(provider, SPOT)
    ended(provider, machine)
    assert written(home, machine, "notice.json") is None


def test_a_life_can_wait_for_the_job_to_work(home: Path) -> None:
    """So that no machine is taken while its job still imports what it needs."""
    chaos = Chaos(mean_life_s=0.01, notice_s=0.01, seed=1, from_work_s=3600.0)
    provider = local(home, interruptions=chaos)
    working, waiting = bought(provider, replace(SPOT, nodes=2))
    due = written(home, working, "machine.json")["taken_at_s"]
    eventually(lambda: wall() > due + 0.5)
    assert {working, waiting} <= set(provider.list_machines().machines)
    assert written(home, working, "notice.json") is None
    (folder(home, working) / "progress.json").write_text('{"step": 0}')
    (over,) = ended(provider, working)
    assert written(home, over, "ended.json")["why"] == "the provider took it"
    assert written(home, over, "notice.json")["taken_at_s"] > due
    assert waiting in provider.list_machines().machines


def test_a_life_does_not_wait_for_ever(home: Path) -> None:
    chaos = Chaos(mean_life_s=0.01, notice_s=0, seed=1, from_work_s=0.5)
    (machine,) = bought(provider := local(home, interruptions=chaos), SPOT)
    (over,) = ended(provider, machine)
    assert over.ended_s is not None


def test_a_trace_refuses_and_takes(home: Path) -> None:
    """Half an hour up, half an hour down, at a speed that makes the former a second."""
    trace = Trace("t", "here", 1, (1, 0), (1800.0, 3600.0))
    began = wall()

    def at(seconds: float) -> LocalProvider:
        replay = Replay({"here": trace}, began, 0.0, 1800.0, 0.0)
        return local(home, clock=lambda: began + seconds, interruptions=replay)

    with pytest.raises(Refused, match="has 0 of 1 spot machines") as refused:
        bought(at(1.5), SPOT)
    assert refused.value.kind == "no_capacity"
    assert at(1.5).list_machines().machines == ()
    (machine,) = bought(at(0.0), SPOT)
    assert written(home, machine, "machine.json")["taken_at_s"] == pytest.approx(began + 1)
    ended(local(home), machine)
    # What was bought is bought, though there is no room now; and on demand there always is.
    assert [m.machine_id for m in bought(at(1.5), SPOT)] == [machine.machine_id]
    bought(at(1.5), WAY, leg=2)


def test_the_example_of_the_page_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    head = "trace_id,zone,nodes,gap_seconds,rle\n"
    Path("traces.csv").write_text(head + "t,us-east-2a,4,300,4x60 3x2 0x12\n")
    (machine,) = bought(local(home))
    page = (Path(__file__).parents[2] / "docs" / "local.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "local.md", "exec"), names)
    assert written(home, machine, "notice.json") is not None
    assert names["series"].length_s == 5 * 3600 + 600 + 3600


def test_processes_of_other_machines_are_never_listed(home: Path) -> None:
    provider = local(home)
    one = bought(provider, leg=1)[0]
    two = bought(provider, leg=11)[0]  # whose folder's name begins like the other's
    three = bought(provider, launch_id="run-1-1-0")[0]
    found = [set(processes.living(folder(home, m))) for m in (one, two, three)]
    assert all(found)
    assert len(set.union(*found)) == sum(map(len, found))
