"""Bodies for whoever is not root: a tree of processes each, told apart by a variable.

Known lies: disk, names and ports are the computer's; a machine's address is of its own (127.78.…),
but a server that listens on all addresses listens on everybody's. The metadata is found by the
face's variable and nowhere else, and user-data is not root.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

from tests.cloud.bodies.halt import METADATA
from tests.cloud.bodies.hosts import Body, Hosts
from tests.cloud.bodies.metadata import Metadata

_MARK = "TRADEWIND_BODY"


class ProcessBodies(Hosts):
    sort = "process"

    def _address(self, number: int) -> str:
        return f"127.78.{self._slot.number}.{number}"

    def _boot(self, body: Body) -> None:
        door = socket.create_server((body.machine.address, 0))
        body.metadata = Metadata(self.world, body.machine, door)
        host, port = door.getsockname()
        found = {METADATA: f"http://{host}:{port}/"}
        found |= self.world.face.metadata_found_by(host, port)
        command = self._laid_out(
            body,
            namespace=False,
            TMPDIR=str(body.folder / "disk/tmp"),
            **{_MARK: body.machine.id},
            **found,
        )
        env = {**os.environ, _MARK: body.machine.id}
        self._spawn(body, command, env=env, start_new_session=True)

    def _end(self, body: Body) -> None:
        """By descent, not by the mark: while a process changes its program, its variables read
        empty. The first one stands still meanwhile, and all orphans are its children."""
        assert body.process is not None
        body.process.send_signal(signal.SIGSTOP)
        while pids := _descended(body.process.pid):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        body.process.kill()

    def alive(self, machine_id: str) -> list[tuple[int, str]]:
        body = self._bodies[machine_id]
        with body.lock:
            own = body.process.pid if body.process else 0
        return [(pid, command(pid)) for pid in _marked(machine_id) if pid != own]


def _descended(first: int) -> set[int]:
    """Those under a process that live."""
    parents, dead = {}, set()
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (each / "stat").read_text().rpartition(")")[2].split()[:2]
                parents[int(each.name)] = int(parent)
                if state in "ZX":
                    dead.add(int(each.name))
    found: set[int] = set()
    while more := {pid for pid, over in parents.items() if over in found | {first}} - found:
        found |= more
    return found - dead


def _marked(machine_id: str) -> list[int]:
    mark = f"{_MARK}={machine_id}".encode()
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (each / "environ").read_bytes().split(b"\0"):
                    found.append(int(each.name))
    return found


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""
