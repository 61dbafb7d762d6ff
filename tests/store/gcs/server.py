"""HTTP of the Cloud Storage server: reads a request, lets it pass the gate, enters it in the books.

Bodies are streamed to disk, and from it. Requests by class: what writes or lists is of the one (A),
what reads of the other (B), what deletes is free, and so is whatever is refused or fails (4xx,
5xx).
"""

from __future__ import annotations

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.local_http import QuietServer
from tests.store.gcs.gate import Asked, Gate, Open
from tests.store.gcs.objects import Objects, Refused

_PIECE = 1 << 20
_UNAVAILABLE = Refused(503, "ServiceUnavailable", "Service unavailable. Please try again.")
Enter = Callable[[str, str, int, int], None]
"""Into the books: the caller's address, `writes`, `reads` or `free`, bytes in, bytes out."""


@dataclass
class Given:
    """A body, on disk."""

    file: Path
    size: int
    md5: str

    def text(self) -> bytes:
        return self.file.read_bytes()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes = b""
    stream: Any = None
    """To be sent instead of a body: `span` of it."""
    span: tuple[int, int] = (0, 0)
    sort: str = "reads"
    counted_in: int = 0


class Gcs:
    """What all requests share. `fails` is asked for each: True lets it fail by 503; every second
    of those is carried out first."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float],
        gate: Gate | None = None,
        enter: Enter | None = None,
        fails: Callable[[], bool] = lambda: False,
        pace_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.objects = Objects(folder, now)
        self.now = now
        self.gate: Gate = gate or Open()
        self.enter: Enter = enter or (lambda *_: None)
        self._fails, self.pace_s = fails, pace_s
        self._failed = itertools.count(1)
        self.made: Callable[[str, dict[str, Any]], None] = lambda name, told: None
        """Told of each new bucket."""
        self.resumable: dict[str, tuple[str, str, Mapping[str, str], Path]] = {}

    def failing(self) -> bool | None:
        """None: it is answered as it should be; else whether it is carried out first."""
        return next(self._failed) % 2 == 0 if self._fails() else None

    def serve(self, host: str, port: int = 0) -> ThreadingHTTPServer:
        gcs = self

        class Bound(Handler):
            shared = gcs

        server = QuietServer((host, port), Bound)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    shared: Gcs
    asked: Asked
    given: Given
    kept: bool
    """Its body has become an object's content, and stays."""

    def _go(self) -> None:
        from tests.store.gcs import json as json_api
        from tests.store.gcs import xml

        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        as_json = re.match(r"/((upload|download)/)?storage/v1/|/b(/|$)", parts.path) is not None
        self.asked = Asked(
            self.command, parts.path, query, headers, self.client_address[0], not as_json
        )
        try:
            self.given = self._read()
        except OSError:
            self.close_connection = True
            return
        api: Any = json_api if as_json else xml
        try:
            late = self.shared.failing()
            if late is False:
                raise _UNAVAILABLE
            reply = api.answer(self)
            if late:
                if reply.stream is not None:
                    reply.stream.close()
                raise _UNAVAILABLE
        except Refused as refused:
            reply = api.error(refused)
        self._send(reply)
        if not self.kept:
            self.given.file.unlink(missing_ok=True)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _go  # noqa: N815

    def keep(self) -> Given:
        """The body is an object's content now."""
        self.kept = True
        return self.given

    def _read(self) -> Given:
        self.kept = False
        file, digest, size = self.shared.objects.fresh(), hashlib.md5(), 0
        with file.open("wb") as out:
            if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
                while length := int(self.rfile.readline().split(b";")[0], 16):
                    data = self.rfile.read(length)
                    self.rfile.readline()
                    out.write(data)
                    digest.update(data)
                    size += length
                self.rfile.readline()
            left = int(self.headers.get("content-length") or 0)
            while left:
                data = self.rfile.read(min(left, _PIECE))
                if not data:
                    file.unlink()
                    raise OSError("cut off")
                out.write(data)
                digest.update(data)
                left -= len(data)
                size += len(data)
        return Given(file, size, digest.hexdigest())

    def _send(self, reply: Reply) -> None:
        start, end = reply.span
        length = end - start if reply.stream is not None else len(reply.body)
        told = 0 if self.command == "HEAD" else length
        sort = "free" if reply.status >= 400 else reply.sort
        out = told if reply.stream is not None else 0
        self.shared.enter(self.client_address[0], sort, reply.counted_in, out)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        try:
            if self.command == "HEAD":
                return
            if reply.stream is None:
                self.wfile.write(reply.body)
                return
            reply.stream.seek(start)
            while start < end:
                data = reply.stream.read(min(_PIECE, end - start))
                self.wfile.write(data)
                start += len(data)
        except OSError:
            self.close_connection = True
        finally:
            if reply.stream is not None:
                reply.stream.close()

    # -- for both APIs -----------------------------------------------------------------------------

    def need(self, who: str, permission: str, bucket: str, key: str = "", prefix: str = "") -> None:
        if not self.shared.gate.may(who, permission, bucket, key, prefix):
            on = "object" if key else "bucket"
            words = (
                f"{who} does not have {permission} access to the Google Cloud Storage {on}."
                f" Permission '{permission}' denied on resource (or it may not exist)."
            )
            raise Refused(403, "AccessDenied", "Access denied.", words)

    def log_message(self, *_: object) -> None:
        pass


def path_of(path: str) -> tuple[str, str]:
    """Bucket and key, of the XML API."""
    bucket, _, key = path.lstrip("/").partition("/")
    return unquote(bucket), unquote(key)


def span_of(text: str, size: int) -> tuple[int, int] | None:
    """Of a Range header: from, and to before; None where there is none to be understood."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", text or "")
    if not found or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, size - int(found[2])), size
    start = int(found[1])
    if start >= size:
        raise Refused(416, "InvalidRange", "The requested range cannot be satisfied.")
    return start, min(int(found[2]) + 1 if found[2] else size, size)
