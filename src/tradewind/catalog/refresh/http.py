"""HTTP as price sources need it: JSON, pages and long streams, with retries and clear failures.

urllib3 does the work: it pools connections, waits with jittered back-off (or as long as the
server's Retry-After says), and notices bodies cut short. Reading prices changes nothing at the
other end, so POST (GraphQL, searches) is retried like GET.

Nothing is read without a bound: of a document, 64 MiB as it is when unpacked; of a line, 1 MiB; of
an answer that is not used (an error, a redirect), some hundred bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.util import Retry, Timeout

from tradewind.base.errors import SourceFailed
from tradewind.base.http import SECRET, Pools, discard, place, read, reason

_RETRIED = (429, 500, 502, 503, 504)
LARGEST_JSON = 64 * 1024 * 1024
LARGEST_TEXT = 16 * 1024 * 1024 * 1024  # the longest price list of AWS has some 8 GB
_LONGEST_LINE = 1 << 20


class Http:
    def __init__(
        self,
        *,
        retries: int = 4,
        backoff_s: float = 0.5,
        connect_timeout_s: float = 10,
        read_timeout_s: float = 60,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        """`proxies` by scheme, as `urllib.request.getproxies()` reads them from the environment."""
        self._decodes = 1 + min(retries, 2)
        self._pools = Pools(
            Timeout(connect=connect_timeout_s, read=read_timeout_s),
            Retry(
                total=retries,
                backoff_factor=backoff_s,
                backoff_jitter=backoff_s,
                backoff_max=30,
                status_forcelist=_RETRIED,
                allowed_methods=None,
                raise_on_status=False,
                remove_headers_on_redirect=SECRET,
            ),
            proxies,
        )

    def get_json(
        self,
        url: str,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return self._json("GET", _with_query(url, query), headers, None)

    def post_json(self, url: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Any:
        sent = json.dumps(body).encode()
        return self._json(
            "POST", url, {"content-type": "application/json", **(headers or {})}, sent
        )

    def lines(self, url: str, *, progress: Any = None) -> Generator[str, None, None]:
        """The lines of a text too large to hold, as they arrive; `progress` is told the bytes.

        Who may stop before the end closes the generator (`contextlib.closing`)."""
        response = self._request("GET", url, {"accept": "*/*"}, None)
        said = response.headers.get("content-length", "")
        try:
            counted = _Counted(response, int(said) if said.isdecimal() else None, progress)
            text = io.TextIOWrapper(io.BufferedReader(counted, 1 << 20), "utf-8", newline="")
            while line := text.readline(_LONGEST_LINE):
                if counted.done > LARGEST_TEXT or len(line) == _LONGEST_LINE:
                    raise SourceFailed(f"{place(url)}: the answer is larger than any price list")
                yield line
        except (urllib3.exceptions.HTTPError, OSError, UnicodeDecodeError) as error:
            raise SourceFailed(f"{place(url)}: the answer broke off: {reason(error)}") from error
        finally:
            discard(response)

    def _json(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> Any:
        # A proxy or an overloaded server now and then sends half a document with a whole header;
        # asking again mends it. A format that really changed fails every time.
        for attempt in range(self._decodes):
            last = attempt + 1 == self._decodes
            response = self._request(method, url, headers, body)
            try:
                data = read(response, LARGEST_JSON + 1)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if last:
                    raise SourceFailed(
                        f"{place(url)}: the answer broke off: {reason(error)}",
                        hint="check the network and try again; the old prices stay in place",
                    ) from None
                continue
            if len(data) > LARGEST_JSON:
                raise SourceFailed(
                    f"{place(url)}: the answer is larger than {LARGEST_JSON >> 20} MiB"
                )
            try:
                return json.loads(data)
            except (ValueError, RecursionError) as error:
                if last:
                    start = data[:60].decode("utf-8", "replace")
                    raise SourceFailed(
                        f"{place(url)}: the answer is not JSON ({error}); it starts {start!r}"
                    ) from None
        raise AssertionError("unreachable")

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        body: bytes | None,
    ) -> urllib3.BaseHTTPResponse:
        """An answer whose body has not been read; who is done with it discards it."""
        try:
            response = self._pools.request(method, url, headers, body)
        except urllib3.exceptions.HTTPError as error:
            raise SourceFailed(
                f"{place(url)}: {reason(error)}",
                hint="check the network and try again; the old prices stay in place",
            ) from None
        except (ValueError, UnicodeError):
            raise SourceFailed(
                f"{place(url)}: the request cannot be sent as it is",
                hint="is there a stray character in the API key?",
            ) from None
        if url.startswith("https:") and (response.geturl() or "").startswith("http:"):
            discard(response)
            raise SourceFailed(
                f"{place(url)}: it redirects to plain http, where anybody can change prices"
            )
        if response.status != 200:
            limited = "the source limits how often it may be asked; try again later"
            shown = f"{response.status} {response.reason or ''} {_start(response)}".rstrip()
            raise SourceFailed(
                f"{place(url)}: HTTP {shown}",
                hint=limited if response.status == 429 else None,
                status=response.status,
            )
        return response


class _Counted(io.RawIOBase):
    """A response as a raw stream that tells how far it has come."""

    def __init__(self, response: Any, total: int | None, progress: Any) -> None:
        self._response, self._total, self._progress, self.done = response, total, progress, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._response.read(len(buffer), decode_content=True)
        buffer[: len(chunk)] = chunk
        self.done += len(chunk)
        if self._progress:
            self._progress(self.done, self._total)
        return len(chunk)


def _start(response: urllib3.BaseHTTPResponse) -> str:
    """What the answer begins with."""
    try:
        return read(response, 200).decode("utf-8", "replace").strip()
    except (urllib3.exceptions.HTTPError, OSError):
        return ""


def _with_query(url: str, query: Mapping[str, str | int] | None) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}" if query else url
