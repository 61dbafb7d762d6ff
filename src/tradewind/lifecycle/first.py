"""What a run would buy first if it were submitted now. Pure: what is shown before anybody is asked
is what a controller decides, and no second opinion of it."""

from __future__ import annotations

from datetime import UTC, datetime

from tradewind.lifecycle.fold import fold
from tradewind.lifecycle.next import after
from tradewind.lifecycle.seen import Seen
from tradewind.model.event import FORMAT, Commit, LegRequested, Submitted
from tradewind.model.run import Request, Spec
from tradewind.policy.base import Policy

_LONG_S = 1e9


def first(spec: Spec, now: float, policy: Policy) -> tuple[Request, str] | None:
    """With its reason; None where nothing would be bought now."""
    submitted = Submitted(run_id=spec.name, spec=spec)
    commit = Commit(FORMAT, 1, "", datetime.fromtimestamp(now, UTC), (submitted,))
    seen = Seen(run_id=spec.name, known_s=lambda number: _LONG_S)
    for event in after(fold([commit]), spec, seen, spec.ways, now, policy):
        if isinstance(event, LegRequested):
            return event.request, event.reason
    return None
