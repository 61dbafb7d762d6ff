from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPOT, WAY, a_beat
from tests.report.making import MARKETS, RUN_ID, START, Making, finished, losses, of_many
from tradewind.model import places
from tradewind.model.event import Abandoned, Progress
from tradewind.report import words
from tradewind.report.foresight import Effort, foresight


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00+00:00")


def test_a_run_that_is_done() -> None:
    report = finished().report()
    assert (report.state, report.over, report.step) == ("succeeded", True, 1000)
    assert [leg.leg for leg in report.legs] == [1, 3, 4]
    assert [leg.lost for leg in report.legs] == [50, 30, 0]
    assert [leg.began for leg in report.legs] == [0, 400, 700]
    assert report.taken == 2
    assert [refusal.kind for refusal in report.refusals] == ["no_capacity"]
    # 460 + 340 s on spot at a third of the price, 310 s on demand.
    assert report.money.micros == 153_334 + 113_334 + 310_000
    assert report.money.same_on_demand == 1_110_000
    # A thousand steps of a second, and one start.
    assert report.money.alone == 1_010_000
    spent = report.seconds
    assert spent.all == spent.working + spent.starting + spent.waiting == 1161
    assert (spent.working, spent.starting) == (1080, 30)
    assert report.late_s == 1161 - 3600
    (curve,) = report.curves
    assert (curve.rows, curve.buckets[-1].step) == (1000, 1000)
    assert words.sentence(report) == (
        "Done in 19m for $0.58, 41m before the deadline; on demand alone would have cost $1.01"
        " (43% saved)."
    )


def test_the_course_falls_where_steps_are_lost() -> None:
    course = finished().report().course
    steps = [point.step for point in course.points]
    assert steps == [0, 0, 450, 400, 400, 730, 700, 700, 1000]
    assert [point.step for point in course.saved] == [0, 400, 700, 1000]


def test_one_that_goes_on_is_projected() -> None:
    made = Making(deadline_s=START.timestamp() + 3 * 3600 + 3600)
    made.stay(None, way=WAY)
    beat = a_beat(step=600.0, rate=0.5)
    made.store.replace(places.heartbeat(RUN_ID, "m1"), msgspec.json.encode(beat))
    report = made.report()
    assert (report.state, report.over, report.step) == ("active", False, 600)
    plan = report.projection
    assert plan is not None
    # 400 steps at two seconds each, from noon.
    assert (plan.finish - report.made).total_seconds() == 800
    assert plan.cost == report.money.micros + 800_000
    assert report.late_s == 800
    assert report.money.alone is None
    assert "At this speed done in 13m" in words.sentence(report)
    assert "13m after the deadline" in words.sentence(report)


def test_one_that_tells_no_steps_is_not_projected() -> None:
    made = Making(steps=False)
    made.stay(None, way=WAY)
    assert made.report().projection is None


def test_one_that_has_failed_says_why() -> None:
    report = Making().stay(50, "job_failed").end("failed", "3 tries of the job failed").report()
    assert report.projection is None
    # What was not saved is not done.
    assert words.sentence(report) == (
        "Failed after 1m and $0.0200, at step 0 of 1,000 (0%): 3 tries of the job failed."
    )
    assert any(line.tail for line in report.events)
    assert report.money.alone is None


def test_one_without_legs() -> None:
    report = Making().report()
    assert (report.state, report.legs, report.zones) == ("waiting", (), ())
    assert report.seconds.waiting == report.seconds.all == 4 * 3600
    assert report.projection is not None
    gone = Making()
    assert gone.end("cancelled", "its user asked for it").report().projection is None


def test_one_that_was_never_submitted() -> None:
    made = Making.__new__(Making)
    from tradewind.store.memory import MemoryStore

    made.store, made.number, made.at_s = MemoryStore(), 0, 0
    made.write(Abandoned(run_id=RUN_ID, reason="it was cut off"))
    report = made.report()
    assert (report.submitted, report.over) == (None, True)
    assert words.sentence(report) == "Never submitted."


def test_many_legs_stay_few_figures() -> None:
    report = of_many(500).report()
    assert len(report.legs) == 501
    assert len(report.zones) == 4
    assert sum(zone.legs for zone in report.zones) == 501
    assert len(report.course.points) <= 1501
    assert sum(zone.micros for zone in report.zones) == report.money.micros


