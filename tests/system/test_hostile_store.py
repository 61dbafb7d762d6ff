"""Stores that are away, or forbidden, for a while or for good."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.store.servers import KEY, S3Server
from tests.system.chain import Chain
from tests.system.test_hostile_disk import counting, enough, printed_after, whole

pytestmark = pytest.mark.system

SPEED = 5.0
"""A supervisor stops its job after 24 s, and its machine is off after 60."""


def foreground(made: Chain, work: Path) -> tuple[subprocess.Popen[bytes], Path, str]:
    """`tradewind run` as one types it, with what it says in a file; and the run's id."""
    said = made.folder / "said"
    with said.open("wb") as stream:
        process = made.popen("run", str(work), "--local", "--yes", stdout=stream, stderr=stream)
    eventually(lambda: "is up" in said.read_text())
    (run,) = made.ids()
    return process, said, run


@pytest.fixture
def on_s3(s3_server: S3Server, chain: Callable[..., Chain]) -> Chain:
    return chain(store="s3://runs/hostile", env=s3_server.env, speed=SPEED)


def test_a_server_that_is_restarted(s3_server: S3Server, on_s3: Chain) -> None:
    """The job ends while it is away: what it printed meanwhile is sent before its end is told."""
    process, said, run = foreground(on_s3, counting(on_s3))
    on_s3.says(run, b"line 20 ")
    s3_server.stop()
    printed_after(on_s3, run, 5_000)
    assert "did not answer" in on_s3.cli("ps", code=6)
    enough(on_s3)
    eventually(lambda: "trouble: s3://runs/hostile did not answer" in said.read_text())
    s3_server.start()
    assert process.wait(120) == 0, said.read_text()
    assert "the error has cleared" in said.read_text()
    state = on_s3.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 1)
    assert whole(on_s3.log(run))
    on_s3.quiet()


def test_a_server_that_hangs_for_a_moment(s3_server: S3Server, on_s3: Chain) -> None:
    process, said, run = foreground(on_s3, counting(on_s3))
    on_s3.says(run, b"line 20 ")
    os.kill(s3_server.process.pid, signal.SIGSTOP)
    printed_after(on_s3, run, 10_000)
    os.kill(s3_server.process.pid, signal.SIGCONT)
    enough(on_s3)
    assert process.wait(120) == 0, said.read_text()
    assert len(on_s3.state(run).requests) == 1
    assert whole(on_s3.log(run))
    on_s3.quiet()


@pytest.mark.long
def test_a_server_that_hangs_for_longer_than_jobs_may_go_on(
    s3_server: S3Server, on_s3: Chain
) -> None:
    """The job is stopped in time, since it may have been replaced; and is begun again."""
    process, said, run = foreground(on_s3, counting(on_s3))
    on_s3.says(run, b"line 20 ")
    spool = next(on_s3.machines().glob("*/spool.log"))
    os.kill(s3_server.process.pid, signal.SIGSTOP)
    eventually(lambda: b"could not reach the store" in spool.read_bytes())
    os.kill(s3_server.process.pid, signal.SIGCONT)
    eventually(lambda: len(on_s3.state(run).requests) == 2)
    enough(on_s3)
    assert process.wait(120) == 0, said.read_text()
    assert b"could not reach the store" in on_s3.raw("logs", run, "--leg", "1")
    assert whole(on_s3.raw("logs", run, "--leg", "2"))
    on_s3.quiet()


@pytest.mark.long
def test_a_key_that_is_revoked_and_given_back(s3_server: S3Server, on_s3: Chain) -> None:
    process, said, run = foreground(on_s3, counting(on_s3))
    on_s3.says(run, b"line 20 ")
    s3_server.stop()
    s3_server.permit("somebody-else")
    s3_server.start()
    eventually(lambda: "refused access" in said.read_text())
    told = on_s3.cli("ps", code=5)
    assert "refused access" in told
    assert "new keys" in told
    s3_server.stop()
    s3_server.permit(KEY)
    s3_server.start()
    enough(on_s3)
    assert process.wait(120) == 0, said.read_text()
    last = max(on_s3.state(run).requests)
    assert whole(on_s3.raw("logs", run, "--leg", str(last)))
    on_s3.quiet()


def test_a_folder_that_is_forbidden_for_a_while(chain: Callable[..., Chain]) -> None:
    made = chain(mortal=True)
    process, said, run = foreground(made, counting(made))
    made.says(run, b"line 20 ")
    folder = Path(made.store_url)
    folder.chmod(0)
    try:
        printed_after(made, run, 5_000)
        for command in (["ps"], ["show", run], ["logs", run], ["stop", run], ["tick"]):
            assert "Permission denied" in made.cli(*command, code=5)
        eventually(lambda: "trouble: " in said.read_text())
    finally:
        folder.chmod(0o700)
    enough(made)
    assert process.wait(60) == 0, said.read_text()
    assert len(made.state(run).requests) == 1
    assert whole(made.log(run))
    made.quiet()


def test_a_folder_that_is_forbidden_for_good(chain: Callable[..., Chain]) -> None:
    """The machine goes by itself, the watch goes on, and nothing recorded is lost."""
    made = chain(mortal=True, speed=10)
    process, _, run = foreground(made, counting(made))
    made.says(run, b"line 20 ")
    folder = Path(made.store_url)
    before = made.state(run).number
    folder.chmod(0)
    try:
        eventually(lambda: list(made.machines().glob("*/ended.json")))
        eventually(lambda: made.pids() == [process.pid])
        assert process.poll() is None, "it waits for the store"
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        folder.chmod(0o700)
    assert made.state(run).number == before
    assert "line 20 " in made.cli("logs", run)
    enough(made)
    assert "done" in made.cli("watch", run)
    assert len(made.state(run).requests) == 2
    made.quiet()
