"""What Google has accepted, and does later: operations.

An accepted launch may still fail, so nothing counts as bought before its operation is done. An
operation that is not done in time has an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from tradewind.base import clock
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.gcp.troubles import of_operation

WAIT_S = 180.0
"""For machines to be there, or to be refused: Google needs half a minute as a rule."""
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)


class Trouble(Struct, frozen=True):
    code: str = ""
    message: str = ""


class Troubles(Struct, frozen=True):
    errors: tuple[Trouble, ...] = ()


class Operation(Struct, frozen=True, rename="camel"):
    """Of Compute Engine: of a zone, of a region, or of all."""

    name: str
    status: str = "PENDING"
    operation_type: str = ""
    target_link: str = ""
    target_id: str = ""
    insert_time: str = ""
    start_time: str = ""
    end_time: str = ""
    zone: str = ""
    region: str = ""
    user: str = ""
    operation_group_id: str = ""
    http_error_status_code: int = 0
    error: Troubles | None = None

    @property
    def done(self) -> bool:
        return self.status == "DONE"

    @property
    def place(self) -> str:
        """As paths have it: zones/ZONE, regions/REGION or global."""
        for url, kind in ((self.zone, "zones"), (self.region, "regions")):
            if url:
                return f"{kind}/{last(url)}"
        return "global"

    @property
    def failed(self) -> bool:
        return self.error is not None and bool(self.error.errors)


def finished(
    operation: Operation,
    ask: Callable[[Operation], Operation],
    doing: str,
    wait_s: float = WAIT_S,
) -> Operation:
    """Once it is done. What it failed of is raised as ours (troubles.py)."""
    until = clock.monotonic() + wait_s
    pauses = iter(_PAUSES_S)
    pause_s = 0.0
    while not operation.done:
        if clock.monotonic() >= until:
            raise OutcomeUnknown(
                f"{doing}: Google has accepted it, and is not done after {wait_s:.0f} s",
                hint="the next pass looks whether it was done",
            )
        pause_s = next(pauses, pause_s)
        clock.sleep(pause_s)
        operation = ask(operation)
    if operation.failed or operation.http_error_status_code >= 400:
        errors = operation.error.errors if operation.error else ()
        raise of_operation(doing, errors, operation.http_error_status_code)
    return operation


def last(url: str) -> str:
    """Of Google's addresses: the name of what is meant."""
    return url.rpartition("/")[2]


def at_s(text: Any) -> int | None:
    """A moment of Google's, such as 2026-11-18T00:41:28.123-08:00."""
    try:
        return int(datetime.fromisoformat(str(text)).timestamp())
    except ValueError:
        return None
