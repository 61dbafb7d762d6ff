"""Postings cut at moments: days, months, and any span of time. Months and days are UTC's.

What is cut adds up again, to the micro-dollar and to the second: each part is the difference of two
whole numbers that are reckoned from the posting's start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from tradewind.ledger.postings import Posting

DAY_S = 86_400


def between(posting: Posting, since_s: int | None, until_s: int | None) -> Posting | None:
    """Its share of the time from `since_s` up to and without `until_s`; None if it has none.

    What took no time, or none that is known, belongs to the moment at which it began."""
    first, end = posting.from_s, _end(posting)
    since_s = first if since_s is None else since_s
    until_s = max(end, first + 1) if until_s is None else until_s
    if until_s <= first or since_s >= max(end, first + 1):
        return None
    if since_s <= first and until_s >= end:
        return posting

    def share(amount: int) -> int:
        return _until(posting, until_s, amount) - _until(posting, since_s, amount)

    return replace(
        posting,
        from_s=max(first, since_s),
        to_s=min(end, until_s),
        seconds=None if posting.seconds is None else share(posting.seconds),
        paid_s=share(posting.paid_s),
        micros=share(posting.micros),
        on_demand=None if posting.on_demand is None else share(posting.on_demand),
        line=posting.line and replace(posting.line, amount=share(posting.line.amount)),
        open=posting.open and until_s >= end,  # what lies before is not going to change
    )


def by_day(posting: Posting) -> Iterator[Posting]:
    """Its parts, one for each day that it touches; `from_s` tells which."""
    start = posting.from_s // DAY_S * DAY_S
    while True:
        part = between(posting, start, start + DAY_S)
        if part is None:
            return
        yield part
        start += DAY_S


def month_start(moment_s: int) -> int:
    moment = datetime.fromtimestamp(moment_s, UTC)
    return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp())


def next_month(moment_s: int) -> int:
    """The start of the month after the one that the moment is in."""
    return month_start(month_start(moment_s) + 32 * DAY_S)


def day_name(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d")


def month_name(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m")


def _end(posting: Posting) -> int:
    return posting.from_s if posting.to_s is None else posting.to_s


def _until(posting: Posting, moment_s: int, amount: int) -> int:
    first, end = posting.from_s, _end(posting)
    if moment_s <= first:
        return 0
    return amount if moment_s >= end else amount * (moment_s - first) // (end - first)
