"""What a rented machine of AWS learns of itself: whether it is to be taken, asked of the metadata
service again and again by a thread, and the secrets of its job.

`spot/instance-action` says when, two minutes before as a rule. A rebalance recommendation comes
earlier, or never, and is no promise: the machine is then at risk, and its job saves at once.
A service that does not answer says nothing; the next question may be answered.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE, decoder
from tradewind.model.secrets import Reference
from tradewind.providers.aws import secrets
from tradewind.providers.aws.metadata import Service

EACH_S = 4.0


class _Action(Struct):
    time: datetime
    action: str = ""


_decode = decoder(_Action)


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
        return secrets.value(reference, rented=rented)


ABOARD = _Aboard()
