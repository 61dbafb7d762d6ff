"""A door before a real S3 server that fails a share of all requests: half of those before they are
carried out, half after."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OWN = ("connection", "transfer-encoding", "keep-alive")


@contextmanager
def flaky(port: int, share: float, seed: int = 0) -> Iterator[int]:
    """The port of the door; `port` is that of the server, on 127.0.0.1."""
    chosen, lock = random.Random(seed), threading.Lock()

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                bad, before = chosen.random() < share, chosen.random() < 0.5
            if bad and before:
                self._say(503, [], b"")
                return
            inner = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                # As it was signed: the name of this door with it.
                inner.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in _OWN:
                        inner.putheader(name, value)
                inner.endheaders(body)
                answer = inner.getresponse()
                data = answer.read()
            finally:
                inner.close()
            if bad:
                self._say(500, [], b"")
            else:
                self._say(answer.status, answer.getheaders(), data)

        def _say(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
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

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
