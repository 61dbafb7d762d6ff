"""`--window` and `--not-before`: from what a user writes to a schedule, and what it makes
impossible.

Zones are looked up here, once: a run has their offsets of the next years as data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_duration, format_hours, parse_duration
from tradewind.lifecycle import opening
from tradewind.model.timing import DRAIN_S
from tradewind.model.windows import ALL_DAYS, DAY_S, NAMES, Schedule, Window

if TYPE_CHECKING:
    from tradewind.model.run import Spec

EXAMPLE = "for example 22:00-06:00, 'Sat,Sun 00:00-24:00' or 'Mon-Fri 20:00-07:00 Europe/Berlin'"
_WINDOW = re.compile(
    r"(?:(?P<days>[A-Za-z]{3}(?:[-,][A-Za-z]{3})*)\s+)?"
    r"(?P<begin>\d{1,2}:\d{2})-(?P<end>\d{1,2}:\d{2})(?:\s+(?P<zone>\S+))?"
)
_YEARS = 3
"""Of offsets: beyond them the last one holds."""
_WEEKS = 21
"""Openings that are looked at to know the longest."""


def schedule(windows: Sequence[str], not_before: str | None, now: datetime) -> Schedule:
    return Schedule(
        not_before_s=None if not_before is None else moment(not_before, now).timestamp(),
        windows=tuple(window(text, now) for text in windows),
    )


def window(text: str, now: datetime) -> Window:
    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise InvalidValue(f"--window {text!r} is no window of the day", hint=EXAMPLE)
    begin, end = (_of_day(found[name], text) for name in ("begin", "end"))
    if begin in (DAY_S, end):
        raise InvalidValue(f"--window {text!r} has no length", hint=EXAMPLE)
    zone = found["zone"] or "UTC"
    return Window(
        start_s=begin,
        end_s=end % DAY_S,
        days=_days(found["days"], text),
        zone=zone,
        offsets=offsets(zone, now),
    )


def moment(text: str, now: datetime) -> datetime:
    """A moment, in UTC if it does not say, or so long from now."""
    try:
        if text[:4].isdecimal() and text[4:5] == "-":
            told = datetime.fromisoformat(text)
            return told if told.tzinfo else told.replace(tzinfo=UTC)
        return now + timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):  # also ours
        raise InvalidValue(
            f"--not-before {text!r} is neither a moment nor a length of time",
            hint="for example 2026-11-20T22:00, 2026-11-20T22:00+01:00 or 6h",
        ) from None


def offsets(zone: str, now: datetime) -> tuple[tuple[int, int], ...]:
    """How far a zone's clocks are ahead of UTC, from which moment on."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        there = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValue(
            f"no time zone is called {zone!r}",
            hint="for example UTC, Europe/Berlin or America/New_York; their names are those of the"
            " package tzdata, which has to be installed",
        ) from None

    def ahead(at_s: int) -> int:
        offset = datetime.fromtimestamp(at_s, UTC).astimezone(there).utcoffset()
        return int(offset.total_seconds()) if offset else 0

    first = int(now.timestamp()) // DAY_S * DAY_S - 8 * DAY_S
    found = [(0, ahead(first))]
    for day in range(first, first + _YEARS * 366 * DAY_S, DAY_S):
        if ahead(day + DAY_S) != found[-1][1]:
            low, high = day, day + DAY_S
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if ahead(middle) == found[-1][1] else (low, middle)
            found.append((high, ahead(high)))
    return tuple(found)


def _of_day(text: str, whole: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if minutes > 59 or hours * 3600 + minutes * 60 > DAY_S:
        raise InvalidValue(f"--window {whole!r}: {text} is no time of the day", hint=EXAMPLE)
    return hours * 3600 + minutes * 60


def _days(text: str | None, whole: str) -> tuple[int, ...]:
    if text is None:
        return ALL_DAYS
    found: set[int] = set()
    for part in text.split(","):
        names = [name.capitalize() for name in part.split("-")]
        if len(names) > 2 or any(name not in NAMES for name in names):
            raise InvalidValue(
                f"--window {whole!r}: {part} is no day of the week",
                hint=f"{', '.join(NAMES)}, or two of them: Mon-Fri",
            )
        first, last = NAMES.index(names[0]), NAMES.index(names[-1])
        found |= {(first + n) % 7 for n in range((last - first) % 7 + 1)}
    return tuple(sorted(found))


def check(spec: Spec, now_s: float) -> None:
    """InvalidValue where no leg would fit into a window, or the deadline cannot be met in them."""
    when = spec.schedule
    if not when:
        return
    spans = list(islice(when.spans(now_s), _WEEKS))
    longest = max(end - begin for begin, end in spans)
    if not any(opening.fits(way, longest) for way in spec.ways):
        need = min(2 * way.start_s for way in spec.ways) + DRAIN_S
        raise InvalidValue(
            f"no window is long enough: the longest is open for {format_hours(longest / 3600)}, and"
            f" to start, work as long and save takes {format_duration(int(need), parts=2)}",
            hint="a longer --window",
        )
    if spec.deadline_s is None:
        return
    best = min(spec.ways, key=lambda way: way.start_s + spec.work / way.rate)
    need_s = best.start_s + spec.work / best.rate
    done_s = when.done_s(now_s, need_s / spec.speed, opening.again_s((best,)))
    if done_s > spec.deadline_s:
        left_s = max(when.usable_s(now_s, spec.deadline_s, opening.again_s((best,))), 0.0)
        raise InvalidValue(
            f"the deadline cannot be met: until then machines may be up for"
            f" {format_hours(left_s / 3600)}, starting and saving in each further window taken"
            f" off, and the fastest of the plan need {format_hours(need_s / 3600)}",
            hint=f"a wider --window, an earlier --not-before, or a deadline after"
            f" {datetime.fromtimestamp(done_s, UTC):%Y-%m-%d %H:%M} UTC",
        )


def within_s(when: Schedule, now: datetime, deadline: datetime | None) -> int | None:
    """The time in which work is to be planned, where machines may be up for a part of it."""
    if not when or deadline is None:
        return None
    return int(when.usable_s(now.timestamp(), deadline.timestamp(), _AGAIN_S))


_AGAIN_S = 900.0
"""A window's start and save, before it is planned on which machines."""


def words(spec: Spec, now_s: float) -> str:
    """For who is asked before it begins."""
    when = spec.schedule
    opens = when.opens_s(now_s)
    first = "at once" if opens <= now_s else f"at {opening.told(spec, opens)}"
    return f"{when.words or 'at any time'}; the first launch {first}"
