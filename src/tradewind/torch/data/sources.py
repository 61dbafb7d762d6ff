"""Where bytes come from: an address of the web, or an object of a store.

A source is asked first how large it is (`look`), and then for stretches of it. What it raises says
what to do: NotFound and NoAccess are final; SourceFailed may go away; Changed means that the bytes
so far belong to something that is not there any more.

Over plain `http://` anybody on the way can replace what comes. So it is used only where the content
will be compared with a checksum, for this computer itself, and for hosts that
`$TRADEWIND_PLAIN_HTTP` names; and no redirect leads from https to it, but to those hosts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import unquote, urljoin, urlsplit

from msgspec import Struct

from tradewind.base import endpoints
from tradewind.base.errors import BadFile, InvalidValue, NoAccess, NotFound, SourceFailed

_CHUNK = 1 << 18
_CONNECT_S, _READ_S = 10.0, 30.0
_MOST_REDIRECTS = 10


class Changed(SourceFailed):
    """It was replaced while it was read."""


class Facts(Struct, frozen=True):
    size: int | None
    """None: it does not say."""
    tag: str = ""
    """Differs when the content does; "" where the source has none."""
    ranges: bool = True
    """Whether stretches of it can be had."""


class Source(Protocol):
    url: str

    def look(self) -> Facts: ...

    def read(self, start: int, length: int | None, tag: str) -> Iterator[bytes | memoryview]:
        """That stretch, or from the start to the end."""


def source(url: str, *, checked: bool = False) -> Source:
    """`checked`: what comes will be compared with a checksum."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("http", "https"):
        return HttpSource(url, checked=checked)
    if separator and scheme not in ("s3", "gs", "az", "file", "memory"):
        raise InvalidValue(
            f"{url!r} cannot be downloaded: {scheme}:// is not known here",
            hint="https://…, s3://bucket/key, gs://…, az://container/key or a file",
        )
    place, _, key = url.rpartition("/")
    if not separator:
        place = place or ("/" if url.startswith("/") else ".")
    if not key or (separator and not rest.partition("/")[2]):
        raise InvalidValue(f"{url!r} names no object", hint="for example s3://bucket/folder/key")
    return StoreSource(place, key)


def shown(url: str) -> str:
    """Without what may be secret in it: a login, or the signature of an address."""
    if not url.startswith(("http://", "https://")):
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def name_of(url: str) -> str:
    """The file name in it; "" where there is none."""
    path = urlsplit(url).path if "://" in url else url
    return unquote(path.rpartition("/")[2]).replace("/", "_")


class StoreSource:
    """An object of a store, folders among them."""

    def __init__(self, place: str, key: str) -> None:
        self._place, self._key = place, key
        self.url = f"{place}/{key}"
        self._opened: Any = None

    def _store(self) -> Any:
        from tradewind import store as stores

        if self._opened is None:
            self._opened = stores.open(self._place)
        return self._opened

    def look(self) -> Facts:
        from tradewind.store.base import Dated, Pieced

        store = self._store()
        if not isinstance(store, Pieced):
            return Facts(len(store.get(self._key)), "", ranges=False)
        size = store.size(self._key)
        tag = f"{size}-{store.written_s(self._key)}" if isinstance(store, Dated) else ""
        return Facts(size, tag)

    def read(self, start: int, length: int | None, tag: str) -> Iterator[bytes | memoryview]:
        store = self._store()
        if length is None:
            yield store.get(self._key)[start:]
            return
        data = store.get_range(self._key, start, length)
        if len(data) < length:
            raise Changed(f"{self.url} is shorter than it was", hint="was it replaced?")
        yield data


