"""A store of this computer, for machines that reach it by a socket only (relayed.py asks). It
listens at a path that nobody but this user may open, and is there for as long as this process.

Whoever asks shows a token, which is made from the store's seed for one launch of one run: it may
read that run, write where its machines write, and remove what its trainings prune. Nothing else of
the store is told of, nor anything of the computer.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tradewind.base import clock
from tradewind.base.errors import (
    BadFile,
    InvalidValue,
    NoAccess,
    NotFound,
    SourceFailed,
    TooLarge,
    TradewindError,
)
from tradewind.base.ownfiles import home, make_folder
from tradewind.base.signing import SEED, SEED_BYTES
from tradewind.model import bounds, places
from tradewind.store.base import MOST_READ, Dated, Pieced, Store, check_key
from tradewind.store.relayed import FOLDERS, LISTED, OBJECTS, SIZE, TROUBLES, WRITTEN

_CHUNK = 1 << 20
_IDLE_S = 60.0
_MOST_PATH = 100
"""Bytes: sockets have 108 for their path."""
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Relay:
    """Of one store. It is started when it is first needed; safe from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._seed = b""

    def socket(self) -> Path:
        """Where it listens."""
        with self._lock:
            if self._server is None:
                self._server = _Server(_place(), self)
                threading.Thread(
                    target=self._server.serve_forever, name="relay", daemon=True
                ).start()
            return self._server.path

    def token(self, run_id: str, launch_id: str) -> str:
        text = f"relay\n{run_id}\n{launch_id}".encode("utf-8", "replace")
        return hmac.digest(self._known_seed(), text, "sha256").hex()

    def is_right(self, run_id: str, launch_id: str, token: str) -> bool:
        return hmac.compare_digest(self.token(run_id, launch_id).encode(), token.encode())

    @property
    def store(self) -> Store:
        return self._store

    def close(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            with suppress(OSError):
                server.path.unlink()

    def _known_seed(self) -> bytes:
        """Whoever launches has made it; without one nobody could be told from anybody."""
        if not self._seed:
            found = self._store.get(SEED, most=bounds.POINTER)
            if len(found) != SEED_BYTES:
                raise BadFile(f"{SEED} in {self._store.url} is damaged")
            self._seed = found
        return self._seed


def _place() -> Path:
    """Of this process alone. Sockets of processes that are gone are removed."""
    folder = home() / "relay"
    if len(os.fsencode(folder)) > _MOST_PATH - 20:
        return Path(tempfile.mkdtemp(prefix="tradewind-relay-")) / "store"
    make_folder(folder)
    for each in folder.iterdir():
        pid = each.name.partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                each.unlink()
    return folder / f"{os.getpid()}-{clock.secret(3).hex()}"


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, relay: Relay) -> None:
        self.path, self.relay = path, relay
        before = os.umask(0o177)
        try:
            super().__init__(str(path), _Handler)
        finally:
            os.umask(before)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut off: whoever asked asks again."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _IDLE_S
    protocol_version = "HTTP/1.0"  # a connection for each request

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_HEAD(self) -> None:
        self._answered(self._head)

    def do_PUT(self) -> None:
        self._answered(self._put)

    def do_DELETE(self) -> None:
        self._answered(self._delete)

    def _answered(self, do: Any) -> None:
        try:
            do(self._whose())
        except TradewindError as error:
            self._refused(error)

    def _refused(self, error: TradewindError) -> None:
        codes = {kind: code for code, kind in TROUBLES.items()}
        kinds = (TooLarge, NotFound, InvalidValue, NoAccess, SourceFailed)
        kind = next((each for each in kinds if isinstance(error, each)), SourceFailed)
        body = json.dumps({"message": error.message}).encode()
        self._head_of(codes[kind], len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    # -- as whom, and what of ----------------------------------------------------------------------

    def _whose(self) -> str:
        """The run."""
        said = self.headers.get("Authorization", "").split(" ")
        if len(said) == 4 and said[0] == "Bearer":
            run_id, launch_id = unquote(said[1]), unquote(said[2])
            if places.is_run_id(run_id) and self.server.relay.is_right(run_id, launch_id, said[3]):
                return run_id
        raise NoAccess("this store does not know who asks")

    def _key(self, run_id: str, folders: tuple[str, ...] = ()) -> str:
        """Of the request. `folders`: those of a run that this may be done in; none: all."""
        path = urlsplit(self.path).path
        if not path.startswith(OBJECTS):
            raise InvalidValue("no object is named")
        key = check_key(unquote(path.removeprefix(OBJECTS), errors="strict"))
        within = [f"{places.run(run_id)}{each}/" for each in folders] or [places.run(run_id)]
        if not any(key.startswith(each) for each in within):
            raise NoAccess(f"machines of {run_id} have no right to {key}")
        return key

    def _folder(self, run_id: str, asked: dict[str, list[str]]) -> str:
        prefix = asked.get("prefix", [""])[0]
        if not prefix.startswith(places.run(run_id)):
            raise NoAccess(f"machines of {run_id} have no right to list {prefix or 'the store'}")
        return prefix

    # -- what is asked -----------------------------------------------------------------------------

    @property
    def _store(self) -> Store:
        return self.server.relay.store

    def _get(self, run_id: str) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query, keep_blank_values=True)
        if parts.path == LISTED:
            after = asked.get("after", [""])[0]
            self._told(self._store.list_after(self._folder(run_id, asked), after))
        elif parts.path == FOLDERS:
            self._told(self._store.folders(self._folder(run_id, asked)))
        else:
            self._object(self._key(run_id))

    def _told(self, found: list[str]) -> None:
        body = json.dumps(found).encode()
        self._head_of(200, len(body))
        self.wfile.write(body)

    def _object(self, key: str) -> None:
        """Whole, as it was at one moment. What does not fit into memory is written once only (parts
        of checkpoints, output files); should it be replaced all the same, the answer is cut off."""
        store = self._pieced()
        size = store.size(key)
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if size <= MOST_READ and not wanted:
            data = self._store.get(key)
            self._head_of(200, len(data))
            self.wfile.write(data)
            return
        at = int(wanted[1]) if wanted else 0
        end = min(int(wanted[2]) + 1, size) if wanted else size
        self._head_of(206 if wanted else 200, max(end - at, 0))
        since = self._written(key)
        while at < end:
            data = store.get_range(key, at, min(_CHUNK, end - at))
            if not data or self._written(key) != since:
                break
            self.wfile.write(data)
            at += len(data)

    def _written(self, key: str) -> float:
        return self._store.written_s(key) if isinstance(self._store, Dated) else 0.0

    def _head(self, run_id: str) -> None:
        key = self._key(run_id)
        told = {SIZE: str(self._pieced().size(key)), WRITTEN: repr(self._written(key))}
        self._head_of(200, 0, told)

    def _put(self, run_id: str) -> None:
        key = self._key(run_id, places.WRITTEN_BY_MACHINES)
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise InvalidValue("how long it is was not said")
        size = int(length)
        if self.headers.get("If-None-Match") != "*":
            self._pieced().upload_parts(key, self._received(size), size)
        else:
            if size > MOST_READ:
                raise TooLarge(f"{key} is too large to be created")
            if not self._store.create(key, b"".join(self._received(size))):
                self._head_of(412, 0)
                return
        self._head_of(200, 0)

    def _delete(self, run_id: str) -> None:
        self._store.delete(self._key(run_id, places.DELETED_BY_MACHINES))
        self._head_of(200, 0)

    def _pieced(self) -> Any:
        assert isinstance(self._store, Pieced)  # a folder is
        return self._store

    def _received(self, size: int) -> Iterator[bytes]:
        while size:
            data = self.rfile.read(min(_CHUNK, size))
            if not data:
                raise SourceFailed("it was cut off")  # nothing is replaced
            size -= len(data)
            yield data

    def _head_of(self, status: int, length: int, more: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(length))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
