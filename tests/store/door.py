"""A door before a real server of S3: each request comes through here, and its answer goes back."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.local_http import QuietServer

_OWN = ("connection", "transfer-encoding", "keep-alive")
Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers, body."""


class Door(BaseHTTPRequestHandler):
    """Of one request. `answer` is for those who do more than pass on."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    inner: int
    """The server's port, on 127.0.0.1."""

    def answer(self, body: bytes) -> Answer:
        return self.passed(body)

    def passed(self, body: bytes) -> Answer:
        inner = http.client.HTTPConnection("127.0.0.1", self.inner, timeout=60)
        try:
            # As it was signed: the name of this door with it.
            inner.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _OWN:
                    inner.putheader(name, value)
            inner.endheaders(body)
            answer = inner.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            inner.close()

    def _go(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, headers, data = self.answer(body)
        except OSError:  # the server has no answer, and so have we
            self.close_connection = True
            return
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in (*_OWN, "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _go  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def serve(door: type[Door], host: str = "127.0.0.1") -> ThreadingHTTPServer:
    server = QuietServer((host, 0), door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@contextmanager
def serving(door: type[Door], host: str = "127.0.0.1") -> Iterator[int]:
    """Its port."""
    server = serve(door, host)
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
