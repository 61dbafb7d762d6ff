"""A cloud that is asked by JSON over HTTP, without a library of its vendor's.

What changes something is sent once: where no answer came, nobody knows whether it was done, and
that is OutcomeUnknown. Only questions are asked again, and what was turned away as too early (429).
Errors become Refused, OutcomeUnknown or NoAccess by one table a cloud (`Table`); what is in no row
is taken by its status. A key goes into a header, and into no message.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode
from urllib.request import getproxies

import urllib3
from msgspec import Struct, json
from urllib3.util import Retry, Timeout

from tradewind.base import clock, endpoints
from tradewind.base.decoding import UNREADABLE, learn
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.http import Pools, discard, read, reason
from tradewind.providers.base import OutcomeUnknown, Refused

T = TypeVar("T")

LARGEST = 16 * 1024 * 1024
_TRIES = 3
_CONNECT_S, _READ_S = 10.0, 60.0
_LONGEST_PAUSE_S = 30.0


class Row(NamedTuple):
    kind: str
    """Of base.KINDS, or unknown (it may have been done), or no_access (we are nobody there)."""
    hint: str = ""


class Said(NamedTuple):
    """By an answer that is an error."""

    code: str
    words: str


class Table(Struct, frozen=True, kw_only=True):
    """What a cloud's errors mean to us."""

    codes: Mapping[str, Row]
    reads: Callable[[bytes], Said]
    """Of an error's body: its code, and its words. Both empty where it has none."""
    key_hint: str
    """What to do where the key is not accepted."""

    def error(self, doing: str, status: int, body: bytes) -> TradewindError:
        said = self.reads(body)
        row = self.codes.get(said.code) or _by_status(status, self.key_hint)
        if status == 429:  # whatever its code
            row = Row("throttled", "asked too often; it is tried again later")
        words = " ".join((said.words or said.code or f"HTTP {status}").split())
        message = f"{doing}: {words if len(words) <= 400 else words[:399] + '…'}"
        if row.kind == "no_access":
            return NoAccess(message, hint=row.hint or self.key_hint)
        if row.kind == "unknown":
            return OutcomeUnknown(message, hint=row.hint or _UNKNOWN)
        return Refused(row.kind, message, hint=row.hint or None)


_UNKNOWN = "unknown whether it was done; the next pass checks before trying again"


def _by_status(status: int, key_hint: str) -> Row:
    if status in (401, 403):
        return Row("no_access", key_hint)
    if status == 404:
        return Row("not_found")
    return Row("unknown" if status >= 500 else "not_allowed")


class Pace:
    """Requests as far apart as a cloud wants them, in seconds by name; `*`: any two. One for all
    that this process asks with a key."""

    def __init__(self, apart_s: Mapping[str, float]) -> None:
        self._apart_s, self._free_s = apart_s, dict.fromkeys(apart_s, 0.0)
        self._lock = threading.Lock()

    def wait(self, name: str) -> None:
        with self._lock:
            named = [each for each in ("*", name) if each in self._apart_s]
            now = clock.monotonic()
            turn = max([now, *(self._free_s[each] for each in named)])
            for each in named:
                self._free_s[each] = turn + self._apart_s[each]
        if turn > now:
            clock.sleep(turn - now)


