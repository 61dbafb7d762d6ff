"""On-demand quotas of H100 and newer, which Cloud Quotas tells where it may be asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import convert

from tests.cloud.faces.google.control import Control
from tests.providers.gcp.machines import footprint, way
from tradewind.model.finding import OK, WARNING
from tradewind.model.run import Way
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks.quotas import family_checks
from tradewind.providers.gcp.limits.families import FAMILIES, Families, families
from tradewind.providers.gcp.limits.usable import usable
from tradewind.providers.usable import Usable

REGION, ZONE = "us-east5", "us-east5-a"
"""Whose quotas no other test turns."""
PLENTY = 100_000.0
H100 = "nvidia-h100-80gb"
_TRIES = 3
"""That a question gets which is not answered (rest.py)."""


@pytest.fixture
def told(cloud: Control) -> Iterator[Control]:
    """A project that has the API on."""
    cloud.service("cloudquotas", True)
    yield cloud
    cloud.service("cloudquotas", False)
    for code in ("NVIDIA_H100_GPUS", "NVIDIA_H200_GPUS"):
        cloud.quota(code, PLENTY, REGION)


def asked(*ways: Way) -> Usable:
    record = footprint(subnets={REGION: "x"}, zones={REGION: (ZONE,)})
    return usable(Google(), record, ways, store_url="gs://runs/tw")


def a3(**more: Any) -> Way:
    return way(**({"instance_type": "a3-highgpu-8g", "region": REGION, "zone": ZONE} | more))


def test_a_quota_that_is_too_small_is_said(told: Control) -> None:
    told.quota("NVIDIA_H100_GPUS", 8, REGION)
    one = a3()
    assert asked(one).ways == (one,)
    (found,) = asked(a3(nodes=2)).rejected
    assert found.kind == "quota"
    assert "needs 16 of the quota GPUS-PER-GPU-FAMILY-per-project-region (NVIDIA_H100)" in (
        found.words
    )
    assert f"in {REGION}, which is 8" in found.words
    assert "ask for 16" in found.hint
    assert f"console.cloud.google.com/iam-admin/quotas?project={told.project}" in found.hint


def test_spot_flex_start_and_reserved_machines_are_not_counted_by_it(told: Control) -> None:
    told.quota("NVIDIA_H100_GPUS", 0, REGION)
    for market in ("spot", "flex_start", "reserved"):
        one = a3(market=market)
        assert asked(one).ways == (one,)
    assert asked(a3()).ways == ()


def test_where_it_is_off_nothing_is_held_against_it(cloud: Control) -> None:
    cloud.quota("NVIDIA_H100_GPUS", 0, REGION)
    one = a3()
    told = asked(one)
    cloud.quota("NVIDIA_H100_GPUS", PLENTY, REGION)
    assert (told.ways, told.warnings) == ((one,), ())


def test_who_may_not_ask_is_told_nothing(told: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    told.fail("cloudquotas.projects.locations.services.quotaInfos.get", "forbidden", status=403)
    found = families(Google(), told.project)
    assert found.untold
    assert found.quota(REGION, H100) is None


@pytest.mark.slow
def test_what_fails_is_no_answer(told: Control) -> None:
    method = "cloudquotas.projects.locations.services.quotaInfos.get"
    told.fail(method, "INTERNAL", status=500, count=_TRIES)
    one = a3()
    found = asked(one)
    assert found.ways == (one,)
    (warning,) = found.warnings
    assert "quotas of H100 and newer are not known" in warning
    told.fail(method, "INTERNAL", status=500, count=_TRIES)
    with pytest.raises(OutcomeUnknown):
        families(Google(), told.project)


def test_others_do_not_ask_it(cloud: Control) -> None:
    before = len(cloud.permissions())
    asked(way(region=REGION, zone=ZONE))
    names = {each["permission"] for each in cloud.permissions()[before:]}
    assert names
    assert "cloudquotas.quotas.get" not in names


@pytest.mark.parametrize(
    ("infos", "limit"),
    [
        ([({"gpu_family": "NVIDIA_H100"}, "8", ["us-east5", "us-west1"])], 8),
        ([({"gpu_family": "NVIDIA_H100"}, "8", ["us-west1"])], None),
        ([({"gpu_family": "NVIDIA_H100"}, "8", [])], 8),
        ([({"gpu_family": "NVIDIA_H200"}, "8", ["us-east5"])], None),
        ([(None, "0", ["us-east5"])], None),
        ([({"gpu_family": "NVIDIA_H100"}, "-1", ["us-east5"])], None),
        ([({"gpu_family": "NVIDIA_H100"}, "", ["us-east5"])], 0),
        ([({"gpu_family": "NVIDIA_H100"}, "many", ["us-east5"])], None),
        ([({"gpu_family": "NVIDIA_H100", "zone": "us-east5-a"}, "4", ["us-east5"])], None),
        (
            [
                ({"gpu_family": "NVIDIA_H100"}, "8", ["us-east5"]),
                ({"gpu_family": "NVIDIA_H100", "region": "us-east5"}, "16", ["us-east5"]),
                (None, "0", ["us-east5"]),
            ],
            16,
        ),
    ],
)
def test_the_entry_that_says_most_of_it_counts(
    infos: list[tuple[dict[str, str] | None, str, list[str]]], limit: int | None
) -> None:
    given = [
        {"dimensions": named, "details": {"value": value}, "applicableLocations": where}
        for named, value, where in infos
    ]
    quota = convert({"infos": given}, Families).quota("us-east5", H100)
    assert (quota.limit if quota else None) == limit
    assert convert({"infos": given}, Families).quota("us-east5", "nvidia-l4") is None


def test_doctor(told: Control) -> None:
    told.quota("NVIDIA_H100_GPUS", 0, REGION)
    told.quota("NVIDIA_H200_GPUS", 16, REGION)
    some, none = family_checks(Google(), told.project, [REGION])
    assert some.level == OK
    assert "NVIDIA_H200 16" in some.what
    assert set(some.measured) == set(FAMILIES.values())
    assert none.level == WARNING
    assert none.what == f"{REGION}: no newer GPUs on demand: NVIDIA_H100"
    assert "ask for 8" in none.todo


def test_doctor_where_it_is_off(cloud: Control) -> None:
    (only,) = family_checks(Google(), cloud.project, [REGION])
    assert only.level == OK
    assert f"gcloud services enable cloudquotas.googleapis.com --project {cloud.project}" in (
        only.what
    )
