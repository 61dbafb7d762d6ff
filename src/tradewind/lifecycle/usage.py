"""What machines asked of the store: what is recorded of it, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import RunState
from tradewind.model.event import MachineUsed, Stored
from tradewind.model.run import Heartbeat, Way
from tradewind.model.usage import LIKELY, Usage, asked, cost


def used(state: RunState, beats: Mapping[str, Heartbeat]) -> list[MachineUsed]:
    """What these heartbeats say and the journal does not. They are told cumulatively, so it is
    enough to record the last of each machine: when its leg is over, and once more when the run is
    closed, since a machine has its last words after that."""
    return [
        MachineUsed(machine_id=name, leg=state.machines[name].machine.leg, usage=beat.usage)
        for name, beat in beats.items()
        if name in state.machines and beat.usage is not None and beat.usage != state.used.get(name)
    ]


def doubtful(state: RunState) -> list[str]:
    """The machines that may have said something since it was recorded: those of this life."""
    return [
        name for name, rented in state.machines.items() if rented.machine.leg >= state.first_leg
    ]


def weighed(lies: Sequence[tuple[int, float]], now: float) -> Stored:
    """Sizes, and since when each has lain there."""
    return Stored(
        bytes=sum(size for size, _ in lies),
        byte_s=sum(int(size * max(now - since_s, 0.0)) for size, since_s in lies),
    )


def hourly(way: Way) -> int:
    """Micro-dollars that a machine's supervisor may ask of the store in an hour."""
    return asked(way.rates) if way.rates else 0


def likely(way: Way) -> int:
    """The same as it is expected to be, for all machines."""
    return int(LIKELY * way.nodes * hourly(way))


def paid(state: RunState, seen: Seen, machine_id: str) -> int:
    """Micro-dollars for what a machine has asked of the store by now, as far as that is known."""
    rates = state.requests[state.machines[machine_id].machine.leg].way.rates
    if rates is None:
        return 0
    usage = state.used.get(machine_id, Usage())
    if machine_id in seen.beats:  # it is newer, if there is one
        usage = seen.beats[machine_id][0].usage or usage
    return cost(usage, rates)
