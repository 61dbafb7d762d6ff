"""Google's metadata server: what it says of the machine that asks."""

from __future__ import annotations

import os
import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import SourceFailed

_TIMEOUT_S = 5.0
_MOST = 1 << 16
"""Bytes of an answer: all that is asked for is a line or two."""


class _Token(Struct):
    access_token: str


class Service:
    """OSError where it does not answer."""

    def __init__(self, host: str = "") -> None:
        named = host or os.environ.get("GCE_METADATA_HOST", "")
        self._host = named or "169.254.169.254"

    def get(self, path: str) -> str:
        """Empty: there is no such thing."""
        return self._ask(path, _TIMEOUT_S)[0]

    def changed(self, path: str, etag: str, wait_s: int) -> tuple[str, str]:
        """What it says once that has changed, or after a while; and its mark, for the next time."""
        query = f"?wait_for_change=true&timeout_sec={wait_s}&last_etag={etag or '0'}"
        return self._ask(path + query, wait_s + _TIMEOUT_S)

    def token(self) -> str:
        """By which this machine is its service account. SourceFailed: it cannot be had now."""
        try:
            text = self.get("instance/service-accounts/default/token")
            return json.decode(text, type=_Token).access_token
        except (OSError, HTTPException, *UNREADABLE) as error:
            raise SourceFailed(
                f"the metadata server did not say who this machine is: {error}"
            ) from None

    def _ask(self, path: str, timeout_s: float) -> tuple[str, str]:
        asked = urllib.request.Request(
            f"http://{self._host}/computeMetadata/v1/{path}", headers={"Metadata-Flavor": "Google"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
                return answer.read(_MOST).decode(), answer.headers.get("ETag", "")
        except HTTPError as error:
            error.close()
            if error.code == 404:
                return "", ""
            raise
