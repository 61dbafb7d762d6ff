"""What machines say of themselves, as far as it can be believed.

A heartbeat is a claim. Every machine of a store may write where heartbeats lie, and a job that was
broken into may write what it likes. One that fails a check here is as good as none: the machine is
silent, and what a controller does with silence is the same whoever caused it.

- It is signed with the key of its own launch, so no machine speaks for another's run.
- It names the machine and the leg under whose key it lies.
- Its figures are within bounds (model/plausible.py): reckoning with them cannot fail.
- What it says to have asked of the store is what a machine can, in its time.
- It is newer than the last one that was believed: an old one, put back, is no sign of life.
- What cannot be undone does not shrink: what was saved, and what was asked of the store.
"""

from __future__ import annotations

from tradewind.base import signing
from tradewind.base.decoding import decoder
from tradewind.lifecycle.state import RunState
from tradewind.model import bounds
from tradewind.model.run import Heartbeat
from tradewind.model.usage import Usage

decode = decoder(Heartbeat)


def read(
    state: RunState, machine_id: str, data: bytes, seed: bytes, before: Heartbeat | None = None
) -> Heartbeat | None:
    """What is new since `before`; None where there is nothing, or nothing that can be believed."""
    rented = state.machines.get(machine_id)
    if rented is None or len(data) > bounds.HEARTBEAT:
        return None
    request = state.requests[rented.machine.leg]
    key = signing.key_of(seed, request.launch_id) if request.signed else ""
    body = signing.opened(data, key, signing.HEARTBEAT)
    beat = decode(body) if body is not None else None
    if beat is None or (beat.machine_id, beat.leg) != (machine_id, request.leg):
        return None
    if beat.usage is not None and not _possible(beat.usage, request.hard_stop_s, beat.uptime_s):
        return None
    if before is not None and not _follows(beat, before):
        return None
    used = state.used.get(machine_id)
    return beat if used is None or _no_less(beat.usage, used) else None


def _follows(beat: Heartbeat, before: Heartbeat) -> bool:
    # A supervisor that was started again may count its beats again, but not its machine's time.
    if beat.beat <= before.beat and beat.uptime_s <= before.uptime_s:
        return False
    if before.usage is not None and not _no_less(beat.usage, before.usage):
        return False
    return beat.saved >= before.saved


MOST_REQUESTS_S, MOST_BYTES_S = 10_000, 100_000_000_000
"""That a machine can make of a store, and send or take: an eight hundred gigabit card's."""
_BEFORE = 10**15
"""Bytes that were there before it: what it removes may be older than it."""


def _possible(usage: Usage, hard_stop_s: int, uptime_s: float) -> bool:
    """In the time that it was up, which is no longer than it may be: what is booked is money."""
    up_s = min(uptime_s, hard_stop_s + 3600.0) + 60.0
    moved = max(usage.bytes_in, usage.bytes_out, usage.gone - _BEFORE)
    asked = max(usage.writes, usage.reads)
    return asked <= MOST_REQUESTS_S * up_s and moved <= MOST_BYTES_S * up_s


ONE_REPORT = Usage(writes=1, bytes_in=bounds.HEARTBEAT)
"""Each counts itself; one that failed on its way, and was read nevertheless, is not counted by the
next."""


def _no_less(usage: Usage | None, than: Usage) -> bool:
    return usage is not None and usage + ONE_REPORT >= than
