"""Jobs that do not want to end, that leave others behind, or that bite."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.system.chain import Chain

pytestmark = pytest.mark.system

DEAF = """
import os, signal, sys, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, signal.SIG_IGN)
if os.environ["TRADEWIND_LEG"] != "1":
    sys.exit()
print("deaf", flush=True)
while True:
    time.sleep(1)
"""

DAEMONS = """
import ctypes, os, sys, time
place = sys.argv[1]

def note():
    with open(f"{place}/pids", "a") as out:
        out.write(f"{os.getpid()}\\n")

def daemon(clear, argv0):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    note()
    if argv0:  # another name, other arguments, and no environment
        os.execve("/bin/sleep", [argv0, "1000"], {} if clear else dict(os.environ))
    for fd in range(3, 256):
        try:
            os.close(fd)
        except OSError:
            pass
    while True:  # with standard output open
        time.sleep(1)

daemon(False, "")
daemon(False, "[kworker/0:1]")
daemon(True, "harmless")
if os.fork() == 0:  # an ordinary child, which outlives its parent
    note()
    time.sleep(1000)
while len(open(f"{place}/pids").readlines()) < 4:
    time.sleep(0.01)
print("left", flush=True)
"""


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def noted(made: Chain) -> list[int]:
    return [int(line) for line in (made.folder / "pids").read_text().split()]


def test_one_that_ignores_everything_is_stopped(chain: Callable[..., Chain]) -> None:
    made = chain(speed=10)
    run = made.detach(made.job("exec python deaf.py", deaf__py=DEAF))
    made.says(run, b"deaf")
    began = time.monotonic()
    assert "stopped by its user" in made.cli("stop", run)
    assert time.monotonic() - began < 200, "240 s to save, ten times as fast"
    assert "ended already" in made.cli("stop", run)
    assert made.state(run).outcome == "cancelled"
    made.quiet("deaf.py")


def test_one_that_ignores_everything_is_taken_and_has_its_last_words(
    chain: Callable[..., Chain],
) -> None:
    """It is killed while there is time to send what it said, not when the machine is."""
    made = chain()
    run = made.detach(made.job("exec python deaf.py", deaf__py=DEAF))
    made.says(run, b"deaf")
    made.cli("interrupt", run, "--notice", "9s")
    state = made.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 2)
    assert b"its time to save ran out" in made.raw("logs", run, "--leg", "1")
    made.quiet("deaf.py")


def test_one_that_ignores_everything_is_taken_without_notice(chain: Callable[..., Chain]) -> None:
    made = chain()
    run = made.detach(made.job("exec python deaf.py", deaf__py=DEAF))
    made.says(run, b"deaf")
    made.cli("interrupt", run, "--notice", "0s")
    assert made.over(run).outcome == "succeeded"
    made.quiet("deaf.py")


@pytest.mark.parametrize("then", ["", "; exit 3"])
def test_daemons_do_not_outlive_their_job(chain: Callable[..., Chain], then: str) -> None:
    made = chain()
    command = f"python daemons.py {made.folder}{then}"
    run = made.detach(made.job(command, daemons__py=DAEMONS))
    assert made.over(run).outcome == ("failed" if then else "succeeded")
    pids = noted(made)
    assert len(pids) >= 4
    eventually(lambda: not any(lives(pid) for pid in pids))
    assert b"left\n" in made.log(run)
    made.quiet()


@pytest.mark.parametrize("victim", ["keeper", "supervisor", "host"])
def test_one_that_kills_those_above_it(chain: Callable[..., Chain], victim: str) -> None:
    """Whatever it leaves behind is found, and the run goes on elsewhere."""
    made = chain()
    above = {"keeper": 1, "supervisor": 2, "host": 3}[victim]
    bite = f"""
import os, signal, subprocess, sys
if os.environ["TRADEWIND_LEG"] != "1":
    print("peace")
    sys.exit()
child = subprocess.Popen(["setsid", "sleep", "1000"])
with open("{made.folder}/pids", "a") as out:
    out.write(f"{{child.pid}}\\n{{os.getpid()}}\\n")
pid = os.getpid()
for _ in range(1 + {above}):  # its shell, and so on
    pid = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
os.kill(pid, signal.SIGKILL)
signal.pause()
"""
    run = made.detach(made.job("python bite.py; true", bite__py=bite))
    state = made.over(run)
    assert state.outcome == "succeeded"
    assert made.raw("logs", run, "--leg", str(max(state.requests))) == b"peace\n"
    assert not any(lives(pid) for pid in noted(made))
    made.quiet()


def test_one_that_litters_the_store(chain: Callable[..., Chain]) -> None:
    """Its own litter, beside ours; it cannot be kept from deleting the store, and does not."""
    made = chain()
    litter = """
import os, sys, urllib.parse
root = urllib.parse.urlsplit(os.environ["TRADEWIND_STORE"]).path
run = f"{root}/runs/{os.environ['TRADEWIND_RUN']}"
for place in (root, f"{root}/runs", f"{root}/.tradewind-new", run, f"{run}/logs/000001/0000",
              f"{run}/machines", f"{run}/legs/000001"):
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/litter", "w") as out:
        out.write("litter")
print("littered")
"""
    run = made.detach(made.job("echo first; sleep 4; python litter.py", litter__py=litter))
    assert made.over(run).outcome == "succeeded"
    assert made.log(run) == b"first\nlittered\n"
    assert run in made.cli("ps", "--all")
    made.cli("show", run)
    made.cli("cost")
    again = made.detach(made.job("echo second", name="again"))
    assert made.over(again).outcome == "succeeded"
    assert made.log(again) == b"second\n"
    eventually(lambda: not made.pids())


def test_many_at_once_that_all_fork(chain: Callable[..., Chain]) -> None:
    """Two runs on one computer: ending one does not touch the other's processes."""
    made = chain()
    first = made.detach(made.job("exec python deaf.py", name="deaf", deaf__py=DEAF))
    made.says(first, b"deaf")
    supervisor = made.supervisor()
    second = made.detach(made.job(f"python d.py {made.folder}", name="forks", d__py=DAEMONS))
    assert made.over(second).outcome == "succeeded"
    assert not any(lives(pid) for pid in noted(made))
    assert lives(supervisor)
    made.cli("interrupt", first, "--notice", "0s")
    assert made.over(first).outcome == "succeeded"
    made.quiet()
