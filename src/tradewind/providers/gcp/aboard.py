"""What a rented machine of Google learns of itself: whether it is to be taken, asked of the
metadata server by threads that wait for a change, and the secrets of its job.

`instance/preempted` becomes TRUE when a spot machine is taken, 30 s before its end; Google promises
no more than its best. `instance/maintenance-event` tells that the host is to be looked after:
machines with GPUs are not moved then, but end, an hour later as a rule (TERMINATE_ON_HOST…), so the
machine is at risk, and its job saves at once. A server that does not answer says nothing; the next
question may be answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.client import HTTPException

from tradewind.base import clock
from tradewind.model.secrets import Reference
from tradewind.providers.gcp import secrets
from tradewind.providers.gcp.metadata import Service

NOTICE_S = 30.0
WAIT_S = 60
"""For a change, before it is asked again."""
_PAUSE_S = 1.0


class Gce:
    """A notice by the machine's metadata."""

    def __init__(self, host: str = "", wait_s: int = WAIT_S, pause_s: float = _PAUSE_S) -> None:
        self._host, self._wait_s, self._pause_s = host, wait_s, pause_s
        self._taken_at: float | None = None
        self.at_risk = False
        self._over = threading.Event()
        for path, heard in (
            ("instance/preempted", self._preempted),
            ("instance/maintenance-event", self._maintained),
        ):
            threading.Thread(
                target=self._ask_on, args=(path, heard), name="metadata", daemon=True
            ).start()

    def __call__(self) -> float | None:
        at = self._taken_at
        return None if at is None else max(at - clock.monotonic(), 0.1)

    def close(self) -> None:
        self._over.set()

    def _preempted(self, said: str) -> None:
        if said.strip().upper() == "TRUE" and self._taken_at is None:
            self._taken_at = clock.monotonic() + NOTICE_S

    def _maintained(self, said: str) -> None:
        self.at_risk = said.strip().upper().startswith("TERMINATE")

    def _ask_on(self, path: str, heard: Callable[[str], None]) -> None:
        service, etag = Service(self._host), ""
        while not self._over.is_set():
            try:
                said, etag = service.changed(path, etag, self._wait_s)
                heard(said)
            except (OSError, HTTPException, UnicodeDecodeError):
                etag = ""  # it hiccups, or there is none: then nobody takes the machine either
            if not etag and self._over.wait(self._pause_s):
                return


class _Aboard:
    def notice(self) -> Gce:
        return Gce()

    def secret(self, reference: Reference, *, rented: bool) -> str:
        return secrets.value(reference, rented=rented)


ABOARD = _Aboard()
