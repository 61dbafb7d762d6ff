"""What both sorts of real bodies have in common: a folder each, a first process, an order of start
and death. See init.py for what runs inside, netns.py and processes.py for the walls around it.

    folder/disk/…          what the body sees as its own folders
    folder/disk/var/log/cloud-init-output.log   what its user-data says
    folder/init.log        trouble before that
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cloud.bodies import Bodies
from tests.cloud.bodies.halt import program
from tests.cloud.bodies.metadata import Metadata
from tests.cloud.bodies.slots import Slot
from tests.cloud.world import Machine

ROOT = Path(__file__).parents[3]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PRIVATE = (
    *("/tmp", "/var/tmp", "/root", "/home", "/var/log", "/var/lib/cloud"),
    *("/var/lib/tradewind", "/opt/tradewind", "/run/tradewind", "/etc/tradewind"),
)


@dataclass
class Body:
    machine: Machine
    number: int
    folder: Path
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while it boots. Whoever has it does not wait for the world's."""
    process: subprocess.Popen[bytes] | None = None
    metadata: Metadata | None = None
    dead: bool = False

    @property
    def log(self) -> Path:
        return self.folder / "disk/var/log/cloud-init-output.log"


class Hosts(Bodies):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slot = Slot()
        self._bodies: dict[str, Body] = {}
        # Threads that stay: a body dies with the thread that started it.
        self._starters = ThreadPoolExecutor(4)

    def address(self, machine: Machine) -> str:
        number = len(self._bodies) + 2
        folder = self._folder / "bodies" / machine.id
        self._bodies[machine.id] = Body(machine, number, folder)
        return self._address(number)

    def start(self, machine: Machine) -> None:
        self._starters.submit(self._started, self._bodies[machine.id])

    def _started(self, body: Body) -> None:
        with body.lock:
            if body.dead:
                return
            try:
                self._boot(body)
            except Exception as error:
                body.folder.mkdir(parents=True, exist_ok=True)
                with (body.folder / "init.log").open("a") as log:
                    log.write(f"equipment: {error!r}\n")

    def kill(self, machine: Machine) -> None:
        body = self._bodies[machine.id]
        body.dead = True
        with body.lock:
            if body.process is not None:
                self._end(body)
                body.process.wait()
                body.process = None
            if body.metadata is not None:
                body.metadata.close()
                body.metadata = None

    def console(self, machine_id: str) -> bytes:
        body = self._bodies[machine_id]
        parts = [each for each in (body.folder / "init.log", body.log) if each.exists()]
        return b"".join(each.read_bytes() for each in parts)

    def close(self) -> None:
        for body in self._bodies.values():
            self.kill(body.machine)
        self._starters.shutdown(cancel_futures=True)
        self._slot.close()
        shutil.rmtree(self._folder / "bodies", ignore_errors=True)

    # -- for the two sorts -------------------------------------------------------------------------

    def _address(self, number: int) -> str:
        raise NotImplementedError

    def _boot(self, body: Body) -> None:
        raise NotImplementedError

    def _end(self, body: Body) -> None:
        raise NotImplementedError

    def _laid_out(self, body: Body, namespace: bool, **env: str) -> list[str]:
        """The folders and the first process's configuration; the command of that process."""
        disk = body.folder / "disk"
        for each in PRIVATE:
            (disk / each[1:]).mkdir(parents=True, exist_ok=True)
        for each in ("tmp", "var/tmp"):
            (disk / each).chmod(0o1777)
        inner = Path("/") if namespace else disk
        cloud = Path("var/lib/cloud")
        for folder in ("bin", "instance", "scripts/per-boot"):
            (disk / cloud / folder).mkdir(parents=True, exist_ok=True)
        for name in ("shutdown", "poweroff", "halt", "reboot", "systemctl"):
            _program(disk / cloud / "bin" / name, program(sys.executable).encode())
        _program(disk / cloud / "instance/user-data.txt", body.machine.user_data)
        binaries = str(inner / cloud / "bin")
        given: dict[str, Any] = {
            "namespace": namespace,
            "disk": str(disk),
            "private": list(PRIVATE),
            "keep": sorted({sys.prefix, sys.base_prefix, str(ROOT)}),
            "bin": binaries,
            "script": str(inner / cloud / "instance/user-data.txt"),
            "log": str(inner / "var/log/cloud-init-output.log"),
            "hostname": f"ip-{body.machine.address.replace('.', '-')}",
            "env": {
                "PATH": f"{binaries}:{PATH}",
                "LANG": "C.UTF-8",
                **self.world.dials.body_env,
                **env,
            },
        }
        config = body.folder / "init.json"
        config.write_text(json.dumps(given))
        return [sys.executable, "-IS", str(Path(__file__).parent / "init.py"), str(config)]

    def _spawn(self, body: Body, command: list[str], **more: Any) -> None:
        with (body.folder / "init.log").open("ab") as log:
            body.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **more,
            )


def _program(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    path.chmod(0o755)
