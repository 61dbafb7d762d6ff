from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, SPOT, WAY
from tests.supervisor.test_runtime import Launch
from tradewind.model.usage import Rates
from tradewind.supervisor.cadence import Cadence, of

AUTO = replace(SPEC, checkpoint_stall_s=60.0)
HOUR = 3600.0


def test_a_fresh_spot_machine_saves_often_and_an_old_one_seldom() -> None:
    ages = [of(AUTO, SPOT, age_s) for age_s in (0.0, HOUR, 3 * HOUR, 6 * HOUR)]
    assert ages == sorted(ages)
    assert ages[0] / 60 == pytest.approx(8, abs=1)
    assert ages[-1] / 60 == pytest.approx(30.5, abs=2)


def test_several_machines_save_more_often_and_safe_ones_seldom() -> None:
    assert of(AUTO, replace(SPOT, nodes=8), HOUR) < of(AUTO, SPOT, HOUR) < of(AUTO, WAY, HOUR)


def test_a_notice_that_leaves_time_for_a_save_makes_saves_rarer() -> None:
    told = replace(SPOT, facts=replace(SPOT.facts, notice_s=120))
    small, large = (replace(AUTO, checkpoint_bytes=size) for size in (4 * 10**9, 40 * 10**9))
    assert of(small, told, 0.0) / 60 == pytest.approx(23, abs=1)
    assert (
        of(small, SPOT, 0.0) == of(large, told, 0.0) == of(AUTO, told, 0.0) == of(AUTO, SPOT, 0.0)
    )


def test_a_save_that_has_to_be_paid_for_is_rarer() -> None:
    """A terabyte to another cloud: what it costs is as good as time of the machines."""
    large = replace(AUTO, checkpoint_bytes=10**12)
    paid = replace(WAY, rates=Rates(gb_in=90_000))
    assert of(large, paid, 0.0) > 3 * of(large, WAY, 0.0)
    assert of(large, replace(WAY, rates=Rates()), 0.0) == of(large, WAY, 0.0)


def test_what_the_user_says_holds() -> None:
    assert of(replace(SPEC, checkpoint_every_s=900), SPOT, 0.0) == 900


def test_it_is_told_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "cadence.json"
    told = Cadence(path)
    first = told.tell(AUTO, SPOT, 0.0)
    assert json.decode(path.read_bytes()) == {"every_s": round(first), "keep": 3}
    path.unlink()
    assert told.tell(AUTO, SPOT, 30.0) == first
    assert told.tell(AUTO, SPOT, 90.0) == first  # no news
    assert not path.exists()
    assert told.tell(AUTO, SPOT, 6 * HOUR) > 3 * first
    assert path.exists()


def test_a_machine_at_risk_saves_at_once_and_goes_on(tmp_path: Path) -> None:
    """The job's own reading of it, as a session does it."""
    from tradewind.torch.surroundings import Cadence as Reading

    told, spec = Cadence(tmp_path / "cadence.json"), replace(SPEC, checkpoint_stall_s=None)
    every_s = told.tell(spec, SPOT, 0.0)
    job = Reading(tmp_path / "cadence.json", None)
    assert not job.due()
    told.save_once()
    job.read()
    assert job.due()
    job.saved()
    assert not job.due()
    told.save_once()
    job.read()
    assert job.due()
    job.saved()
    assert told.tell(spec, SPOT, 1.0) == every_s  # and as often as before
    fixed = Reading(tmp_path / "cadence.json", 1e12)  # where the script says when
    assert fixed.due()


def test_a_job_can_read_it(launch: Launch) -> None:
    machine = launch('cat "$TRADEWIND_CADENCE"; echo')
    machine.does("finished")
    assert '{"every_s":600,"keep":3}' in machine.spool()
