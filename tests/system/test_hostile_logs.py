"""Output that is long, wide or no text at all, from the job to `tradewind logs`, byte for byte."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.store.servers import S3Server
from tests.system.chain import Chain
from tradewind.supervisor.logs import read_logs

pytestmark = pytest.mark.system

PRINT = """
import os, random, sys
def pieces(megabytes):
    chance = random.Random(7)
    for n in range(megabytes):
        kind = n % 4
        if kind == 0:
            yield chance.randbytes(1 << 20)
        elif kind == 1:
            yield b"w" * ((1 << 20) - 1) + b"\\n"
        elif kind == 2:
            yield b"".join(b"\\r%7d %%" % k for k in range(100_000))
        else:
            yield b"".join(b"line %7d\\n" % k for k in range(80_000))
    yield "ends without a line's end \\u2713".encode()
if __name__ == "__main__":
    for piece in pieces(int(sys.argv[1])):
        while piece:
            piece = piece[os.write(1, piece):]
"""


def expected(megabytes: int) -> bytes:
    names: dict[str, object] = {"__name__": "print"}
    exec(PRINT, names)
    return b"".join(names["pieces"](megabytes))  # type: ignore[operator]


def high_water(pid: int) -> int:
    """The most memory it ever had, bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("VmHWM"))
    return int(found.split()[1]) * 1024


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_a_hundred_megabytes(
    where: str, request: pytest.FixtureRequest, chain: Callable[..., Chain]
) -> None:
    more = {}
    if where == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        more = {"store": "s3://runs/logs", "env": server.env}
    made = chain(**more)
    wanted = expected(100)
    assert len(wanted) > 90_000_000
    go, read = made.folder / "go", made.folder / "read"
    command = f"python print.py 100; touch {go}; until [ -e {read} ]; do sleep 0.1; done"
    run = made.detach(made.job(command, print__py=PRINT))
    supervisor = made.supervisor()
    eventually(go.exists)
    spool = next(made.machines().glob("*/spool.log"))

    def sent() -> bool:
        return bool(read_logs(made.store, run, 1, 0, len(wanted) - 1))

    eventually(sent, within_s=120)
    assert high_water(supervisor) < 200_000_000
    # What is in the store does not take room on the machine for ever.
    eventually(lambda: spool.stat().st_blocks * 512 < 4_000_000)
    read.touch()
    assert made.over(run).outcome == "succeeded"
    found = made.log(run)
    assert len(found) == len(wanted)
    assert hashlib.sha256(found).digest() == hashlib.sha256(wanted).digest()
    made.quiet()


def test_a_supervisor_that_is_killed_in_the_middle_of_it(chain: Callable[..., Chain]) -> None:
    """The next one, on the same machine, sends what the first left, and then begins again."""
    made = chain()
    wanted = expected(40)
    hold = made.folder / "hold"
    hold.touch()
    command = f"python print.py 40; while [ -e {hold} ]; do sleep 0.1; done"
    run = made.detach(made.job(command, print__py=PRINT))
    eventually(lambda: len(read_logs(made.store, run, 1, 0, most=1 << 40)) > 5_000_000)
    killed = made.supervisor()
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: made.supervisor() not in (0, killed))
    hold.unlink()
    state = made.over(run)
    assert (state.outcome, len(state.requests)) == ("succeeded", 1)
    log = made.log(run)
    assert log.endswith(wanted)
    first = log.removesuffix(wanted)
    assert len(first) > 5_000_000
    # The shell may live long enough to say that its `sleep` was killed.
    assert wanted.startswith(first.removesuffix(b"Killed\n"))
    made.quiet()
