"""On a host: SIGTERM is the notice that it shuts down. Machines there have no identity to look up
secrets with, but their user's own files."""

from __future__ import annotations

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.model.secrets import Reference
from tradewind.providers.ssh.facts import GRACE_S


class _Sigterm:
    at_risk = False

    def __init__(self) -> None:
        self._taken_at: float | None = None

    def heard(self) -> None:
        if self._taken_at is None:
            self._taken_at = clock.monotonic() + GRACE_S

    def __call__(self) -> float | None:
        at = self._taken_at
        return None if at is None else max(at - clock.monotonic(), 0.1)


class _Aboard:
    def notice(self) -> _Sigterm:
        return _Sigterm()

    def secret(self, reference: Reference, *, rented: bool) -> str:
        raise InvalidValue(
            "hosts keep no secrets for machines",
            hint="let the job read a file of your user's on the hosts",
        )


ABOARD = _Aboard()
