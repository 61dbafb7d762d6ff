"""Sustained use: a machine on demand that is paid less the longer it is up in a month. Pure.

The discount is a provider's on what is up in one region in one calendar month. Machines that are up
one after the other count as one that was up for longer; those that are up at once count each by
itself. What was used in the first part of the month is not made cheaper by what comes after.
"""

from __future__ import annotations

WHOLE = 10_000
"""Shares are whole numbers of this many parts: sums of money are exact."""

Steps = tuple[tuple[int, int], ...]
"""From which share of the month on, what share of the price is paid. The first begins at 0."""


def unpaid(steps: Steps, used_s: int, more_s: int, month_s: int) -> int:
    """Of `more_s` seconds after `used_s` of the same month, those that are not paid, in parts of
    `WHOLE`: multiplied by a price, and divided by `WHOLE`, they are the discount."""
    return _unpaid(steps, used_s + more_s, month_s) - _unpaid(steps, used_s, month_s)


def _unpaid(steps: Steps, used_s: int, month_s: int) -> int:
    ends = [*(start for start, _ in steps[1:]), None]
    found = 0
    for (start, pays), end in zip(steps, ends, strict=True):
        first = start * month_s // WHOLE
        last = used_s if end is None else min(used_s, end * month_s // WHOLE)
        found += max(last - first, 0) * (WHOLE - pays)
    return found
