"""What a report of a run is made of, fetched: its journal, money, heartbeats, metrics, checkpoints,
and how it was rehearsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import json

from tradewind.api import wishes
from tradewind.api.follow import Sight
from tradewind.api.wishes import ChaosWish, TraceWish, Wish
from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import NotFound, TooLarge, TradewindError
from tradewind.base.units import format_names
from tradewind.ledger.postings import cost_of
from tradewind.model import bounds, places
from tradewind.model.event import Submitted
from tradewind.report.assemble import Sources, report
from tradewind.report.curves import Curves
from tradewind.report.figures import Kept, Rehearsal
from tradewind.store.base import Dated, Store

if TYPE_CHECKING:
    from tradewind.model.run import Spec
    from tradewind.providers.local.trace import Trace
    from tradewind.report.capacity import Spans
    from tradewind.report.figures import Report

_BATCH = 64
_MOST_SPANS = 20_000
_MOST_STEPS = 100_000
"""Of a trace, all its rounds: a short one at a great speed has no end of them."""
_AHEAD = 10.5
"""Times the run's length: as far as foresight is asked about."""
_PIECE = re.compile(r"(\d{6,})/0000/(\d{20})\.log")
_CHECKPOINT = re.compile(r"(\d{6,})/(\d{20})\.json")


def report_of(sight: Sight) -> Report:
    """Of a run whose journal was read."""
    now = clock.now()
    store, run_id, spec = sight.store, sight.run_id, sight.state.spec
    with suppress(TradewindError):  # then what was recorded must do
        sight.feel()
    events = [event for commit in sight.commits for event in commit.events]
    curves = Curves()
    for leg, lines in _metrics(store, run_id):
        curves.take(leg, lines)
    wish = rehearsed(store, run_id)
    local = spec is not None and all(way.provider == "local" for way in spec.ways)
    there: Mapping[str, Spans] = {}
    if spec is not None and isinstance(wish, TraceWish):
        begun = next((c.at for c in sight.commits if _has(c.events, Submitted)), now)
        took_s = max((now - begun).total_seconds(), 1.0)
        if sight.state.outcome:
            took_s = max((sight.commits[-1].at - begun).total_seconds(), 1.0)
        there = _there(wish, spec, begun.timestamp(), begun.timestamp() + _AHEAD * took_s)
    sources = Sources(
        run_id=run_id,
        commits=sight.commits,
        state=sight.state,
        cost=cost_of(run_id, events, now=int(now.timestamp())),
        beats=sight.beats,
        curves=curves,
        stored=_stored(store, run_id),
        there=there,
        rehearsal=_rehearsal(wish) if local else None,
    )
    return report(sources, now)


def rehearsed(store: Store, run_id: str) -> Wish | None:
    """How its machines are interrupted, as the store has it, or else this computer."""
    kept: Wish | None = None
    with suppress(NotFound, TooLarge):
        kept = wishes.decoded(store.get(places.rehearsal(run_id), most=bounds.RECORD))
    return kept or wishes.wish_of(run_id)


def _has(events: Sequence[object], kind: type) -> bool:
    return any(isinstance(event, kind) for event in events)


def _metrics(store: Store, run_id: str) -> Iterator[tuple[int, list[bytes]]]:
    """Whole lines of each leg's first machine, in order; only some pieces are held at a time."""
    folder = places.metrics(run_id)
    pieces = []
    for key in store.list_after(folder):
        found = _PIECE.fullmatch(key.removeprefix(folder))
        if found:
            pieces.append((int(found[1]), int(found[2]), key))
    held, ends = b"", (0, 0)
    for start in range(0, len(pieces), _BATCH):
        batch = pieces[start : start + _BATCH]
        for (leg, offset, _), data in zip(
            batch,
            store.get_many([key for *_, key in batch], most=bounds.PIECE),
            strict=True,
        ):
            if held and ends != (leg, offset):
                yield ends[0], [held]  # the line's end was never sent
                held = b""
            *lines, held = (held + data).split(b"\n")
            held = held if len(held) <= bounds.LINE else b""
            ends = (leg, offset + len(data))
            yield leg, lines
    if held:
        yield ends[0], [held]


def _stored(store: Store, run_id: str) -> list[Kept]:
    folder = places.checkpoints(run_id)
    found = []
    for key in store.list_after(folder):
        named = _CHECKPOINT.fullmatch(key.removeprefix(folder))
        if not named:
            continue
        at: datetime | None = None
        size: int | None = None
        with suppress(TradewindError):  # one may go while we look
            size = _size(store.get(key, most=bounds.CHECKPOINT))
            if isinstance(store, Dated):
                at = datetime.fromtimestamp(store.written_s(key), UTC)
        found.append(Kept(step=int(named[2]), leg=int(named[1]), at=at, bytes=size, there=True))
    return found


def _size(manifest: bytes) -> int | None:
    """Of what our own manifests name; a job that saves in its own way says what it likes."""
    try:
        files = json.decode(manifest)["files"].values()
        return sum(int(file["bytes"]) for file in files)
    except (*UNREADABLE, TypeError, KeyError, AttributeError):
        return None


def _there(wish: TraceWish, spec: Spec, since_s: float, until_s: float) -> dict[str, Spans]:
    nodes: dict[str, int] = {}
    for way in spec.ways:
        if way.market == "spot":
            zone = way.zone or way.region
            nodes[zone] = max(nodes.get(zone, 1), way.nodes)
    return {
        zone: _spans(wish.traces[zone], wish, min(many, wish.traces[zone].nodes), since_s, until_s)
        for zone, many in nodes.items()
        if zone in wish.traces
    }


def _spans(
    trace: Trace, wish: TraceWish, wanted: int, since_s: float, until_s: float
) -> list[tuple[float, float]]:
    """When there were so many machines, by our clock; a trace begins again after its end."""
    found: list[tuple[float, float]] = []
    length_s = trace.length_s
    at_s = (since_s - wish.began_s) * wish.speed
    base_s = at_s // length_s * length_s
    for _ in range(_MOST_STEPS // len(trace.counts) + 1):
        start = base_s
        for count, end in zip(trace.counts, trace.ends_s, strict=True):
            first, last = (wish.began_s + t / wish.speed for t in (start, base_s + end))
            start = base_s + end
            if last <= since_s or count < wanted:
                continue
            if first >= until_s:
                return found
            if found and found[-1][1] >= first:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
        base_s += length_s
        if len(found) >= _MOST_SPANS or wish.began_s + base_s / wish.speed >= until_s:
            break
    return found


def _rehearsal(wish: Wish | None) -> Rehearsal:
    if isinstance(wish, TraceWish):
        ids = list(dict.fromkeys(trace.trace_id for trace in wish.traces.values()))
        fast = "" if wish.speed == 1 else f", at {wish.speed:,.4g} times its speed"
        series = (
            f"a measured series ({format_names(ids, 4)})"
            if wish.measured
            else "a trace that was made up"
        )
        words = f"spot machines came and went as in {series}{fast}"
        return Rehearsal(kind="trace", words=words, speed=wish.speed)
    if isinstance(wish, ChaosWish):
        words = f"spot machines were interrupted at random, after {wish.mean_life_s:g} s on average"
        return Rehearsal(kind="chaos", words=words)
    return Rehearsal(kind="", words="machines were interrupted only by `tradewind interrupt`")
