"""Bodies that are hosts: a namespace each for network, processes, names and folders; a cable to a
bridge that this computer is on too, with the bridge's first address.

Known lies: they share the computer's kernel, clock, processors and most of its disk; there is no
way out to the world, and no name is resolved; the network has no limits, and firewalls no effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import threading
import time
from pathlib import Path

from tests.cloud.bodies.forward import forward
from tests.cloud.bodies.hosts import PRIVATE, Body, Hosts
from tests.cloud.bodies.metadata import Metadata
from tests.cloud.bodies.processes import command
from tests.cloud.bodies.slots import NETNS, bridge, inside, ip, remove, remove_namespace

_NEW_NETWORK = 0x40000000
_METADATA = "169.254.169.254"


class NamespaceBodies(Hosts):
    sort = "netns"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.host = self._address(1)
        name = bridge(self._slot.number)
        ip(
            batch=f"link add {name} type bridge\n"
            f"addr add {self.host}/22 dev {name}\nlink set {name} up\n"
        )
        self._made: set[Path] = set()
        self._exposed: set[int] = set()

    def _address(self, number: int) -> str:
        return f"10.78.{self._slot.number * 4 + number // 256}.{number % 256}"

    def _name(self, body: Body) -> str:
        return f"{bridge(self._slot.number)}-{body.number}"

    def _boot(self, body: Body) -> None:
        name, address = self._name(body), body.machine.address
        for each in map(Path, PRIVATE):  # there must be something to mount on
            if not each.exists():
                each.mkdir(parents=True, exist_ok=True)
                self._made.add(each)
        (NETNS / name).mkdir(parents=True)
        host = f"ip-{address.replace('.', '-')}"
        hosts = f"127.0.0.1 localhost\n{address} {host} {body.machine.hostname}\n"
        if self.world.face.metadata_names:
            hosts += f"{_METADATA} {' '.join(self.world.face.metadata_names)}\n"
        (NETNS / name / "hosts").write_text(hosts)
        resolver = f"nameserver {self.host}\noptions timeout:1 attempts:1\n"
        (NETNS / name / "resolv.conf").write_text(resolver)
        ip(
            batch=f"netns add {name}\n"
            f"link add {name} type veth peer name eth0 netns {name}\n"
            f"link set {name} master {bridge(self._slot.number)} up\n"
        )
        ip(
            *("-n", name),
            batch=f"link set lo up\naddr add {_METADATA}/32 dev lo\n"
            f"addr add {address}/22 dev eth0\nlink set eth0 up\n"
            f"route add default via {self.host}\n",
        )
        body.metadata = Metadata(self.world, body.machine, _door(name))
        unshare = "unshare -u -i -p -f -m --mount-proc --kill-child".split()
        first = self._laid_out(body, namespace=True)
        self._spawn(body, ["ip", "netns", "exec", name, *unshare, *first])

    def _end(self, body: Body) -> None:
        assert body.process is not None
        name = self._name(body)
        body.process.kill()  # the first process in it dies with this one, and so all of them
        body.process.wait()
        while pids := inside(name):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        threading.Thread(target=remove_namespace, args=(name,), daemon=True).start()

    def alive(self, machine_id: str) -> list[tuple[int, str]]:
        body = self._bodies[machine_id]
        with body.lock:
            first = body.process.pid if body.process else 0
        if not first:
            return []
        found = []
        for pid in inside(self._name(body)):
            with contextlib.suppress(OSError):
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                if first not in (pid, parent):
                    found.append((pid, command(pid)))
        return found

    def expose(self, port: int) -> str:
        if port not in self._exposed:
            self._exposed.add(port)
            forward((self.host, port), ("127.0.0.1", port))
        return super().expose(port)

    def close(self) -> None:
        for body in self._bodies.values():
            self.kill(body.machine)
        remove(self._slot.number)
        with self._slot.alone() as alone:
            for each in self._made if alone else ():  # else others may have mounted there
                with contextlib.suppress(OSError):
                    each.rmdir()
        super().close()


def _door(name: str) -> socket.socket:
    """A socket of that namespace. Namespaces are of threads, so a thread goes there and dies."""
    found: list[socket.socket] = []

    def go() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(f"/run/netns/{name}", os.O_RDONLY)
        if libc.setns(handle, _NEW_NETWORK) == 0:
            found.append(socket.create_server((_METADATA, 80)))
        os.close(handle)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    if not found:
        raise OSError(f"the namespace {name} could not be entered")
    return found[0]
