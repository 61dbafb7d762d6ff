"""A door before a real S3 server that keeps its bucket in one region, as AWS does: who signs for
another is sent away, and told where it is."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OWN = ("connection", "transfer-encoding", "keep-alive")
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/s3/")


@dataclass
class Door:
    port: int = 0
    region: str = "eu-west-1"
    """Where the bucket is."""
    style: str = "redirect"
    """How the wrong region is answered: `redirect` (301), `malformed` (400, of regions since 2019),
    or `silent` (301, and nobody is told where)."""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, and the region signed for: empty if nobody signed."""

    @property
    def wrong(self) -> int:
        return sum(1 for _, _, region in self.requests if region and region != self.region)

    @property
    def asked(self) -> int:
        """How often somebody asked where the bucket is."""
        return sum(1 for method, _, region in self.requests if method == "HEAD" and not region)


@contextmanager
def regional(port: int, door: Door) -> Iterator[Door]:
    """`port` is that of the server, on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            scope = _SCOPE.search(self.headers.get("Authorization") or "")
            region = scope[1] if scope else ""
            door.requests.append((self.command, self.path, region))
            if region != door.region:
                self._send_away(region)
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
                self._say(answer.status, answer.getheaders(), answer.read())
            finally:
                inner.close()

        def _send_away(self, region: str) -> None:
            told = [] if door.style == "silent" else [("x-amz-bucket-region", door.region)]
            if not region:  # nobody in particular may know where it is, and nothing more
                self._say(403, told, _error("AccessDenied", "Access Denied"))
            elif door.style == "malformed":
                words = f"the region '{region}' is wrong; expecting '{door.region}'"
                self._say(400, told, _error("AuthorizationHeaderMalformed", words))
            else:
                words = "must be addressed using the specified endpoint"
                self._say(301, told, _error("PermanentRedirect", words))

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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    door.port = server.server_address[1]
    try:
        yield door
    finally:
        server.shutdown()
        server.server_close()


def _error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
