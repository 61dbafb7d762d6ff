"""What a run's job has printed: byte for byte, or line by line."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from tradewind.base.errors import NotFound
from tradewind.lifecycle.state import RunState
from tradewind.store.base import Store

LONGEST = 1 << 20
"""A line that is longer comes in pieces: nobody has to hold a line of any length."""


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    leg: int
    rank: int
    offset: int
    """Of its first byte in this machine's output."""
    text: str
    """Without the end of the line; what is no UTF-8 is shown as �."""
    cut: bool = False
    """The line goes on in the next piece."""


def check_leg(run_id: str, state: RunState, leg: int | None) -> None:
    if leg is not None and leg not in state.requests:
        had = len(state.requests)
        raise NotFound(
            f"{run_id} has no leg {leg}",
            hint=f"it has had {had}" if had else "it has had none yet",
        )


def check_rank(run_id: str, state: RunState, rank: int | None) -> None:
    most = max((request.way.nodes for request in state.requests.values()), default=1)
    if rank is not None and rank >= most:
        known = "there is only rank 0" if most == 1 else f"there are ranks 0 to {most - 1}"
        raise NotFound(f"{run_id} has no machine of rank {rank}", hint=known)


class Reader:
    """The output of one machine of each leg, as it comes."""

    def __init__(self, store: Store, run_id: str, *, leg: int | None, rank: int | None) -> None:
        self._store, self._run_id = store, run_id
        self._leg, self._rank = leg, rank
        self._done: dict[tuple[int, int], int] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._over: set[tuple[int, int]] = set()

    def chunks(self, state: RunState) -> Iterator[tuple[int, int, bytes]]:
        """Leg, rank and what is new of it."""
        from tradewind.supervisor.logs import read_logs

        for place in self._places(state):
            # As the journal stood before we read: what was over then says nothing more.
            ended = _ended(state, place[0])
            while True:
                at = self._done.get(place, 0)
                data = read_logs(self._store, self._run_id, *place, at)
                if not data:
                    break
                self._done[place] = at + len(data)
                yield (*place, data)
            if ended:
                self._over.add(place)

    def lines(self, state: RunState, *, last: bool = False) -> Iterator[Line]:
        """Whole lines that are new. `last`: also what has no end yet, because none will come."""
        for leg, rank, data in self.chunks(state):
            yield from self._cut(leg, rank, data)
        for (leg, rank), held in list(self._held.items()):
            if held and (last or (leg, rank) in self._over):
                offset = self._done[leg, rank] - len(held)
                yield Line(leg=leg, rank=rank, offset=offset, text=_text(held))
                self._held[leg, rank] = b""

    def _cut(self, leg: int, rank: int, data: bytes) -> Iterator[Line]:
        held = self._held.get((leg, rank), b"") + data
        at = self._done[leg, rank] - len(held)
        for piece in _lines(held):
            if not piece.endswith(b"\n") and len(piece) <= LONGEST:
                self._held[leg, rank] = piece
                return
            for start in range(0, len(piece), LONGEST):
                part = piece[start : start + LONGEST]
                cut = start + LONGEST < len(piece) or not part.endswith(b"\n")
                text = _text(part.removesuffix(b"\n"))
                yield Line(leg=leg, rank=rank, offset=at + start, text=text, cut=cut)
            at += len(piece)
        self._held[leg, rank] = b""

    def _places(self, state: RunState) -> list[tuple[int, int]]:
        legs = [self._leg] if self._leg is not None else list(state.requests)
        found = []
        for leg in legs:
            nodes = state.requests[leg].way.nodes if leg in state.requests else 0
            ranks = range(nodes) if self._rank is None else [self._rank]
            found += [(leg, rank) for rank in ranks if (leg, rank) not in self._over]
        return found


def _lines(data: bytes) -> list[bytes]:
    """At \\n alone: a progress bar's \\r belongs to its line."""
    parts = data.split(b"\n")
    found = [part + b"\n" for part in parts[:-1]]
    return [*found, parts[-1]] if parts[-1] else found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _ended(state: RunState, leg: int) -> bool:
    """Whether every machine of a leg is off: then all that it said has been sent."""
    if state.phase == "closed":
        return True
    if state.leg and state.leg.number == leg:
        return False
    return all(r.ended for r in state.machines.values() if r.machine.leg == leg)
