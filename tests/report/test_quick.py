"""A report of a rehearsal is in the time of its world."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.report import making
from tradewind.report.quick import in_its_time


def moments(value: Any) -> list[datetime]:
    if isinstance(value, datetime):
        return [value]
    if isinstance(value, msgspec.Struct):
        return [m for name in value.__struct_fields__ for m in moments(getattr(value, name))]
    if isinstance(value, tuple):
        return [m for each in value for m in moments(each)]
    return []


def test_every_moment_but_its_making_moves_away_from_the_submission() -> None:
    before = making.finished().report()
    assert before.submitted is not None
    after = in_its_time(before, 60.0)
    assert after.made == before.made
    for old, new in zip(
        moments(replace(before, made=before.submitted)),
        moments(replace(after, made=before.submitted)),
        strict=True,
    ):
        assert abs((new - before.submitted) - (old - before.submitted) * 60) < timedelta(
            milliseconds=1
        )
    assert after.money.micros == before.money.micros
    assert after.seconds.all == before.seconds.all * 60
    assert after.legs[0].price == round(before.legs[0].price / 60)
    assert after.zones[0].held_s == before.zones[0].held_s * 60
    assert in_its_time(before, 1.0) is before
