"""What a machine says counts only if that machine said it, and if it can be true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json, structs

from tests.lifecycle.builders import (
    AT,
    NOW,
    SPOT,
    a_beat,
    a_machine,
    a_seen,
    running,
    state_of,
    submitted,
)
from tradewind.base import signing
from tradewind.lifecycle import RunState, beats, fold
from tradewind.lifecycle.decide import decide
from tradewind.model import bounds
from tradewind.model.event import Commit, LegRequested, MachineUsed
from tradewind.model.run import Heartbeat, Spec
from tradewind.model.usage import Usage

SEED = b"s" * 32
KEY = signing.key_of(SEED, "run-1-1")
ANOTHER = signing.key_of(SEED, "run-2-1")


def state_of_signed() -> RunState:
    state = running()
    state.requests[1] = structs.replace(state.requests[1], signed=True)
    return state


def said(beat: Heartbeat, key: str = KEY, purpose: str = signing.HEARTBEAT) -> bytes:
    return signing.signed(json.encode(beat), key, purpose)


def test_what_its_own_machine_says_is_believed() -> None:
    assert beats.read(state_of_signed(), "m1", said(a_beat()), SEED) == a_beat()
    assert beats.read(running(), "m1", json.encode(a_beat()), b"") == a_beat()


@pytest.mark.parametrize(
    "data",
    [
        json.encode(a_beat()),
        said(a_beat(), ANOTHER),
        said(a_beat(), purpose=signing.RESUME),
        said(a_beat()).replace(b"working", b"finished"),
        said(a_beat("m2")),
        said(a_beat(leg=77)),
        said(a_beat()) + b" ",
        b"",
    ],
)
def test_nobody_else_speaks_for_it(data: bytes) -> None:
    assert beats.read(state_of_signed(), "m1", data, SEED) is None


def test_without_the_stores_seed_nothing_signed_is_believed() -> None:
    assert beats.read(state_of_signed(), "m1", said(a_beat()), b"") is None


@pytest.mark.parametrize(
    "lie",
    [
        {"rate": -1.0},
        {"rate": 1e-300},
        {"rate": 0.0},
        {"saved": 1e308},
        {"saved": -1.0},
        {"step": -5.0},
        {"uptime_s": -1.0},
        {"failures": -1},
        {"failures": 10**30},
        {"exit_code": 10**400},
        {"idle_s": 1e300},
        {"doing": "dancing"},
        {"reason": "x" * 5000},
        {"tail": "x" * 30_000_000},
        {"usage": Usage(writes=-(10**9))},
        {"usage": Usage(byte_s=10**40)},
    ],
)
def test_what_cannot_be_true_is_silence(lie: dict[str, Any]) -> None:
    assert beats.read(state_of_signed(), "m1", said(a_beat(**lie)), SEED) is None


BEFORE = a_beat(beat=7, uptime_s=100.0, saved=30.0, usage=Usage(writes=50, bytes_in=10**6))


@pytest.mark.parametrize(
    ("more", "believed"),
    [
        ({"beat": 8, "uptime_s": 105.0}, True),
        ({"beat": 1, "uptime_s": 130.0}, True),  # its supervisor was started again
        ({}, False),
        ({"beat": 6, "uptime_s": 95.0}, False),
        ({"beat": 8, "saved": 29.0}, False),
        ({"beat": 8, "usage": None}, False),
        ({"beat": 8, "usage": Usage(writes=49, bytes_in=10**6 - 900)}, True),
        ({"beat": 8, "usage": Usage(writes=40, bytes_in=10**6)}, False),
    ],
)
def test_an_older_report_is_no_sign_of_life(more: dict[str, Any], believed: bool) -> None:
    told = structs.replace(BEFORE, **more)
    found = beats.read(state_of_signed(), "m1", said(told), SEED, BEFORE)
    assert found == (told if believed else None)


def test_what_was_asked_of_the_store_is_not_taken_back_after_it_was_recorded() -> None:
    used = MachineUsed(machine_id="m1", leg=1, usage=Usage(writes=1000))
    state = running(used)
    assert beats.read(state, "m1", json.encode(a_beat(usage=Usage(writes=10))), b"") is None
    assert beats.read(state, "m1", json.encode(a_beat(usage=Usage(writes=1001))), b"") is not None


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_bytes_raise(garbage: bytes, at: int) -> None:
    true = said(a_beat())
    for data in (garbage, true[:at], true[:at] + garbage + true[at:]):
        found = beats.read(state_of_signed(), "m1", data, SEED)
        assert found is None or found == a_beat()
        beats.read(running(), "m1", data, b"")


@pytest.mark.parametrize(
    "data",
    [
        b'{"machine_id":"m1","leg":1,"beat":1,"uptime_s":1,"doing":"setup","reason":"\xff"}',
        b'{"machine_id":"m1","leg":1,"beat":1,"uptime_s":1,"doing":"setup","figures":[{"x":'
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}]}",
        b"[" * 100_000,
        b"9" * 100_000,
        b'{"beat":' + b"9" * 100_000 + b"}",
        b"\x00" * (bounds.HEARTBEAT + 1),
    ],
)
def test_the_nastiest_bytes_are_silence(data: bytes) -> None:
    assert beats.read(running(), "m1", data, b"") is None


_AMOUNTS = st.sampled_from([0.0, 1e-12, 1.0, 1e6, 1e15]) | st.floats(0, 1e15)
LIES = st.builds(
    a_beat,
    st.just("m1"),
    st.sampled_from(["setup", "working", "saving", "stopped", "failed", "finished"]),
    step=_AMOUNTS,
    rate=st.none() | st.floats(1e-12, 1e15),
    saved=_AMOUNTS,
    failures=st.sampled_from([0, 1, 2**63 - 1]),
    exit_code=st.sampled_from([None, 0, -9, 2**31]),
    trouble=st.sampled_from(["", "user", "infrastructure", "?"]),
    notice=st.booleans(),
    at_risk=st.booleans(),
    idle_s=_AMOUNTS,
    stalled_s=_AMOUNTS,
    usage=st.builds(Usage, writes=st.sampled_from([0, 1_000_000]), byte_s=st.just(2**63 - 1)),
)
LIMITED: tuple[dict[str, Any], ...] = (
    {},
    {"deadline_s": NOW + 7200.0, "budget": 5_000_000},
    {"max_duration_s": 3600, "idle_s": 60, "idle_stop": True, "steps": False},
)


@settings(max_examples=300)
@given(lie=LIES, spec=st.sampled_from(LIMITED), ago_s=st.sampled_from([0.0, 700.0, 10_000.0]))
def test_whatever_can_be_said_can_be_decided_on(
    lie: Heartbeat, spec: dict[str, Any], ago_s: float
) -> None:
    """And a lie is news once: the journal does not grow with each look."""
    believed = beats.read(running(way=SPOT, **spec), "m1", json.encode(lie), b"")
    assert believed == lie
    state = running(way=SPOT, **spec)
    for _ in range(8):
        seen = a_seen(a_machine(), beats=(lie,), ago_s=ago_s, clock_s=20_000)
        given_spec: Spec | None = state.spec
        assert given_spec is not None
        events = [a.event for a in decide(state, seen, given_spec.ways, NOW) if hasattr(a, "event")]
        if not events:
            return
        state = fold([Commit(1, state.number + 1, "w1", AT, tuple(events))], state)
        if any(isinstance(event, LegRequested) for event in events):
            return
    raise AssertionError(f"the journal grows with each look: {events}")


def test_machines_are_asked_to_sign_where_the_store_has_a_seed() -> None:
    for signs in (True, False):
        actions = decide(state_of(submitted()), a_seen(signs=signs), (SPOT,), NOW)
        event = actions[-1].event  # type: ignore[union-attr]
        assert isinstance(event, LegRequested)
        assert event.request.signed is signs


@pytest.mark.parametrize("name", ["writes", "reads", "bytes_in", "bytes_out", "gone"])
def test_no_machine_asks_more_of_a_store_than_it_can(name: str) -> None:
    """One such heartbeat booked 46 trillion dollars, and its project's month was over."""
    state = state_of_signed()
    most = Usage(**{name: 2**63 - 1})
    assert beats.read(state, "m1", said(structs.replace(a_beat(), usage=most)), SEED) is None
    later = structs.replace(a_beat(), usage=most, uptime_s=1e15)
    assert beats.read(state, "m1", said(later), SEED) is None
    much = structs.replace(a_beat(), usage=Usage(**{name: 100_000}))
    assert beats.read(state, "m1", said(much), SEED) == much
