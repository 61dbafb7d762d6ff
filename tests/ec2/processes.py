"""Bodies for whoever is not root: a tree of processes each, told apart by a variable.

Known lies: disk, names and ports are the computer's; a machine's address is of its own (127.77.…),
but a server that listens on all addresses listens on everybody's. The metadata is found by
AWS_EC2_METADATA_SERVICE_ENDPOINT and nowhere else, and user-data is not root.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

from tests.ec2.hosts import Body, Hosts
from tests.ec2.imds import Metadata

_MARK = "TRADEWIND_EC2_BODY"


class ProcessBodies(Hosts):
    sort = "process"

    def _address(self, number: int) -> str:
        return f"127.77.{self._slot.number}.{number}"

    def _boot(self, body: Body) -> None:
        door = socket.create_server((body.machine.address, 0))
        body.metadata = Metadata(self.world, body.machine, door)
        host, port = door.getsockname()
        command = self._laid_out(
            body,
            namespace=False,
            AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://{host}:{port}/",
            TMPDIR=str(body.folder / "disk/tmp"),
            **{_MARK: body.machine.id},
        )
        env = {**os.environ, _MARK: body.machine.id}
        self._spawn(body, command, env=env, start_new_session=True)

    def _end(self, body: Body) -> None:
        assert body.process is not None
        while pids := _marked(body.machine.id):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                body.process.poll()

    def alive(self, instance_id: str) -> list[tuple[int, str]]:
        process = self._bodies[instance_id].process
        own = process.pid if process else 0
        return [(pid, command(pid)) for pid in _marked(instance_id) if pid != own]


def _marked(instance_id: str) -> list[int]:
    mark = f"{_MARK}={instance_id}".encode()
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
