"""What no plan counts on, and a run may wait for, is told before it is submitted."""

from __future__ import annotations

from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, WAY
from tradewind.cli.runs import run


def test_a_run_says_where_it_may_wait() -> None:
    waits = replace(
        WAY, market="flex_start", price=1_200_000, facts=replace(WAY.facts, queues=True)
    )
    dearer = replace(waits, zone="r1-b", price=1_300_000)
    told = run._queue(replace(SPEC, ways=(WAY, dearer, waits)))
    assert told == (
        f"{waits.words} for $1.20 an hour, and 1 more: a run stands in it where that is cheaper"
        " and there is time"
    )
    assert "more" not in run._queue(replace(SPEC, ways=(WAY, waits)))
    assert run._queue(replace(SPEC, ways=(WAY,))) == ""


def test_where_every_way_is_a_queue_there_is_no_other() -> None:
    """As on a cluster with a scheduler."""
    waits = replace(WAY, facts=replace(WAY.facts, queues=True))
    assert run._queue(replace(SPEC, ways=(waits,))) == ""
