"""The metadata service of one machine: by it a body learns who it is, and says that it shuts down.

What it tells is the face's. /equipment/… is no part of any cloud: halt.py asks there.
"""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.cloud.face import Answer, NotYet
from tests.cloud.world import Machine, World
from tests.local_http import QuietServer

_LOOK_S = 0.05


class Metadata:
    """Serves on a socket that listens already."""

    def __init__(self, world: World, machine: Machine, door: socket.socket) -> None:
        self._world, self._machine = world, machine
        self._server = QuietServer(("", 0), self._handler(), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = door
        self._server.server_address = door.getsockname()
        threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True).start()

    def close(self) -> None:
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        world, machine = self._world, self._machine

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                while True:
                    try:
                        with world.lock:
                            world.settle()
                            told = self.told() or Answer(404, [], b"")
                        break
                    except NotYet as waits:
                        self.path = waits.again or self.path
                        time.sleep(_LOOK_S)
                self.send_response(told.status)
                named = {name.lower() for name, _ in told.headers}
                plain = [] if "content-type" in named else [("Content-Type", "text/plain")]
                for name, value in [*plain, *told.headers]:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(told.body)))
                self.end_headers()
                self.wfile.write(told.body)

            def told(self) -> Answer | None:
                asked = urlsplit(self.path)
                if (self.command, asked.path) == ("POST", "/equipment/shutdown"):
                    after_s = float(parse_qs(asked.query).get("after_s", ["0"])[0])
                    world.agenda.at(world.now() + after_s, lambda: world.shut_down(machine))
                    return Answer(200, [], b"")
                headers = dict(self.headers.items())
                return world.face.metadata_asked(machine, self.command, self.path, headers)

            def do_PUT(self) -> None:
                self.do_GET()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
