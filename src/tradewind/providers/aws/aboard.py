"""EC2's metadata service: what it says of this machine, and, asked again and again by a thread,
whether the machine is to be taken.

`spot/instance-action` says when, two minutes before as a rule. A rebalance recommendation comes
earlier, or never, and is no promise: the machine is then at risk, and its job saves at once.
A service that does not answer says nothing; the next question may be answered.
"""

from __future__ import annotations

import os
import threading
import urllib.request
from contextlib import suppress
from datetime import datetime
from urllib.error import HTTPError

from msgspec import Struct

from tradewind import clock
from tradewind.decoding import UNREADABLE, decoder
from tradewind.model.secrets import Reference

EACH_S = 4.0
_TIMEOUT_S = 2.0
_TOKEN_S = 21600
_REFUSED = 401
_MOST = 1 << 16
"""Bytes of an answer: all that is asked for is a line or two."""


class _Action(Struct):
    time: datetime
    action: str = ""


_decode = decoder(_Action)


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


class Ec2:
    """A notice by the machine's metadata."""

    def __init__(self, endpoint: str = "", each_s: float = EACH_S) -> None:
        self._service, self._each_s = Service(endpoint), each_s
        self._taken_at_s: float | None = None
        self.at_risk = False
        self._over = threading.Event()
        threading.Thread(target=self._ask_on, name="metadata", daemon=True).start()

    def __call__(self) -> float | None:
        at_s = self._taken_at_s
        return None if at_s is None else max(at_s - clock.now().timestamp(), 0.1)

    def close(self) -> None:
        self._over.set()

    def _ask_on(self) -> None:
        while True:
            # It hiccups, or there is none: then nobody takes the machine either.
            with suppress(OSError, *UNREADABLE):
                self._ask()
            if self._over.wait(self._each_s):
                return

    def _ask(self) -> None:
        said = self._service.get("meta-data/spot/instance-action")
        if said:
            action = _decode(said)
            if action is not None and action.action != "hibernate":
                self._taken_at_s = action.time.timestamp()
        if not self.at_risk and self._service.get("meta-data/events/recommendations/rebalance"):
            self.at_risk = True


class _Aboard:
    def notice(self) -> Ec2:
        return Ec2()

    def secret(self, reference: Reference, *, rented: bool) -> str:
        from tradewind.providers.aws import secrets

        return secrets.value(reference, rented=rented)


ABOARD = _Aboard()
