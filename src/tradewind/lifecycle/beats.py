"""What machines say of themselves, as far as it can be believed.

A heartbeat is a claim. Every machine of a store may write where heartbeats lie, and a job that was
broken into may write what it likes. One that fails a check here is as good as none: the machine is
silent, and what a controller does with silence is the same whoever caused it.

- It is signed with the key of its own launch, so no machine speaks for another's run.
- It names the machine and the leg under whose key it lies.
- Its figures are within bounds (model/plausible.py): reckoning with them cannot fail.
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


ONE_REPORT = Usage(writes=1, bytes_in=bounds.HEARTBEAT)
"""Each counts itself; one that failed on its way, and was read nevertheless, is not counted by the
next."""


def _no_less(usage: Usage | None, than: Usage) -> bool:
    return usage is not None and usage + ONE_REPORT >= than
