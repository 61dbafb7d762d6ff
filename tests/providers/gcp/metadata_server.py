"""A metadata server on this computer, as a machine of Google's has one: a flavor is demanded, and a
question may wait for a change."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.local_http import QuietServer

_ROOT = "/computeMetadata/v1/"


class MetadataServer:
    def __init__(self) -> None:
        self._says: dict[str, str] = {}
        self._changed = threading.Condition()
        self.broken = False
        self.asked: list[str] = []
        service = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked.append(self.path)
                parts = urlsplit(self.path)
                if self.headers["Metadata-Flavor"] != "Google":
                    return self._say(403, "Missing Metadata-Flavor:Google header.")
                if service.broken:
                    return self._say(503, "")
                name, query = parts.path.removeprefix(_ROOT), parse_qs(parts.query)
                if "wait_for_change" in query:
                    service.wait(name, query["last_etag"][0], float(query["timeout_sec"][0]))
                text = service._says.get(name)
                return self._say(404 if text is None else 200, text or "")

            def _say(self, code: int, text: str) -> None:
                self.send_response(code)
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("ETag", _etag(text))
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = QuietServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def say(self, **says: str) -> None:
        """`instance__preempted="TRUE"`"""
        with self._changed:
            for name, text in says.items():
                self._says[name.replace("__", "/").replace("_", "-")] = text
            self._changed.notify_all()

    def wait(self, name: str, etag: str, wait_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: _etag(self._says.get(name, "")) != etag, wait_s)


def _etag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def serving() -> Iterator[MetadataServer]:
    made = MetadataServer()
    made.say(instance__preempted="FALSE", instance__maintenance_event="NONE")
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