class Rest:
    """Safe from several threads."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        table: Table,
        pace: Pace | None = None,
        pause_s: float = 2.0,
    ) -> None:
        """`headers`: with the key (`bearer`, `basic`). `pause_s`: before something is asked again,
        where the cloud does not say how long."""
        endpoints.check(url, os.environ)  # a key in clear
        self._url, self._headers, self._table = url.rstrip("/"), headers, table
        self._pace, self._pause_s = pace or Pace({}), pause_s
        once = Retry(total=0, redirect=0, raise_on_redirect=False, raise_on_status=False)
        self._pools = Pools(Timeout(connect=_CONNECT_S, read=_READ_S), once, getproxies())
        self._told: tuple[float, float] | None = None

    def at_s(self) -> int:
        """The cloud's clock, by its last answer."""
        if self._told is None:
            return int(clock.now().timestamp())
        told_s, then = self._told
        return int(told_s + clock.monotonic() - then)

    def get(
        self, path: str, kind: type[T], doing: str, query: Mapping[str, str] | None = None
    ) -> T:
        """Asked again where no answer comes."""
        asked = f"{path}?{urlencode(query)}" if query else path
        for left in reversed(range(_TRIES)):
            try:
                return self._decoded(self._ask("GET", asked, None, doing, ""), kind, doing)
            except OutcomeUnknown:
                if not left:
                    raise
                clock.sleep(self._pause_s)
        raise AssertionError("unreachable")

    def pages(
        self,
        path: str,
        kind: type[T],
        doing: str,
        token: Callable[[T], str | None],
        name: str,
        asked: Mapping[str, str] | None = None,
    ) -> Iterator[T]:
        """One after another; `token` of a page, in the query as `name`, leads to the next. `asked`
        is in the query of each."""
        query: dict[str, str] = dict(asked or {})
        seen: set[str] = set()
        while True:
            page = self.get(path, kind, doing, query)
            yield page
            following = token(page)
            if not following:
                return
            if following in seen:  # it would go round for ever, and what is missing is not known
                raise OutcomeUnknown(f"{doing}: the same page came twice")
            seen.add(following)
            query = {**(asked or {}), name: following}

    def send(
        self, method: str, path: str, body: Any, kind: type[T], doing: str, pace: str = ""
    ) -> T:
        """Once; again only where the cloud has said that it was too early."""
        data = None if body is None else json.encode(body)
        return self._decoded(self._ask(method, path, data, doing, pace), kind, doing)

    def _ask(self, method: str, path: str, body: bytes | None, doing: str, pace: str) -> bytes:
        for left in reversed(range(_TRIES)):
            self._pace.wait(pace)
            status, headers, data = self._answered(method, path, body, doing)
            if 200 <= status < 300:
                return data
            if status != 429 or not left:
                raise self._table.error(doing, status, data)
            clock.sleep(self._patience(headers))
        raise AssertionError("unreachable")

    def _patience(self, headers: Mapping[str, str]) -> float:
        said = headers.get("retry-after", "")
        wanted = float(said) if said.isdecimal() else self._pause_s
        return min(wanted, _LONGEST_PAUSE_S)

    def _answered(
        self, method: str, path: str, body: bytes | None, doing: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = dict(self._headers)
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            response = self._pools.request(method, self._url + path, headers, body)
        except urllib3.exceptions.HTTPError as error:
            raise unanswered(doing, error) from None
        except (ValueError, UnicodeError):
            raise NoAccess(
                f"{doing}: the request cannot be sent as it is", hint=self._table.key_hint
            ) from None
        try:
            self._hear(response.headers.get("date", ""))
            data = read(response, LARGEST + 1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            discard(response)
            words = f"{doing}: the answer broke off: {reason(error)}"
            raise OutcomeUnknown(words, hint=_UNKNOWN) from None
        if len(data) > LARGEST:
            raise OutcomeUnknown(f"{doing}: the answer is larger than {LARGEST >> 20} MiB")
        return response.status, response.headers, data

    def _hear(self, date: str) -> None:
        with suppress(ValueError):
            self._told = (parsedate_to_datetime(date).timestamp(), clock.monotonic())

    @staticmethod
    def _decoded(data: bytes, kind: type[T], doing: str) -> T:
        try:
            return learn(kind).decode(data or b"null")  # a removal may be answered by nothing
        except UNREADABLE as error:
            words = f"{doing}: the answer cannot be understood: {error}"
            raise OutcomeUnknown(words, hint=_UNKNOWN) from None


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def basic(user: str, password: str = "") -> dict[str, str]:
    return {"authorization": urllib3.make_headers(basic_auth=f"{user}:{password}")["authorization"]}


def unanswered(doing: str, error: urllib3.exceptions.HTTPError) -> TradewindError:
    """What never left this computer was not done."""
    cause = getattr(error, "reason", None) or error
    words = f"{doing}: {reason(error)}"
    unsent = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    if isinstance(cause, unsent):
        return Refused("throttled", words, hint="check the network")
    return OutcomeUnknown(words, hint=_UNKNOWN)
