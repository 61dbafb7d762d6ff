"""Starting the equipment: in a process of its own, since a face may have state that is one for each
process."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from tests.cloud.bodies import Bodies
from tests.cloud.control import Control
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]
C = TypeVar("C", bound=Control)
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""Nobody's credentials are among these."""


@contextlib.contextmanager
def running(folder: Path, face: str, control: type[C], bodies: str = "none") -> Iterator[C]:
    """The equipment, until the end of the block; `folder` is for its bodies' disks and its log.
    `face`: a module that has a FACE. `control`: what a test holds of it. `bodies`: none, process,
    netns, or auto (netns for root, where there is `ip`)."""
    folder.mkdir(parents=True, exist_ok=True)
    address = folder / "url"
    address.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.cloud", face, "--port", "0", "--state", str(folder)]
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [str(ROOT / "src"), str(ROOT)]
    env |= {"PYTHONPATH": os.pathsep.join(paths), "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--bodies", bodies], stdout=log, stderr=log, cwd=ROOT, env=env
        )

    def up() -> str:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        return address.read_text() if address.exists() else ""

    try:
        yield control(eventually(up))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def chosen(sort: str, folder: Path) -> Bodies:
    if sort == "auto":
        from tests.cloud.bodies.slots import possible

        sort = "netns" if possible() else "process"
    if sort == "none":
        return Bodies()
    if sort == "process":
        from tests.cloud.bodies.processes import ProcessBodies

        return ProcessBodies(folder)
    from tests.cloud.bodies.netns import NamespaceBodies
    from tests.cloud.bodies.slots import possible

    if not possible():
        sys.exit("bodies of namespaces need root, and ip, unshare, setpriv and mount")

    return NamespaceBodies(folder)


def serve(face: str, folder: Path, port: int, sort: str) -> None:
    """Until SIGTERM."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    from tests.cloud.door import Door
    from tests.cloud.world import World

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def send_response(self, code: int, message: str | None = None) -> None:
            self.log_request(code)
            self.send_response_only(code, message)  # the Date is the door's

        def log_request(self, *_: object) -> None:
            pass

    bodies = chosen(sort, folder)
    world = World(bodies, importlib.import_module(face).FACE, folder)
    door = Door(world)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, lambda *_: over.set())
    servers = [make_server("127.0.0.1", port, door, True, request_handler=Handler)]
    port = servers[0].port
    if bodies.host != "127.0.0.1":
        servers.append(make_server(bodies.host, port, door, True, request_handler=Handler))
    for each in servers:
        each.daemon_threads = True  # type: ignore[attr-defined]
        threading.Thread(target=each.serve_forever, daemon=True).start()
    url, fresh = f"http://{bodies.host}:{port}", folder / "url.new"
    fresh.write_text(url)
    fresh.replace(folder / "url")
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    try:
        while not over.wait(0.05):
            world.settle()
    finally:
        with world.lock:
            bodies.close()
