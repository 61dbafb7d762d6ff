"""When machines may be up: the arithmetic of windows, against the zones' own, and what decide makes
of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from math import inf
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import (
    NOW,
    SPEC,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    found,
    requested,
    state_of,
    submitted,
    up,
)
from tradewind.api import scheduled
from tradewind.base.errors import InvalidValue
from tradewind.lifecycle import RunState, decide
from tradewind.lifecycle.fold import WINDOW
from tradewind.lifecycle.money import WEEK_S
from tradewind.lifecycle.next import MOST_TROUBLES
from tradewind.model.action import Record
from tradewind.model.event import (
    Ended,
    Event,
    Forecast,
    LegDraining,
    LegOver,
    LegRequested,
    Warned,
)
from tradewind.model.timing import BEAT_S, DRAIN_S, SHUTDOWN_S
from tradewind.model.windows import DAY_S, Schedule, Window

AUTUMN = datetime(2026, 10, 20, 12, tzinfo=UTC)
"""In Berlin clocks are set back on the 25th."""


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def spans(windows: list[str], since: str, many: int) -> list[tuple[str, str]]:
    some = islice(scheduled.schedule(windows, None, AUTUMN).spans(at(since)), many)
    return [
        (f"{datetime.fromtimestamp(a, UTC):%d %H:%M}", f"{datetime.fromtimestamp(b, UTC):%d %H:%M}")
        for a, b in some
    ]


def test_a_night_begins_on_its_day_and_ends_on_the_next() -> None:
    assert spans(["22:00-06:00"], "2026-10-20T23:00", 2) == [
        ("20 23:00", "21 06:00"),
        ("21 22:00", "22 06:00"),
    ]
    # Friday's night, and the weekend, which are one.
    assert spans(["Fri 22:00-06:00", "Sat,Sun 00:00-24:00"], "2026-10-20T00:00", 2) == [
        ("23 22:00", "26 00:00"),
        ("30 22:00", "02 00:00"),
    ]


def test_a_night_in_which_clocks_are_set_back_is_an_hour_longer() -> None:
    assert spans(["Sat 22:00-06:00 Europe/Berlin"], "2026-10-20T00:00", 2) == [
        ("24 20:00", "25 05:00"),
        ("31 21:00", "01 05:00"),
    ]


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Chatham"]
    ),
    st.integers(0, 1439),
    st.integers(0, 1440),
    st.sets(st.integers(0, 6), min_size=1),
    st.integers(0, 2 * 365 * 1440),
)
def test_it_is_open_exactly_when_the_clock_on_the_wall_says_so(
    zone: str, begin: int, end: int, days: set[int], minute: int
) -> None:
    if begin == end:
        return
    names = ",".join("Mon Tue Wed Thu Fri Sat Sun".split()[day] for day in sorted(days))
    text = f"{names} {begin // 60}:{begin % 60:02d}-{end // 60}:{end % 60:02d} {zone}"
    window = scheduled.window(text, AUTUMN)
    moment = AUTUMN + timedelta(minutes=minute)
    there = moment.astimezone(ZoneInfo(zone))
    if any(  # an hour that is there twice, or never, is nobody's to argue about
        (there + timedelta(hours=n)).utcoffset() != there.utcoffset() for n in (-26, 26)
    ):
        return
    clock, over = there.hour * 60 + there.minute, end <= begin
    today, before = there.weekday() in days, (there.weekday() - 1) % 7 in days
    if over:
        wanted = (today and clock >= begin) or (before and clock < end)
    else:
        wanted = today and begin <= clock < end
    is_open = Schedule(windows=(window,)).closes_s(moment.timestamp()) is not None
    assert is_open == wanted


def test_windows_without_a_gap_are_not_joined_for_a_year() -> None:
    both = scheduled.schedule(["00:00-12:00", "12:00-24:00"], None, AUTUMN)
    now = at("2026-10-20T23:00")
    closes_s = both.closes_s(now)
    assert closes_s is not None
    assert WEEK_S < 8 * DAY_S < closes_s - now < 10 * DAY_S
    assert both.opens_s(now) == now
    assert both.usable_s(now, now + 30 * DAY_S) == 30 * DAY_S
    assert both.done_s(now, 30 * DAY_S, 600) == now + 30 * DAY_S
    late = Schedule(not_before_s=now + 20 * DAY_S, windows=both.windows)
    assert (late.closes_s(now), late.opens_s(now)) == (None, now + 20 * DAY_S)


def test_how_much_time_there_is_and_when_it_has_gone_by_agree() -> None:
    night = scheduled.schedule(["22:00-06:00"], None, AUTUMN)
    now = at("2026-10-20T23:00")
    assert night.usable_s(now, at("2026-10-22T00:00")) == 9 * 3600
    assert night.usable_s(now, at("2026-10-22T00:00"), 600) == 9 * 3600 - 600
    assert night.done_s(now, 9 * 3600 - 600, 600) == at("2026-10-22T00:00")
    assert night.done_s(now, 7 * 3600) == at("2026-10-21T06:00")
    assert Schedule().done_s(now, 5) == now + 5
    late = Schedule(not_before_s=now + 50)
    assert (late.closes_s(now), late.opens_s(now), late.closes_s(now + 50)) == (None, now + 50, inf)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("22-06", "is no window of the day"),
        ("25:00-06:00", "25:00 is no time of the day"),
        ("22:00-22:00", "has no length"),
        ("Mon-Foo 22:00-06:00", "Mon-Foo is no day of the week"),
        ("22:00-06:00 Mars/Base", "no time zone is called 'Mars/Base'"),
        ("22:00-06:00 ../../etc", "no time zone is called"),
    ],
)
def test_what_is_no_window(text: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        scheduled.window(text, AUTUMN)


# -- what decide makes of it -----------------------------------------------------------------------

DAY = int(NOW) // DAY_S * DAY_S
OPEN_S, SHUT_S = DAY + 20 * 3600, DAY + 22 * 3600
EVENING = Schedule(windows=(Window(start_s=20 * 3600, end_s=22 * 3600),))
WINDOWED = replace(SPEC, schedule=EVENING)


def records(state: RunState, now: float, **seen: Any) -> list[Event]:
    actions = decide(state, a_seen(**seen), [WAY], now)
    return [action.event for action in actions if isinstance(action, Record)]


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_nothing_is_bought_before_the_window_and_that_is_said_once() -> None:
    state = state_of(submitted(WINDOWED))
    (told,) = records(state, OPEN_S - 1)
    assert isinstance(told, Warned)
    assert "nothing is launched before" in told.reason
    assert records(state_of(submitted(WINDOWED), told), OPEN_S - 1) == []


def test_in_the_window_a_leg_is_bought_that_ends_itself_with_it() -> None:
    (asked,) = of(LegRequested, records(state_of(submitted(WINDOWED)), OPEN_S))
    assert asked.request.until_s == SHUT_S
    assert asked.request.hard_stop_s == SHUT_S - OPEN_S + SHUTDOWN_S + BEAT_S
    (free,) = of(LegRequested, records(state_of(submitted(SPEC)), OPEN_S))
    assert free.request.until_s is None


def test_nothing_is_bought_for_which_the_window_is_too_short() -> None:
    state = state_of(submitted(WINDOWED))
    needs = 2 * WAY.start_s + DRAIN_S
    assert of(LegRequested, records(state, SHUT_S - needs))
    assert not of(LegRequested, records(state, SHUT_S - needs + 1))


def history(*more: Event) -> list[Event]:
    """A leg at work, bought for the evening."""
    asked = requested(until_s=float(SHUT_S))
    return [submitted(WINDOWED), asked, found(a_machine()), up(), *more]


BEAT = (a_beat(step=50.0, saved=40.0, rate=1.0),)
OVER = LegOver(leg=1, cause=WINDOW, reason="r", step=50, saved=50)


def drained() -> LegDraining:
    (event,) = of(LegDraining, records(state_of(*history()), SHUT_S - DRAIN_S, beats=BEAT))
    assert isinstance(event, LegDraining)
    return event


def test_it_saves_in_time_and_goes_on_in_the_next() -> None:
    state = state_of(*history())
    assert not of(LegDraining, records(state, SHUT_S - DRAIN_S - 1, beats=BEAT))
    assert drained().cause == WINDOW
    assert "it goes on at" in drained().reason
    after = state_of(*history(drained(), OVER))
    assert (after.troubles, after.saved) == (0, 50)
    assert not of(LegRequested, records(after, SHUT_S + 10))
    (again,) = of(LegRequested, records(after, OPEN_S + DAY_S))
    assert again.request.until_s == SHUT_S + DAY_S


def test_a_slow_clock_neither_ends_nor_buys_again_what_a_faster_one_decided() -> None:
    # One that thinks the window has not opened yet lets the leg alone.
    assert not of(LegDraining, records(state_of(*history()), OPEN_S - 600, beats=BEAT))
    # One that thinks there is time enough does not buy what another has ended because it closes.
    after = state_of(*history(drained(), OVER))
    assert not of(LegRequested, records(after, SHUT_S - 3600))


def test_what_has_not_begun_when_it_closes_is_over_at_once() -> None:
    for events in (history()[:2], history()[:3]):
        (ended,) = of(LegOver, records(state_of(*events), SHUT_S - DRAIN_S))
        assert ended.cause == WINDOW
        assert state_of(*events, ended).troubles == 0


def test_windows_in_which_nothing_is_saved_come_to_an_end() -> None:
    state = history()
    for leg in range(1, MOST_TROUBLES + 1):
        if leg > 1:
            machine = a_machine(f"m{leg}", leg)
            until = float(SHUT_S + leg * DAY_S)
            state += [requested(leg, until_s=until), found(machine), up(leg)]
        state += [
            LegDraining(leg=leg, cause=WINDOW, reason="r"),
            LegOver(leg=leg, cause=WINDOW, reason="r"),
        ]
    (ended,) = of(Ended, records(state_of(*state), OPEN_S + 20 * DAY_S))
    assert ended.outcome == "failed"
    assert ended.reason.endswith("last cause: window")


def test_what_will_be_late_because_of_its_windows_is_told() -> None:
    """An hour and 5 minutes of work and starting in two hours an evening: in time within one, and
    not where the window has only half an hour left before the deadline."""
    day = replace(WINDOWED, deadline_s=float(SHUT_S + 3600))
    assert not of(Forecast, records(state_of(submitted(day)), OPEN_S))
    (late,) = of(Forecast, records(state_of(submitted(day)), SHUT_S - 1800))
    assert late.late
    assert late.finish_s > OPEN_S + DAY_S


# -- what is refused before it begins --------------------------------------------------------------


def test_a_deadline_that_the_windows_make_impossible_is_refused() -> None:
    def check(now: float, **more: Any) -> None:
        scheduled.check(replace(WINDOWED, **more), now)

    check(OPEN_S, deadline_s=float(SHUT_S))
    with pytest.raises(InvalidValue, match="the deadline cannot be met") as caught:
        check(SHUT_S - 3000, deadline_s=float(SHUT_S))
    assert "a deadline after" in (caught.value.hint or "")
    check(SHUT_S - 3000, deadline_s=float(SHUT_S + DAY_S))
    late = Schedule(not_before_s=NOW + 5000)
    with pytest.raises(InvalidValue, match="the deadline cannot be met"):
        check(NOW, schedule=late, deadline_s=NOW + 6000)
    short = Schedule(windows=(Window(start_s=0, end_s=600),))
    with pytest.raises(InvalidValue, match="no window is long enough"):
        check(NOW, schedule=short)
    scheduled.check(SPEC, NOW)
