"""What a controller remembers between two passes. All of it can be had again from the store and the
providers, but for since when things were seen: without that, waiting starts over.

Ticks of different runs may run on threads of their own: a RunMemory is its run's alone, and the two
dicts of Memory are only ever asked for one key (`get`, `setdefault`, an assignment), which Python
does whole. Only a look goes through them, and there is no tick during a look."""

from __future__ import annotations

from tradewind.lifecycle import beats
from tradewind.lifecycle.state import RunState
from tradewind.model.run import Heartbeat


class Pulse:
    """A machine's heartbeat, when we saw it change, and when we looked last: never what its own
    clock says, and never longer than we have looked."""

    __slots__ = ("beat", "changed", "data", "disbelieved", "looked")

    def __init__(self) -> None:
        self.data = b""  # as it was read last, so that most looks need not read it again
        self.beat: Heartbeat | None = None
        self.changed = self.looked = 0.0
        self.disbelieved = False  # what lies there now; nothing at all is only silence

    @property
    def silent_s(self) -> float:
        return max(self.looked - self.changed, 0.0)


class RunMemory:
    __slots__ = ("lent", "pulses", "run_id", "since", "state", "unlisted")

    def __init__(self, run_id: str, watch: float) -> None:
        self.run_id = run_id
        self.state = RunState()
        self.since: dict[int, float] = {0: watch}  # when we first saw the run, and each commit
        self.pulses: dict[str, Pulse] = {}
        self.lent: dict[str, float] = {}  # when a machine was lent a pass last
        self.unlisted: dict[str, float] = {}  # since when one of ours is not

    def felt(self, machine_id: str, data: bytes, asked: float, watch: float, seed: bytes) -> None:
        """What was asked for at `asked` and came at `watch`. What cannot be believed changes
        nothing: the machine is silent."""
        pulse = self.pulses.get(machine_id)
        if pulse is None:
            pulse = self.pulses[machine_id] = Pulse()
        pulse.looked = asked
        if data == pulse.data:
            return
        pulse.data = data
        beat = beats.read(self.state, machine_id, data, seed, pulse.beat)
        pulse.disbelieved = beat is None and data != b""
        if beat is not None:
            pulse.beat, pulse.changed = beat, watch


class Memory:
    __slots__ = ("runs", "unclaimed")

    def __init__(self) -> None:
        self.runs: dict[str, RunMemory] = {}
        self.unclaimed: dict[str, float] = {}  # since when one of no journal is
