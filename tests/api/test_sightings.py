"""What real runs meet with is kept for plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.catalog.small import NOW
from tests.lifecycle.builders import SPOT
from tradewind.api import sightings
from tradewind.catalog import files
from tradewind.lifecycle.capacity import Answer

AWS = replace(SPOT, provider="aws", region="us-east-1", zone="use1-az1", nodes=4)


def test_launches_refusals_and_interruptions_are_observations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    at_s = NOW.timestamp()
    sightings.remember([Answer(AWS, True, at_s - 7200)])
    sightings.remember([Answer(AWS, False, at_s - 60, held_s=7140)])
    sightings.remember([Answer(replace(AWS, provider="local"), True, at_s)])
    found = files.load(now=NOW).observations
    assert found is not None
    (several,) = found.recent.values()
    assert [(one.available, one.machines, round(one.held_h, 2)) for one in several] == [
        (True, 4, 0),
        (False, 4, 1.98),
    ]
    (latest,) = found.latest.values()
    assert not latest.available


def test_a_full_disk_costs_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("not a folder")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    sightings.remember([Answer(AWS, True, NOW.timestamp())])
    assert (tmp_path / "home").read_text() == "not a folder"
