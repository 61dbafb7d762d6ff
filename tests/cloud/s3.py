"""A door before a real S3 server that keeps the books of it as S3's own bill does: who asked what.

A request is charged unless it is answered by 5xx, or there is no such bucket; what deletes is free.
PUT, POST and listings are of the one class, GET and HEAD of the other. Bytes are those of objects.
What lies in a bucket is charged by the second from when it was written until it was removed or
replaced, its older versions for `kept_s` longer. No code of the product is used.

Known lies: real bills round by the hour and reckon by months of their own length, multi-object
deletion is taken to be free as other deletions are, and prices have no steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.store import door as doors
from tests.store.door import Answer, Door, serving


@dataclass
class Asked:
    writes: int = 0
    reads: int = 0
    free: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass
class Kept:
    size: int
    since: float


@dataclass
class Books:
    """`who` names the caller at an address; `now` is the time in seconds."""

    who: Callable[[str], str] = lambda address: address
    now: Callable[[], float] = lambda: 0.0
    asked: dict[str, Asked] = field(default_factory=dict)
    log: list[tuple[str, str, str, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(
        self, address: str, method: str, path: str, size: int, status: int, answer: bytes
    ) -> None:
        parts = urlsplit(path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        with self.lock:
            caller = self.who(address)
            row = self.asked.setdefault(caller, Asked())
            self.log.append((caller, method, path, status))
            unknown = not bucket or b"<Code>NoSuchBucket<" in answer[:2000]
            if status >= 500 or unknown or method == "DELETE" or "delete" in query:
                row.free += 1
            elif method in ("PUT", "POST"):
                row.writes += 1
                row.bytes_in += size if method == "PUT" else 0
            elif method == "GET" and not key:
                row.writes += 1
            else:
                row.reads += 1
                row.bytes_out += len(answer) if status in (200, 206) else 0

    def rows(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            return {caller: asdict(row) for caller, row in self.asked.items()}


@contextmanager
def booked(books: Books, port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """The door's port on `host`; the server is at `port` of 127.0.0.1."""
    with serving(_door(books, port), host) as found:
        yield found


def serve(books: Books, port: int, host: str) -> ThreadingHTTPServer:
    return doors.serve(_door(books, port), host)


def _door(books: Books, port: int) -> type[Door]:
    class Booked(Door):
        inner = port

        def answer(self, body: bytes) -> Answer:
            status, headers, data = self.passed(body)
            caller = self.client_address[0]
            books.enter(caller, self.command, self.path, len(body), status, data)
            return status, headers, data

    return Booked
