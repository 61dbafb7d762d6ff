"""The API server's door: HTTPS with its own authority, keep-alive, streams; and the process around
a cluster, with `running()` for fixtures.

/_control/NAME is the test's (control.py), by a token of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import trustme

from tests.cloud.faces.kubernetes.api import Reply
from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.controls import Controls
from tests.cloud.faces.kubernetes.manager import ADMIN, Manager
from tests.cloud.faces.kubernetes.rbac import User
from tests.eventually import eventually
from tests.local_http import QuietServer

ROOT = Path(__file__).parents[4]
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""Nobody's credentials are among these."""


class Door(QuietServer):
    request_queue_size = 512

    def __init__(
        self, port: int, manager: Manager, tls: ssl.SSLContext, controls: Controls
    ) -> None:
        self.manager, self.tls, self.controls = manager, tls, controls
        self.sockets: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def get_request(self) -> tuple[Any, Any]:
        plain, address = super().get_request()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wrapped = self.tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.sockets.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: Any) -> None:
        self.sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), (ConnectionError, ssl.SSLError, OSError)):
            super().handle_error(request, client_address)

    def cut(self) -> None:
        """Every connection, as when the process dies."""
        for each in list(self.sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Door

    def log_message(self, *_: Any) -> None:
        pass

    def carry_out(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.path.startswith("/_control/"):
            self._control(body)
            return
        manager = self.server.manager
        if manager.cluster.dials.request_s:
            time.sleep(manager.cluster.dials.request_s)
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = manager.api.answer(self.command, self.path, headers, body, self._certificate())
        if reply.lost:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(reply)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = carry_out  # noqa: N815

    def _certificate(self) -> User | None:
        """Who a client's certificate says it is: its CN, and its Os as groups."""
        told: Any = self.connection.getpeercert()
        if not told:
            return None
        parts = [pair for each in told.get("subject", ()) for pair in each]
        name = next((value for key, value in parts if key == "commonName"), "")
        groups = tuple(value for key, value in parts if key == "organizationName")
        return User(name, groups) if name else None

    def _control(self, body: bytes) -> None:
        try:
            asked = json.loads(body or b"{}")
            result = self.server.controls.do(self.path.removeprefix("/_control/"), asked)
            status = 200
        except (ValueError, TypeError, KeyError) as error:
            result, status = {"error": f"{type(error).__name__}: {error}"}, 400
        self._send(Reply(status, json.dumps(result).encode()))

    def _send(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        now = self.server.manager.cluster.now()
        self.send_header("Date", formatdate(now, usegmt=True))
        self.send_header("Content-Type", reply.sort)
        for name, value in reply.headers:
            self.send_header(name, value)
        if reply.stream is None:
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in reply.stream:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


class Server:
    """A cluster that answers; may be restarted while its nodes go on."""

    def __init__(self, folder: Path, bodies: str, port: int = 0) -> None:
        self.manager = Manager(folder, bodies)
        self.authority = trustme.CA()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(
            "127.0.0.1", "localhost", "kubernetes.default.svc"
        ).configure_cert(self.tls)
        self.authority.configure_trust(self.tls)
        self.tls.verify_mode = ssl.CERT_OPTIONAL
        self.controls = Controls(self)
        self._door = self._opened(port)
        self.port = int(self._door.server_address[1])
        sight = self.manager.sight
        sight.port, sight.authority = self.port, self.authority_text
        self.admin = self.manager.tokens.make(ADMIN)
        self.manager.start()

    @property
    def authority_text(self) -> str:
        return self.authority.cert_pem.bytes().decode()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def _opened(self, port: int) -> Door:
        door = Door(port, self.manager, self.tls, self.controls)
        threading.Thread(target=door.serve_forever, args=(0.05,), daemon=True).start()
        return door

    def restart(self, away_s: float) -> None:
        """The API server goes, with every connection, and comes back on the same port."""

        def go() -> None:
            self.manager.api.over = True
            self._door.shutdown()
            self._door.server_close()
            self._door.cut()
            time.sleep(away_s)
            self.manager.api.over = False
            while True:
                try:
                    self._door = self._opened(self.port)
                    return
                except OSError:
                    time.sleep(0.02)

        threading.Thread(target=go, daemon=True).start()

    def close(self) -> None:
        self._door.shutdown()
        self._door.server_close()
        self._door.cut()
        self.manager.close()


@contextlib.contextmanager
def running(folder: Path, bodies: str = "none", nodes: bool = True) -> Iterator[Control]:
    """A cluster in a process of its own, until the end of the block. `bodies`: none; process;
    namespace (needs root); auto: namespace where that is possible. `nodes`: it has three from its
    start, cpu-0, gpu-0 and gpu-1 (spot), the last two with eight GPUs each."""
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    module = "tests.cloud.faces.kubernetes"
    command = [sys.executable, "-m", module, "--state", str(folder), "--bodies", bodies]
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "HOME": str(folder),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *([] if nodes else ["--no-nodes"])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=env,
        )

    def up() -> Any:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        return json.loads(told.read_text()) if told.exists() else None

    try:
        found = eventually(up)
        yield Control(folder, found["url"], found["authority"], found["admin"])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cloud.faces.kubernetes")
    parser.add_argument("--state", type=Path, required=True, help="a folder")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--bodies", choices=("none", "process", "namespace", "auto"), default="auto"
    )
    parser.add_argument("--no-nodes", action="store_true")
    given = parser.parse_args()
    folder = given.state.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    server = Server(folder, given.bodies, given.port)
    if not given.no_nodes:
        server.controls.do("usual_nodes", {})
    told = {"url": server.url, "authority": server.authority_text, "admin": server.admin}
    (folder / "told.new").write_text(json.dumps(told))
    (folder / "told.new").replace(folder / "told.json")
    control = Control(folder, server.url, server.authority_text, server.admin)
    sys.stdout.write(f"{control.kubeconfig()}\n")
    sys.stdout.flush()
    try:
        over.wait()
    finally:
        server.close()
