"""Which of a plan's ways can be launched, on the equipment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.providers.gcp.machines import footprint, way
from tradewind.model.run import Way
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.limits.usable import usable
from tradewind.providers.usable import Reason, Usable

STORE = "gs://runs/tw"
REGION, ZONES = "europe-west4", ("europe-west4-a", "europe-west4-b")
PLENTY = 100_000.0


@pytest.fixture
def quotas(cloud: Control) -> Iterator[Any]:
    """Of a region that other tests do not use; put back afterwards."""
    changed: list[tuple[str, str]] = []

    def put(code: str, value: float, region: str = REGION) -> None:
        changed.append((code, region))
        cloud.quota(code, value, region)

    yield put
    for code, region in changed:
        cloud.quota(code, PLENTY, region)


def here(**more: Any) -> Way:
    return way(**({"region": REGION, "zone": ZONES[0]} | more))


def asked(*ways: Way, **more: Any) -> Usable:
    record = footprint(subnets={REGION: "x"}, zones={REGION: ZONES}, **more)
    return usable(Google(), record, ways, store_url=STORE)


def reason(one: Way, **more: Any) -> Reason:
    told = asked(one, **more)
    (found,) = told.rejected
    assert told.ways == ()
    assert found.way == one
    return found


def test_what_can_be_launched_stays_in_its_order(cloud: Control) -> None:
    ways = [
        here(market="spot"),
        here(zone="", nodes=2),
        here(instance_type="n1-standard-8+1xT4"),
        here(instance_type="a3-highgpu-8g", market="flex_start"),
        here(instance_type="e2-standard-4"),
    ]
    told = asked(*ways)
    assert told.ways == tuple(ways)
    assert told.rejected == ()
    assert told.warnings == ()


def test_ways_of_others_are_not_ours_to_judge(cloud: Control) -> None:
    other = way(provider="aws", region="us-east-1", zone="", instance_type="p5.48xlarge")
    assert asked(other).ways == (other,)


def test_a_region_that_is_not_set_up(cloud: Control) -> None:
    found = reason(way(region="us-west1", zone="us-west1-a"))
    assert found.kind == "no_setup"
    assert found.hint == f"tradewind setup gcp --store {STORE} --region us-west1"


def test_a_zone_that_is_not_there(cloud: Control) -> None:
    assert reason(here(zone="europe-west4-z")).kind == "zone_off"


def test_a_type_that_no_zone_has(cloud: Control) -> None:
    for place in ("*",):
        cloud.offers(place, "a2-megagpu-16g", False)
    found = reason(here(instance_type="a2-megagpu-16g"))
    assert (found.kind, found.words) == (
        "not_offered",
        f"no zone of {REGION} offers a2-megagpu-16g",
    )
    cloud.offers("*", "a2-megagpu-16g")


def test_a_type_that_another_zone_has(cloud: Control) -> None:
    cloud.offers(ZONES[0], "g2-standard-96", False)
    found = reason(here(instance_type="g2-standard-96"))
    assert found.kind == "not_offered"
    assert found.hint == f"{ZONES[1]} does"
    region = here(instance_type="g2-standard-96", zone="")
    assert asked(region).ways == (region,)
    cloud.offers(ZONES[0], "g2-standard-96")


def test_a_gpu_that_is_not_attached_there(cloud: Control) -> None:
    cloud.offers(ZONES[0], "nvidia-tesla-t4", False)
    assert reason(here(instance_type="n1-standard-8+1xT4")).kind == "not_offered"
    cloud.offers(ZONES[0], "nvidia-tesla-t4")


def test_a_gpu_that_nobody_knows(cloud: Control) -> None:
    assert reason(here(instance_type="n1-standard-8+1xH100")).kind == "not_offered"


@pytest.mark.parametrize(
    ("kind", "image", "words"),
    [
        ("n1-standard-8+1xV100-16GB", "", "begins with Turing"),
        ("g2-standard-4", "projects/debian-cloud/global/images/debian-12", "no NVIDIA driver"),
        ("a4-highgpu-8g", "projects/mine/global/images/family/ours-nvidia-550", "needs 570"),
    ],
)  # fmt: skip
def test_gpus_that_the_image_cannot_drive(
    cloud: Control, kind: str, image: str, words: str
) -> None:
    found = reason(here(instance_type=kind), image=image)
    assert found.kind == "no_driver"
    assert words in found.words
    assert "--image" in found.hint


def test_an_image_of_ones_own_is_trusted(cloud: Control) -> None:
    one = here(instance_type="n1-standard-8+1xV100-16GB")
    assert asked(one, image="projects/mine/global/images/family/ours").ways == (one,)


def test_no_gpu_at_all(cloud: Control, quotas: Any) -> None:
    quotas("NVIDIA_L4_GPUS", 0)
    quotas("PREEMPTIBLE_NVIDIA_L4_GPUS", 0)
    for market in ("on_demand", "spot"):
        found = reason(here(market=market))
        assert found.kind == "quota"
        assert f"NVIDIA_L4_GPUS in {REGION}" in found.words
        assert "console.cloud.google.com/iam-admin/quotas?project=" in found.hint
        assert "ask for 1" in found.hint


def test_spot_machines_have_a_quota_of_their_own(cloud: Control, quotas: Any) -> None:
    quotas("NVIDIA_L4_GPUS", 0)
    quotas("PREEMPTIBLE_NVIDIA_L4_GPUS", 2)
    assert asked(here(market="spot", nodes=2)).rejected == ()
    assert "PREEMPTIBLE_NVIDIA_L4_GPUS" in reason(here(market="spot", nodes=3)).words
    assert reason(here()).kind == "quota"


def test_spot_machines_without_one_take_that_of_the_others(cloud: Control, quotas: Any) -> None:
    quotas("NVIDIA_L4_GPUS", 4)
    quotas("PREEMPTIBLE_NVIDIA_L4_GPUS", 0)
    assert asked(here(market="spot", nodes=4)).rejected == ()
    assert reason(here(market="spot", nodes=5)).kind == "quota"


def test_all_gpus_of_all_regions(cloud: Control, quotas: Any) -> None:
    quotas("GPUS_ALL_REGIONS", 1, "")
    assert "GPUS_ALL_REGIONS" in reason(here(nodes=2)).words
    assert asked(here()).rejected == ()


def test_gpus_that_are_attached_count_too(cloud: Control, quotas: Any) -> None:
    quotas("NVIDIA_T4_GPUS", 3)
    assert reason(here(instance_type="n1-standard-16+2xT4", nodes=2)).kind == "quota"


def test_addresses_run_out_first_in_a_new_project(cloud: Control, quotas: Any) -> None:
    quotas("IN_USE_ADDRESSES", 8)
    found = reason(here(nodes=9))
    assert "IN_USE_ADDRESSES" in found.words
    assert asked(here(nodes=9), public=False).rejected == ()


def test_what_cannot_be_learned_is_held_against_nothing(cloud: Control) -> None:
    cloud.fail("compute.regions.list", "forbidden", status=403)
    one = here(instance_type="a2-highgpu-1g")
    told = asked(one)
    assert told.ways == (one,)
    (warning,) = told.warnings
    assert "quotas are not known" in warning


def test_a_project_without_billing(cloud: Control) -> None:
    cloud.billing(False)
    try:
        told = reason(here())
    finally:
        cloud.billing(True)
    assert told.kind == "closed"
    assert "has no billing account" in told.words
    assert "gcloud billing projects link" in told.hint


def test_an_api_that_is_off(cloud: Control) -> None:
    slice_ = here(instance_type="tpu-v4-8", zone=ZONES[0])
    cloud.service("tpu", False)
    try:
        told = asked(slice_, here())
        assert [each.words for each in told.rejected] == [
            f"the API tpu.googleapis.com is off in {cloud.project}"
        ]
        assert told.ways == (here(),)
        cloud.service("compute", False)
        found = reason(here())
    finally:
        cloud.service("compute", True)
        cloud.service("tpu", True)
    assert found.kind == "closed"
    assert "gcloud services enable compute.googleapis.com" in found.hint


def test_a_project_that_is_gone(cloud: Control) -> None:
    told = reason(here(), project="shut-down-lately")
    assert "there is no project shut-down-lately" in told.words
    assert "gcloud projects list" in told.hint


def test_slices(cloud: Control) -> None:
    one = here(instance_type="tpu-v5litepod-4", zone="")
    assert asked(one).ways == (one,)
    cloud.offers(REGION, "v5litepod-4", False)
    found = reason(one)
    cloud.offers(REGION, "v5litepod-4")
    assert found.words == f"no zone of {REGION} offers tpu-v5litepod-4"
    assert reason(here(instance_type="tpu-v99-4")).kind == "not_offered"


def test_slices_of_which_nobody_tells_stay(cloud: Control) -> None:
    cloud.fail("tpu.projects.locations.acceleratorTypes.list", "forbidden", status=403, count=2)
    one = here(instance_type="tpu-v5litepod-4", zone="")
    assert asked(one).ways == (one,)
