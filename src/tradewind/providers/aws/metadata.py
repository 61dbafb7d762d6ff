"""EC2's metadata service: what it says of the machine that asks."""

from __future__ import annotations

import os
import urllib.request
from urllib.error import HTTPError

_TIMEOUT_S = 2.0
_TOKEN_S = 21600
_REFUSED = 401
_MOST = 1 << 16
"""Bytes of an answer: all that is asked for is a line or two."""


class Service:
    """Version 2: a token first, then everything with that. OSError where it does not answer."""

    def __init__(self, endpoint: str = "") -> None:
        named = endpoint or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "")
        self._endpoint = (named or "http://169.254.169.254").rstrip("/")
        self._token = ""

    def get(self, path: str, *, again: bool = True) -> bytes:
        """Empty: there is no such thing."""
        if not self._token:
            ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S)}
            self._token = self._send("PUT", "api/token", ttl).decode()
        try:
            return self._send("GET", path, {"X-aws-ec2-metadata-token": self._token})
        except HTTPError as error:
            if error.code == _REFUSED and again:  # the token is too old
                self._token = ""
                return self.get(path, again=False)
            if error.code == 404:
                return b""
            raise

    def _send(self, method: str, path: str, headers: dict[str, str]) -> bytes:
        asked = urllib.request.Request(
            f"{self._endpoint}/latest/{path}", method=method, headers=headers
        )
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:
            found: bytes = answer.read(_MOST)
        return found
