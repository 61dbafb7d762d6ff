"""The store of another computer, reached by a socket that leads there (relay.py answers at its
other end). Machines that have nothing but the connection of their user are given it.

`relay:///path/of/a/file`: the file, which only its user may read, says in which folder the sockets
lie, and as whom to ask. Each controller that looks after the run has a socket there, for as long as
its connection lasts: the newest that answers is asked. Where none does, nobody can be asked now:
that is SourceFailed, as with any store out of reach, and after a while the machine's fence.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from msgspec import Struct
from msgspec import json as structs

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import (
    BadFile,
    InvalidValue,
    NoAccess,
    NotFound,
    SourceFailed,
    TooLarge,
    TradewindError,
)
from tradewind.store.base import MOST_READ, check_key, check_prefix, check_size, no_such
from tradewind.store.local import written_whole

SCHEME = "relay"
OBJECTS, LISTED, FOLDERS = "/o/", "/list", "/folders"
SIZE, WRITTEN = "X-Size", "X-Written"
TROUBLES: dict[int, type[TradewindError]] = {
    400: InvalidValue,
    403: NoAccess,
    404: NotFound,
    413: TooLarge,
    503: SourceFailed,
}
_SOCKET_S = 30.0
"""Without a byte in either direction."""
_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Before it is tried again: the next controller has its socket a moment after the last one's."""
_CHUNK = 1 << 20
_AT_ONCE = 8
T = TypeVar("T")


