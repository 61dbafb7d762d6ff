"""HTTP by urllib3, as whoever asks an outside service needs it.

Nothing is read without a bound, keys are told to nobody else, and a connection is given back only
when nothing of its answer is left. Who may be asked again, and how often, is the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import urllib3
from urllib3.util import Retry, Timeout

from tradewind.base.version import __version__

# Whatever carries a key must not follow a redirect to somebody else's host.
SECRET = ("authorization", "x-api-key", "api_key", "x-apitoken", "x-goog-api-key")
_CHUNK = 1 << 18


class Pools:
    """Connections that are kept open, with and without a proxy."""

    def __init__(
        self,
        timeout: Timeout,
        retries: Retry,
        proxies: Mapping[str, str] | None = None,
        *,
        connections: int = 1,
    ) -> None:
        """`proxies` by scheme, as `urllib.request.getproxies()` reads them from the environment;
        so many `connections` to a host are kept for the next request."""
        options: dict[str, Any] = {
            "timeout": timeout,
            "retries": retries,
            "maxsize": connections,
            "headers": {"user-agent": f"tradewind/{__version__}", "accept": "application/json"},
        }
        self._direct = urllib3.PoolManager(**options)
        self._proxied = {
            scheme: urllib3.ProxyManager(address, **options)
            for scheme, address in (proxies or {}).items()
            if scheme in ("http", "https")
        }
        for manager in (self._direct, *self._proxied.values()):
            manager.pool_classes_by_scheme = {"http": _Connections, "https": _SafeConnections}

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        """An answer whose body has not been read; who is done with it discards it."""
        pool = self._pool(url)
        merged = {**pool.headers, **(headers or {})}
        return pool.request(method, url, headers=merged, body=body, preload_content=False)

    def _pool(self, url: str) -> urllib3.PoolManager:
        parts = urlsplit(url)
        if parts.scheme not in self._proxied or proxy_bypass(parts.hostname or ""):
            return self._direct
        return self._proxied[parts.scheme]


def read(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    """The body, unpacked, or as much of it as that: a few bytes can unpack to gigabytes."""
    data = bytearray()
    try:
        while len(data) < most and (
            chunk := response.read(min(_CHUNK, most - len(data)), decode_content=True)
        ):
            data += chunk
    finally:
        discard(response)
    return bytes(data)


def discard(response: urllib3.BaseHTTPResponse) -> None:
    """In this order: given back unread, the connection would answer the next request with the rest
    of this answer. Closed first, it goes back to be opened anew. After the whole answer it has gone
    back already."""
    response.close()
    response.release_conn()


def place(url: str) -> str:
    """The address without its query: keys travel there."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def reason(error: BaseException) -> str:
    cause = getattr(error, "reason", None) or error
    text = str(cause)
    # urllib3 puts the connection object's repr in front of what happened.
    return text.split(">: ", 1)[-1].split("): ", 1)[-1].strip("()'\" ") or type(cause).__name__


class _Connection(urllib3.connection.HTTPConnection):
    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        return _never_drained(super().getresponse())


class _SafeConnection(urllib3.connection.HTTPSConnection):
    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        return _never_drained(super().getresponse())


class _Connections(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafeConnections(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


def _never_drained(response: urllib3.HTTPResponse) -> urllib3.HTTPResponse:
    """Before it asks again, urllib3 reads an error or a redirect to its end, which may not come."""
    response.drain_conn = lambda: discard(response)  # type: ignore[method-assign]
    return response
