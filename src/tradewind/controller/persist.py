"""A controller's memory in a file, for passes that are processes of their own (cron, a CI job).

It is a cache: without it, or where it cannot be trusted, everything is read anew and every waiting
time starts over. Times in it are this computer's wall clock; after the clock was set back, or the
store is another one, the memory is not used.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct, json
from msgspec.structs import replace as replace_fields

from tradewind.base.decoding import decoder
from tradewind.base.ownfiles import replace
from tradewind.base.version import __version__
from tradewind.controller.memory import Memory, Pulse, RunMemory
from tradewind.lifecycle.state import RunState
from tradewind.model.run import Heartbeat

_KEPT_COMMITS = 64


class _Pulse(Struct):
    beat: Heartbeat | None
    """As it was believed: what a machine has written is never kept."""
    changed: float
    looked: float


class _Run(Struct):
    state: RunState
    since: dict[int, float]
    pulses: dict[str, _Pulse]
    unlisted: dict[str, float]


class _Saved(Struct):
    version: str
    store_url: str
    at: float
    runs: dict[str, _Run]
    unclaimed: dict[str, float]


_decode = decoder(_Saved)


def place(home: Path, store_url: str) -> Path:
    name = hashlib.sha256(store_url.encode()).hexdigest()[:16]
    return home / "controllers" / f"{name}.json"


def save(path: Path, memory: Memory, store_url: str, at: float) -> None:
    runs = {
        name: _Run(
            _without_job(run.state),
            {number: run.since[number] for number in sorted(run.since)[-_KEPT_COMMITS:]},
            {m: _Pulse(p.beat, p.changed, p.looked) for m, p in run.pulses.items()},
            run.unlisted,
        )
        for name, run in memory.runs.items()
    }
    replace(path, json.encode(_Saved(__version__, store_url, at, runs, memory.unclaimed)))


def _without_job(state: RunState) -> RunState:
    """A controller decides nothing by a run's command and variables: no copy of them lies here."""
    if state.spec is None:
        return state
    return replace_fields(state, spec=replace_fields(state.spec, job={}))


def load(path: Path, store_url: str, now: float) -> Memory:
    """Empty where there is none that can be used."""
    memory = Memory()
    try:
        saved = _decode(path.read_bytes())
    except OSError:
        return memory
    if (
        saved is None
        or (saved.version, saved.store_url) != (__version__, store_url)
        or saved.at > now
    ):
        return memory
    memory.unclaimed = saved.unclaimed
    for name, kept in saved.runs.items():
        run = memory.runs[name] = RunMemory(name, kept.since.get(0, now))
        run.state, run.unlisted = kept.state, kept.unlisted
        run.since = {0: now} | kept.since
        for machine, told in kept.pulses.items():
            pulse = run.pulses[machine] = Pulse()
            pulse.beat, pulse.changed, pulse.looked = told.beat, told.changed, told.looked
    return memory