class Ticket(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says."""

    sockets: str
    """A folder."""
    run_id: str
    launch_id: str
    token: str

    def __repr__(self) -> str:
        return f"Ticket(run_id={self.run_id!r}, launch_id={self.launch_id!r})"

    __str__ = __repr__


class _Lost(Exception):
    """Nobody knows whether it was done. Not an OSError: those of files are another thing."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("relay", timeout=_SOCKET_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class RelayedStore:
    def __init__(self, url: str, *, sleep: Callable[[float], None] = clock.sleep) -> None:
        path = Path(unquote(urlsplit(url).path))
        try:
            self._ticket = structs.decode(path.read_bytes(), type=Ticket)
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        except UNREADABLE:
            raise BadFile(f"{path} does not say how the store is reached") from None
        self.url = url
        self._sleep = sleep

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        def read(answer: http.client.HTTPResponse) -> bytes:
            check_size(key, self.url, answer.length or 0, most)
            return answer.read()

        return self._asked("GET", _object(key), read, key)

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        if len(keys) < 2:
            return [self.get(key, most=most) for key in keys]
        with ThreadPoolExecutor(min(_AT_ONCE, len(keys))) as pool:
            return list(pool.map(lambda key: self.get(key, most=most), keys))

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        asked = urlencode({"prefix": check_prefix(prefix), "after": after})
        return self._names(f"{LISTED}?{asked}", prefix)

    def folders(self, prefix: str) -> list[str]:
        return self._names(f"{FOLDERS}?{urlencode({'prefix': check_prefix(prefix)})}", prefix)

    def create(self, key: str, data: bytes) -> bool:
        """What was lost on the way is looked up, as base.py has it."""
        target, lost = _object(key), False
        for pause in (*_PAUSES_S, None):
            try:
                with self._answer("PUT", target, data, {"If-None-Match": "*"}) as answer:
                    if answer.status != http.client.PRECONDITION_FAILED:
                        self._check(answer, key)
                        return True
                return lost and self.get(key) == data
            except _Lost as error:
                lost = True
                self._rest(pause, key, error)
        raise AssertionError("the last pause raises")

    def replace(self, key: str, data: bytes) -> None:
        self._asked("PUT", _object(key), _nothing, key, data)

    def delete(self, key: str) -> None:
        self._asked("DELETE", _object(key), _nothing, key)

    def upload(self, key: str, path: Path) -> None:
        target = _object(key)
        try:
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size

                def parts() -> Iterator[bytes]:
                    stream.seek(0)
                    while data := stream.read(_CHUNK):
                        yield data

                self._asked("PUT", target, _nothing, key, parts, size)
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        def read(answer: http.client.HTTPResponse) -> None:
            check_size(key, self.url, answer.length or 0, most)
            wanted = answer.length or 0
            with written_whole(path) as stream:
                while data := _received(answer):
                    wanted -= len(data)
                    stream.write(data)
                if wanted:
                    raise _Lost("the answer was cut short")

        self._asked("GET", _object(key), read, key)

    def upload_parts(
        self, key: str, parts: Iterable[bytes | bytearray | memoryview], size: int
    ) -> None:
        """They can be read once: what is lost under way is not tried again."""
        given = iter(parts)
        begun = False

        def once() -> Iterator[bytes | bytearray | memoryview]:
            nonlocal begun
            if begun:
                raise SourceFailed(f"{key}: the connection was lost while it was sent")
            begun = True
            done = 0
            for part in given:
                done += memoryview(part).nbytes
                yield part
            assert done == size, f"{done} bytes were given, not {size}"

        self._asked("PUT", _object(key), _nothing, key, once, size)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        named = {"Range": f"bytes={start}-{start + length - 1}"}
        return self._asked("GET", _object(key), lambda answer: answer.read(), key, named=named)

    def size(self, key: str) -> int:
        return self._asked("HEAD", _object(key), lambda told: int(told.headers[SIZE]), key)

    def written_s(self, key: str) -> float:
        return self._asked("HEAD", _object(key), lambda told: float(told.headers[WRITTEN]), key)

    # -- one request -------------------------------------------------------------------------------

    def _names(self, target: str, prefix: str) -> list[str]:
        def read(answer: http.client.HTTPResponse) -> list[str]:
            found = json.loads(answer.read())
            return [str(each) for each in found]

        return self._asked("GET", target, read, prefix)

    def _asked(
        self,
        method: str,
        target: str,
        read: Callable[[http.client.HTTPResponse], T],
        key: str,
        body: bytes | Callable[[], Iterable[Any]] = b"",
        size: int = 0,
        named: dict[str, str] | None = None,
    ) -> T:
        """Of what may be done twice."""
        more = dict(named or {})
        if callable(body):
            more["Content-Length"] = str(size)
        for pause in (*_PAUSES_S, None):
            try:
                with self._answer(method, target, body, more) as answer:
                    self._check(answer, key)
                    return read(answer)
            except _Lost as error:
                self._rest(pause, key, error)
        raise AssertionError("the last pause raises")

    def _rest(self, pause: float | None, key: str, error: _Lost) -> None:
        if pause is None:
            raise SourceFailed(
                f"{key}: the store cannot be reached through the connection of who started this:"
                f" {error}",
                hint="tradewind watch, on the computer that has the store, opens it again",
            ) from None
        self._sleep(pause)

    def _check(self, answer: http.client.HTTPResponse, key: str) -> None:
        if answer.status in (200, 206):
            return
        kind = TROUBLES.get(answer.status, SourceFailed)
        if kind is NotFound:
            raise no_such(key, self.url)
        try:
            said = str(json.loads(answer.read())["message"])
        except (ValueError, KeyError, TypeError):
            said = f"the store answers {answer.status}"
        raise kind(said)

    @contextmanager
    def _answer(
        self,
        method: str,
        target: str,
        body: bytes | Callable[[], Iterable[Any]],
        named: dict[str, str],
    ) -> Iterator[http.client.HTTPResponse]:
        """Raises _Lost where nobody is there, or is not any more."""
        why = "no controller is connected"
        for path in self._sockets():
            connection = _Connection(path)
            try:
                try:
                    connection.connect()
                except OSError as error:
                    why = error.strerror or str(error)
                    if isinstance(error, ConnectionRefusedError):
                        with suppress(OSError):
                            path.unlink()  # of a connection that is over
                    continue
                try:
                    answer = self._sent(connection, method, target, body, named)
                except (OSError, http.client.HTTPException) as error:
                    why = str(error) or type(error).__name__
                    continue  # its other end is gone
                try:
                    yield answer
                except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
                    raise _Lost(str(error) or type(error).__name__) from None
                return
            finally:
                connection.close()
        raise _Lost(why)

    def _sent(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | Callable[[], Iterable[Any]],
        named: dict[str, str],
    ) -> http.client.HTTPResponse:
        ticket = self._ticket
        who = f"Bearer {quote(ticket.run_id)} {quote(ticket.launch_id)} {ticket.token}"
        data = body() if callable(body) else body
        # What is refused is answered before all of it was sent.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, target, data, {"Authorization": who, **named})
        return connection.getresponse()

    def _sockets(self) -> list[Path]:
        try:
            found = [(each.stat().st_mtime, each) for each in Path(self._ticket.sockets).iterdir()]
        except OSError:
            return []
        return [each for _, each in sorted(found, reverse=True)]


def url_of(path: str) -> str:
    return f"{SCHEME}://{quote(path)}"


def _object(key: str) -> str:
    return OBJECTS + quote(check_key(key))


def _nothing(answer: http.client.HTTPResponse) -> None:
    answer.read()


def _received(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(str(error) or type(error).__name__) from None
