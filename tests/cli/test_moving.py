"""What moving costs is said before anything is bought, and nothing where it costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.conftest import Cli
from tests.lifecycle.builders import SPEC, WAY
from tradewind.cli.runs import run

WORK = """\
name: far
work: {on: 1xA100-80GB, hours: 5}
checkpoint: {size: 100GB, every: 30m}
data: {uri: s3://b/x, size: 50GB, region: aws/us-east-1}
limits: {deadline: 24h, providers: [PROVIDER], markets: [on_demand]}
"""


def test_a_run_says_it_by_region() -> None:
    far = replace(WAY, region="far", bring=9_000_000, save=8_000_000)
    near = replace(WAY, zone="r1-b")
    ways = (near, far, replace(far, zone="far-b"), replace(far, provider="other", save=0))
    assert run._moving(replace(SPEC, ways=ways)) == [
        "cloud far: $9.00 a start, $8.00 an hour for checkpoints",
        "other far: $9.00 a start",
    ]
    assert run._moving(replace(SPEC, ways=(near,))) == []
    many = tuple(replace(far, region=f"r{n}") for n in range(8))
    assert run._moving(replace(SPEC, ways=many))[5:] == ["and to 3 other regions"]


def test_a_plan_says_it(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work.yaml"
    work.write_text(WORK.replace("PROVIDER", "lambda"))
    best = cli("plan", str(work), "--json").json["best"]
    # AWS asks $0.09 for a gigabyte that leaves it, Lambda nothing.
    assert best["bring_usd"] == pytest.approx(9.0 * 1e9 / 2**30, abs=1e-4)  # as it is billed
    assert best["bring_once_usd"] == pytest.approx(4.5 * 1e9 / 2**30, abs=1e-4)
    assert best["save_usd_per_hour"] == 0.0
    assert 4.19 <= best["costs_usd"]["egress"] < 4.3
    out = " ".join(cli("plan", str(work)).out.split())
    assert "moving: $4.19 to bring the data there, $8.38 for the checkpoint of each restart" in out
    assert "data and store are taken to be at aws us-east-1" in out


def test_a_plan_beside_its_data_says_nothing(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work.yaml"
    work.write_text(WORK.replace("[PROVIDER]", "[aws], regions: [us-east-1]"))
    best = cli("plan", str(work), "--json").json["best"]
    assert (best["bring_usd"], best["save_usd_per_hour"]) == (0.0, 0.0)
    out = cli("plan", str(work)).out
    assert "moving:" not in out
    assert "MOVING" not in out
