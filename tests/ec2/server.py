"""Starting the equipment: in a process of its own, since moto's state is one for each process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.ec2.bodies import Bodies
from tests.ec2.control import Control
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def running(folder: Path, bodies: str = "none") -> Iterator[Control]:
    """The equipment, until the end of the block; `folder` is for its bodies' disks and its log.
    `bodies`: none, process, netns, or auto (netns for root, where there is `ip`)."""
    folder.mkdir(parents=True, exist_ok=True)
    address = folder / "url"
    address.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.ec2", "--port", "0", "--state", str(folder)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
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
        yield Control(eventually(up))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def chosen(sort: str, folder: Path) -> Bodies:
    if sort == "auto":
        from tests.ec2.slots import possible

        sort = "netns" if possible() else "process"
    if sort == "none":
        return Bodies()
    if sort == "process":
        from tests.ec2.processes import ProcessBodies

        return ProcessBodies(folder)
    from tests.ec2.netns import NamespaceBodies
    from tests.ec2.slots import possible

    if not possible():
        sys.exit("bodies of namespaces need root, and ip, unshare, setpriv and mount")

    return NamespaceBodies(folder)


def serve(folder: Path, port: int, sort: str) -> None:
    """Until SIGTERM."""
    os.environ |= {
        "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "1",
        "MOTO_ENABLE_AMI_VALIDATION": "1",
        "MOTO_ENABLE_KEYPAIR_VALIDATION": "1",
        "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
        # What moto itself asks of boto3 must reach nobody.
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    from tests.ec2 import actions, launches, listings
    from tests.ec2.front import Front
    from tests.ec2.world import World

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"

        def send_response(self, code: int, message: str | None = None) -> None:
            self.log_request(code)
            self.send_response_only(code, message)  # the Date is the front's

        def log_request(self, *_: object) -> None:
            pass

    bodies = chosen(sort, folder)
    world = bodies.world = World(bodies)
    listings.install(world)
    launches.install(world)
    actions.install(world)
    front = Front(world)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, lambda *_: over.set())
    doors = [make_server("127.0.0.1", port, front, True, request_handler=Handler)]
    port = doors[0].port
    if bodies.host != "127.0.0.1":
        doors.append(make_server(bodies.host, port, front, True, request_handler=Handler))
    for door in doors:
        door.daemon_threads = True  # type: ignore[attr-defined]
        threading.Thread(target=door.serve_forever, daemon=True).start()
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