class HttpSource:
    """Asked by GET alone: addresses that are signed allow nothing else."""

    def __init__(self, url: str, *, checked: bool) -> None:
        if not endpoints.host_of(url):
            raise InvalidValue(f"{url!r} names no computer", hint="https://example.org/file")
        if not checked and not endpoints.is_allowed(url, os.environ):
            raise InvalidValue(
                f"{shown(url)} is plain http: anybody on the way can replace what comes",
                hint="use https://, give its checksum (sha256=…), or allow the host by name:"
                f" {endpoints.ALLOW}={endpoints.host_of(url)}",
            )
        self.url, self._shown, self._checked = url, shown(url), checked
        self._pools: dict[str, Any] = {}
        self._pid = 0

    def look(self) -> Facts:
        answer = self._ask({"Range": "bytes=0-0"})
        try:
            headers = answer.headers
            tag = headers.get("ETag", "")
            if tag.startswith("W/"):  # not for the bytes
                tag = ""
            tag = tag or headers.get("Last-Modified", "")
            whole = re.fullmatch(r"bytes (?:\d+-\d+|\*)/(\d+)", headers.get("Content-Range", ""))
            if answer.status in (206, 416) and whole:
                return Facts(int(whole[1]), tag)
            length = headers.get("Content-Length", "")
            known = answer.status == 200 and length.isdecimal()
            if known and not headers.get("Content-Encoding"):
                return Facts(int(length), tag, ranges=False)
            return Facts(None, tag, ranges=False)
        finally:
            _done(answer)

    def read(self, start: int, length: int | None, tag: str) -> Iterator[bytes | memoryview]:
        headers = {}
        if length is not None:
            headers["Range"] = f"bytes={start}-{start + length - 1}"
            if tag:
                headers["If-Range"] = tag
        answer = self._ask(headers)
        import urllib3

        try:
            if length is not None and answer.status != 206:
                raise Changed(f"{self._shown} has changed while it was read")
            got = 0
            for chunk in answer.stream(_CHUNK, decode_content=False):
                got += len(chunk)
                if length is not None and got > length:
                    raise BadFile(f"{self._shown} sends more than the {length:,} bytes asked for")
                yield chunk
            if length is not None and got != length:
                raise SourceFailed(f"{self._shown} hung up after {got:,} of {length:,} bytes")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise SourceFailed(f"{self._shown} hung up: {_short(error)}") from None
        finally:
            _done(answer)

    def _ask(self, headers: dict[str, str]) -> Any:
        import urllib3

        asked = {"Accept-Encoding": "identity", "User-Agent": "tradewind", **headers}
        address = self.url
        for _ in range(_MOST_REDIRECTS):
            try:
                answer = self._pool(address).request(
                    "GET",
                    address,
                    headers=asked,
                    preload_content=False,
                    retries=False,
                    redirect=False,
                )
            except urllib3.exceptions.LocationParseError:
                raise InvalidValue(f"{shown(address)} is not an address") from None
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise SourceFailed(
                    f"{self._shown} did not answer: {_short(error)}",
                    hint="check the address and the network",
                ) from None
            where = answer.get_redirect_location()
            if not where:
                break
            _done(answer)
            address = self._followed(address, where)
        else:
            raise SourceFailed(f"{self._shown} redirects more than {_MOST_REDIRECTS} times")
        if answer.status not in (200, 206, 416):
            _done(answer)
            raise self._refused(answer.status)
        return answer

    def _pool(self, address: str) -> Any:
        """By way of the proxy that the environment names, if it names one."""
        if self._pid != os.getpid():  # connections are not for two
            self._pools, self._pid = {}, os.getpid()
        proxy = _proxy(address)
        if proxy not in self._pools:
            self._pools[proxy] = _connections(proxy)
        return self._pools[proxy]

    def _followed(self, address: str, where: str) -> str:
        """Where a redirect leads, if that is no less safe."""
        try:
            there = urljoin(address, where)
            known = urlsplit(there).scheme in ("http", "https") and endpoints.host_of(there)
        except ValueError:
            known = False
        if not known:
            raise InvalidValue(f"{self._shown} redirects to {where[:200]!r}, not a web address")
        before, then = (endpoints.is_allowed(each, os.environ) for each in (address, there))
        if not then and (not self._checked or before):
            raise InvalidValue(
                f"{self._shown} redirects to plain http, {shown(there)}: anybody on the way can"
                " replace what comes",
                hint="use the address of a server that keeps to https, or allow the host by name:"
                f" {endpoints.ALLOW}={endpoints.host_of(there)}",
            )
        return there

    def _refused(self, status: int) -> Exception:
        if status in (404, 410):
            return NotFound(f"there is no {self._shown}: the server says {status}")
        if status in (401, 403, 407):
            return NoAccess(
                f"{self._shown} is refused: the server says {status}",
                hint="addresses that are signed expire; else it asks for a login",
            )
        if status in (408, 425, 429) or status >= 500:
            return SourceFailed(f"{self._shown}: the server says {status}", status=status)
        return InvalidValue(f"{self._shown} cannot be downloaded: the server says {status}")


def _proxy(url: str) -> str:
    from urllib.request import getproxies, proxy_bypass

    proxy = getproxies().get(urlsplit(url).scheme, "")
    return "" if proxy_bypass(endpoints.host_of(url)) else proxy


def _connections(proxy: str) -> Any:
    import urllib3

    more: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=_CONNECT_S, read=_READ_S),
        "maxsize": 16,
    }
    return urllib3.ProxyManager(proxy, **more) if proxy else urllib3.PoolManager(**more)


def _done(answer: Any) -> None:
    """What was not read is not waited for."""
    answer.close()
    answer.release_conn()


def _short(error: BaseException) -> str:
    """urllib3 wraps causes in each other, with objects' addresses in between."""
    while isinstance(cause := getattr(error, "reason", None), BaseException):
        error = cause
    text = re.sub(r"<[^>]*>(: )?|HTTPS?Connection(Pool)?\([^)]*\)(: )?", "", str(error))
    text = " ".join(text.split()).strip("() ")
    return text[:200] or type(error).__name__