def test_metrics_with_times_make_the_course_finer() -> None:
    made = Making(deadline_s=START.timestamp() + 3600)
    rows = [{**row, "at_s": START.timestamp() + 10 + row["step"]} for row in losses(1, 1000)]
    made.stay(1000, "finished").measured(1, rows).end()
    report = made.report()
    assert len(report.course.points) > 200
    assert report.course.points[5].at - START < timedelta(seconds=60)


def test_pieces_that_cut_a_line_are_put_together() -> None:
    made = Making().stay(1000, "finished").end()
    data = b"".join(b'{"step": %d, "loss": 1}\n' % step for step in range(1, 101))
    made.measured(1, data[:777]).measured(1, data[777:], offset=777)
    report = made.report()
    assert report.curves[0].rows == 100
    assert report.notes == ()


def test_a_lost_piece_costs_one_line() -> None:
    made = Making().stay(1000, "finished").end()
    data = b"".join(b'{"step": %d, "loss": 1}\n' % step for step in range(1, 101))
    made.measured(1, data[:777]).measured(1, data[1500:], offset=1500)
    report = made.report()
    assert 50 < report.curves[0].rows < 100
    assert "could not be read" in report.notes[0]


def test_checkpoints_of_session_store_and_journal_are_one_list() -> None:
    made = Making()
    made.stay(None)
    told = b'{"checkpoint": 100, "took_s": 2.5, "bytes": 70, "at_s": 1794729700}\n'
    made.measured(1, told)
    manifest = b'{"files": {"a": {"bytes": 60}, "b": {"bytes": 20}}}'
    made.store.create(places.checkpoint(RUN_ID, 1, 100), manifest)
    made.store.create(places.checkpoint(RUN_ID, 1, 200), b"a job's own words")
    made.write(Progress(leg=1, step=350.0, saved=300.0))
    first, second, third = made.report().checkpoints
    assert (first.step, first.bytes, first.took_s, first.there) == (100, 80, 2.5, True)
    assert (second.step, second.bytes, second.there) == (200, None, True)
    assert (third.step, third.there) == (300, False)


# -- perfect foresight -----------------------------------------------------------------------------

EFFORT = Effort(work_s=1000.0, start_s=10.0)
END = START + timedelta(seconds=1200)
T0 = START.timestamp()


def least(*spans: tuple[float, float], deadline_s: float = 3600) -> int | None:
    there = {"r1-a": [(T0 + a, T0 + b) for a, b in spans]}
    until = START + timedelta(seconds=deadline_s)
    return foresight((WAY, SPOT), there, EFFORT, START, END, until)[0]


def test_foresight_takes_spot_where_it_is_always_there() -> None:
    micros = least((0, 10_000))
    assert micros is not None
    assert micros == pytest.approx(1_010_000 / 3, rel=0.01)


def test_foresight_waits_for_spot_and_no_longer_than_the_deadline() -> None:
    assert least((2000, 10_000)) == pytest.approx(1_010_000 / 3, rel=0.01)
    # Only 200 s of it are left before the deadline, 10 of which are for a start.
    assert least((3400, 10_000)) == pytest.approx(820_000 + 200_000 / 3, rel=0.01)
    half = least((0, 510))
    assert half == pytest.approx(510_000 / 3 + 510_000, rel=0.02)


def test_without_on_demand_it_may_be_impossible() -> None:
    there = {"r1-a": [(T0, T0 + 300.0)]}
    micros, why = foresight((SPOT,), there, EFFORT, START, END, None)
    assert micros is None
    assert "spot alone could not have done it" in why


def test_it_is_asked_only_where_all_machines_are_alike() -> None:
    """Of a cloud nobody knows what could have been had."""
    assert finished().report().money.foresight is None
    local = replace(WAY, provider="local")
    spec = replace(MARKETS, ways=(local, replace(local, market="spot")))
    report = Making(spec=spec).stay(1000, "finished", local).end().report()
    assert report.money.foresight is None
    assert report.money.alone == 1_010_000
    assert report.rehearsal is not None
    assert "no one was billed" in (words.simulated(report) or ("",))[0]
