"""What a controller remembers between two passes. All of it can be had again from the store and the
providers, but for since when things were seen: without that, waiting starts over.

Ticks of different runs may run on threads of their own: a RunMemory is its run's alone, and the two
dicts of Memory are only ever asked for one key (`get`, `setdefault`, an assignment), which Python
does whole. Only a look goes through them, and there is no tick during a look."""

from __future__ import annotations

from msgspec import DecodeError, json

from tradewind.model.run import Heartbeat
from tradewind.runs.state import RunState

_decode = json.Decoder(Heartbeat).decode


class Pulse:
    """A machine's heartbeat, and when we saw it change: never what its own clock says."""

    __slots__ = ("beat", "changed", "data")

    def __init__(self) -> None:
        self.data = b""
        self.beat: Heartbeat | None = None
        self.changed = 0.0


class RunMemory:
    __slots__ = ("first_seen", "pulses", "run_id", "since", "state")

    def __init__(self, run_id: str, watch: float) -> None:
        self.run_id = run_id
        self.first_seen = watch
        self.state = RunState()
        self.since: dict[int, float] = {}  # when we first read each commit
        self.pulses: dict[str, Pulse] = {}

    def felt(self, machine_id: str, data: bytes, watch: float) -> None:
        pulse = self.pulses.get(machine_id)
        if pulse is None:
            pulse = self.pulses[machine_id] = Pulse()
        if data == pulse.data:
            return
        pulse.data, pulse.changed = data, watch
        try:
            pulse.beat = _decode(data)
        except DecodeError:
            pulse.beat = None  # as good as none: the machine is silent


class Memory:
    __slots__ = ("runs", "unclaimed")

    def __init__(self) -> None:
        self.runs: dict[str, RunMemory] = {}
        self.unclaimed: dict[str, float] = {}  # since when a machine of no journal is listed
