"""Work that is known in hours: the job's own count of steps says nothing of it."""

from __future__ import annotations

from tests.lifecycle.builders import CLOUD_S, NOW, WAY, a_beat, a_seen, running
from tests.lifecycle.test_decide import events
from tradewind.lifecycle import forecast
from tradewind.model.event import Forecast, Progress


def test_what_is_done_follows_from_the_time_that_machines_were_at_it() -> None:
    state = running(work=3600.0, steps=False)
    seen = a_seen(beats=(a_beat(step=9000.0, rate=25.0),), clock_s=CLOUD_S + 300 + 1200)
    known = forecast.known(state, state.spec, seen, (), NOW, None)  # type: ignore[arg-type]
    assert known.work == 2400.0
    assert known.options[0].rate == WAY.rate


def test_a_job_with_small_steps_is_not_thought_to_be_fast() -> None:
    state = running(work=3600.0, steps=False, deadline_s=NOW + 1000)
    seen = a_seen(beats=(a_beat(step=9000.0, rate=25.0, saved=8000.0),), clock_s=CLOUD_S + 600)
    recorded = events(state, seen)
    assert [e.late for e in recorded if isinstance(e, Forecast)] == [True]
    assert [e.rate for e in recorded if isinstance(e, Progress)] == [None]


def test_steps_count_where_the_work_is_counted_in_them() -> None:
    state = running(work=3600.0)
    seen = a_seen(beats=(a_beat(step=1000.0, rate=2.0),), clock_s=CLOUD_S + 5000)
    known = forecast.known(state, state.spec, seen, (), NOW, None)  # type: ignore[arg-type]
    assert (known.work, known.options[0].rate) == (2600.0, 2.0)
