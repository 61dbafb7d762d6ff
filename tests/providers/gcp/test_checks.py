"""What `doctor gcp` finds, on the equipment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.providers.gcp.setups import plan_setup, plan_teardown
from tradewind.base import clock
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks import checks
from tradewind.providers.gcp.footprint import Footprint, name
from tradewind.providers.gcp.setup import roles
from tradewind.providers.gcp.setup.make import Wish

STORE = "gs://checked-bucket/tw"
REGION = "us-west1"
"""Whose quotas no other test turns."""
PLENTY = 100_000.0
_people = count()


@pytest.fixture(scope="module")
def made(equipment: Control) -> Iterator[Footprint]:
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in equipment.env.items():
            patch.setenv(variable, value)
        equipment.image("ubuntu-os-cloud", "ubuntu-2404-lts-arm64", "ubuntu-2404-arm")
        record = plan_setup(Wish(store_url=STORE, regions=(REGION,))).carry_out()
        assert isinstance(record, Footprint)
        yield record
        plan_teardown(STORE, delete_bucket=True).carry_out()


def found(record: Footprint | None, **more: Any) -> list[Finding]:
    return list(checks(Google(), record, store_url=STORE, **more))


def bad(record: Footprint | None, **more: Any) -> Finding:
    """The one thing that is wrong."""
    told = [each for each in found(record, **more) if each.level != OK]
    assert len(told) == 1, told
    assert told[0].why
    assert told[0].todo
    return told[0]


def test_all_is_well(cloud: Control, made: Footprint) -> None:
    told = found(made)
    assert [each for each in told if each.level != OK] == []
    words = "\n".join(each.what for each in told)
    for part in (
        f"project {cloud.project}",
        "clock agrees",
        "APIs that are needed",
        "launched, listed and ended",
        made.service_account,
        made.network,
        "images:",
        f"{REGION}: GPUs:",
        "console.cloud.google.com/iam-admin/quotas",
    ):
        assert part in words, part


def test_no_login(made: Footprint, cloud: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(cloud.folder / "nothing.json"))
    finding = bad(made)
    assert finding.level == BROKEN
    assert "gcloud auth application-default login" in finding.todo


def test_nothing_is_set_up(cloud: Control) -> None:
    finding = bad(None)
    assert finding.level == WARNING
    assert finding.todo == f"tradewind setup gcp --store {STORE} --region REGION"
    assert [each for each in found(None, known=False) if each.level != OK] == []


def test_a_clock_that_is_off(cloud: Control, made: Footprint) -> None:
    finding = bad(made, now_s=lambda: clock.epoch() + 600)
    assert finding.level == BROKEN
    assert "s ahead" in finding.what


def test_a_project_that_is_not_ours(cloud: Control, made: Footprint) -> None:
    from msgspec.structs import replace

    finding = bad(replace(made, project="nobodys-project"))
    assert finding.level == BROKEN
    assert "gcloud projects list" in finding.todo


def test_no_billing(cloud: Control, made: Footprint) -> None:
    cloud.billing(False)
    try:
        told = [each for each in found(made) if each.level == BROKEN]
    finally:
        cloud.billing(True)
    assert any("gcloud billing projects link" in each.todo for each in told)


def test_apis_that_are_off(cloud: Control, made: Footprint) -> None:
    cloud.service("tpu", False)
    try:
        finding = bad(made)
    finally:
        cloud.service("tpu", True)
    assert finding.level == WARNING
    assert f"gcloud services enable tpu.googleapis.com --project {cloud.project}" in finding.todo


def test_an_api_without_which_nothing_runs(cloud: Control, made: Footprint) -> None:
    cloud.service("compute", False)
    try:
        finding = bad(made)
    finally:
        cloud.service("compute", True)
    assert finding.level == BROKEN


def test_permissions_that_are_missing(
    cloud: Control, made: Footprint, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = f"somebody-{next(_people)}@{cloud.project}.iam.gserviceaccount.com"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(cloud.key_file(email)))
    cloud.grant("roles/viewer", f"serviceAccount:{email}")
    told = [each for each in found(made) if each.level == BROKEN]
    places = [each.what.partition(" may not, of ")[2].partition(":")[0] for each in told]
    assert places == [
        f"the project {cloud.project}",
        f"the service account {made.service_account}",
        f"the bucket {made.bucket}",
    ]
    missing = told[0].measured["missing"]
    assert "compute.instances.create" in missing
    assert "compute.instances.list" not in missing
    assert f"projects/{cloud.project}/roles/{roles.base(STORE)}" in told[0].todo


def test_no_gpus(cloud: Control, made: Footprint) -> None:
    changed = ("NVIDIA_L4_GPUS", "PREEMPTIBLE_NVIDIA_L4_GPUS", "IN_USE_ADDRESSES")
    for code, value in zip(changed, (0, 0, 8), strict=True):
        cloud.quota(code, value, REGION)
    cloud.quota("GPUS_ALL_REGIONS", 0, "")
    try:
        told = [each for each in found(made) if each.level == WARNING]
    finally:
        for code in changed:
            cloud.quota(code, PLENTY, REGION)
        cloud.quota("GPUS_ALL_REGIONS", PLENTY, "")
    whole, gpus, addresses = told
    assert "GPUS_ALL_REGIONS is 0" in whole.what
    assert "NVIDIA_L4_GPUS, PREEMPTIBLE_NVIDIA_L4_GPUS" in gpus.what
    assert "8 external addresses" in addresses.what
    for each in told:
        assert f"console.cloud.google.com/iam-admin/quotas?project={cloud.project}" in each.todo


def test_a_way_in_from_outside(cloud: Control, made: Footprint) -> None:
    body = {
        "name": f"{name(STORE)}-open",
        "network": f"projects/{cloud.project}/global/networks/{made.network}",
        "sourceRanges": ["0.0.0.0/0"],
        "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}],
        "direction": "INGRESS",
    }
    with cloud.client("compute") as compute:
        compute.firewalls().insert(project=cloud.project, body=body).execute()
        try:
            finding = bad(made)
        finally:
            compute.firewalls().delete(project=cloud.project, firewall=body["name"]).execute()
    assert finding.level == WARNING
    assert "lets 0.0.0.0/0 in" in finding.what


def test_a_network_that_is_gone(cloud: Control, made: Footprint) -> None:
    from msgspec.structs import replace

    finding = bad(replace(made, network="gone-network"))
    assert finding.level == BROKEN
    assert finding.todo.startswith("tradewind setup gcp")
    finding = bad(replace(made, subnets={REGION: "gone-subnet"}))
    assert finding.level == BROKEN
    assert REGION in finding.todo


def test_an_image_that_is_gone_or_plain(cloud: Control, made: Footprint) -> None:
    from msgspec.structs import replace

    gone = bad(replace(made, image="projects/mine/global/images/family/gone"))
    assert gone.level == BROKEN
    cloud.image("debian-cloud", "debian-12", "debian-12-v1")
    plain = bad(replace(made, image="projects/debian-cloud/global/images/family/debian-12"))
    assert plain.level == WARNING
    assert "no NVIDIA driver" in plain.what


def test_a_service_account_that_is_gone(cloud: Control, made: Footprint) -> None:
    from msgspec.structs import replace

    email = f"gone@{cloud.project}.iam.gserviceaccount.com"
    told = [each for each in found(replace(made, service_account=email)) if each.level == BROKEN]
    assert any(f"{email} is not there" in each.what for each in told)


def test_machines_that_may_do_other_things(cloud: Control, made: Footprint) -> None:
    resource = f"projects/_/buckets/{made.bucket}"
    role = f"projects/{cloud.project}/roles/{roles.base(STORE)}_write"
    cloud.grant(role, f"serviceAccount:{made.service_account}", resource)
    finding = bad(made)
    assert finding.level == WARNING
    plan_setup(Wish(store_url=STORE)).carry_out()
    assert [each for each in found(made) if each.level != OK] == []
