"""Setup and teardown on the equipment: what is there afterwards, and that both may be cut off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control, running
from tests.providers.gcp.setups import Cut, CutOff, plan_setup, plan_teardown, written
from tradewind.base.errors import InvalidValue
from tradewind.providers.gcp.footprint import Footprint, name
from tradewind.providers.gcp.setup import roles, things
from tradewind.providers.gcp.setup.make import Wish

_stores = count()


@pytest.fixture
def store(cloud: Control) -> Iterator[str]:
    """One that nobody has used."""
    cloud.dials(operation_s=0.0)
    yield f"gs://bucket-{next(_stores)}/tw"
    cloud.dials(operation_s=0.02)


def made(store: str, *regions: str, **wishes: Any) -> Footprint:
    record = plan_setup(Wish(store_url=store, regions=regions, **wishes)).carry_out()
    assert isinstance(record, Footprint)
    return record


def left(cloud: Control, store: str) -> list[str]:
    called = name(store)
    shelf = [each for each in cloud.shelf() if f"/{called}" in each]
    accounts = [each for each in cloud.accounts() if each.startswith(called)]
    there = [
        each for each, role in cloud.roles().items()
        if roles.base(store) in each and not role.get("deleted")
    ]  # fmt: skip
    bindings = str(cloud.policy())
    return [*shelf, *accounts, *there, *([bindings] if called in bindings else [])]


def test_all_of_it_is_made_as_it_should_be(cloud: Control, store: str) -> None:
    record = made(store, "us-central1", "europe-west4")
    called, bucket = name(store), store.split("/")[2]
    email = f"{called}@{cloud.project}.iam.gserviceaccount.com"
    assert record == Footprint(
        project=cloud.project,
        bucket=bucket,
        bucket_location="us-central1",
        service_account=email,
        network=called,
        subnets={"us-central1": called, "europe-west4": called},
        zones={
            "europe-west4": ("europe-west4-a", "europe-west4-b", "europe-west4-c"),
            "us-central1": ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"),
        },
        role=roles.base(store),
    )
    assert written(store) == record
    told = cloud.buckets()[bucket]
    assert told["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert told["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert told["versioning"] == {"enabled": True}
    assert told["softDeletePolicy"]["retentionDurationSeconds"] == "0"
    whole = [each for each in told["lifecycle"]["rule"] if "age" in each["condition"]]
    assert {each["action"]["type"]: each["condition"]["matchesPrefix"] for each in whole} == {
        "AbortIncompleteMultipartUpload": ["tw/"],
        "Delete": ["tw/kits/"],
    }
    assert email in cloud.accounts()
    known = cloud.roles()
    for role in (*roles.machines(store), *roles.users(store)):
        found = known[f"projects/{cloud.project}/roles/{role.id}"]
        assert sorted(found["includedPermissions"]) == sorted(role.permissions)
    granted = {
        each["role"].rpartition("/")[2]: each["condition"]["expression"]
        for policy in (cloud.policy(), cloud.policy(f"projects/_/buckets/{bucket}"))
        for each in policy["bindings"]
        if f"serviceAccount:{email}" in each["members"]
    }
    assert granted == {grant.role: grant.condition for grant in roles.grants(store)}


def test_a_second_time_changes_nothing(cloud: Control, store: str) -> None:
    made(store, "us-central1")
    google = CutOff()
    again = plan_setup(Wish(store_url=store), google)
    assert again.prepared.changes == 0
    assert again.recorded
    assert google.changes == 0


@pytest.mark.slow
def test_regions_are_added_and_stay(cloud: Control, store: str) -> None:
    made(store, "us-central1")
    record = made(store, "us-central1", "us-east4")
    assert set(record.subnets) == {"us-central1", "us-east4"}
    assert made(store) == record
    called = name(store)
    with cloud.client("compute") as compute:
        asked = {"project": cloud.project, "firewall": f"{called}-inside"}
        rule = compute.firewalls().get(**asked).execute()
    assert sorted(rule["sourceRanges"]) == ["10.77.0.0/20", "10.77.16.0/20"]
    assert rule["allowed"] == [{"IPProtocol": "all"}]


@pytest.mark.slow
def test_shells_are_let_in_where_that_is_wished(cloud: Control, store: str) -> None:
    made(store, "us-central1", iap=True)
    rules = [each.rpartition("/")[2] for each in cloud.shelf("firewalls") if name(store) in each]
    assert sorted(rules) == [f"{name(store)}-iap", f"{name(store)}-inside"]


@pytest.mark.slow
def test_a_private_store_stays_private(cloud: Control, store: str) -> None:
    assert made(store, "us-central1").public
    assert not made(store, private=True).public
    assert not made(store).public


@pytest.mark.slow
def test_what_somebody_changed_is_mended(cloud: Control, store: str) -> None:
    made(store, "us-central1")
    called, bucket = name(store), store.split("/")[2]
    wide = {"name": f"{called}-inside", "sourceRanges": ["0.0.0.0/0"]}
    with cloud.client("compute") as compute:
        compute.firewalls().patch(
            project=cloud.project, firewall=f"{called}-inside", body=wide
        ).execute()
    with cloud.client("storage") as storage:
        storage.buckets().patch(bucket=bucket, body={"versioning": {"enabled": False}}).execute()
    role = f"projects/{cloud.project}/roles/{roles.base(store)}_write"
    more = {"includedPermissions": [*roles.WRITE, "storage.objects.update"]}
    with cloud.client("iam") as iam:
        iam.projects().roles().patch(name=role, body=more).execute()
    plan = plan_setup(Wish(store_url=store))
    words = [change.words for line in plan.prepared.lines for change in line.changes]
    assert words == [
        "versions on",
        "what machines write: 4 permissions",
        "machines reach each other, and no one else reaches them",
    ]
    plan.carry_out()
    assert plan_setup(Wish(store_url=store)).recorded


@pytest.mark.slow
def test_a_bucket_that_was_there_keeps_what_others_set(cloud: Control, store: str) -> None:
    bucket = store.split("/")[2]
    own = {"action": {"type": "Delete"}, "condition": {"age": 400, "matchesPrefix": ["mine/"]}}
    body = {
        "name": bucket,
        "location": "us-central1",
        "labels": {"team": "a"},
        "lifecycle": {"rule": [own]},
    }
    with cloud.client("storage") as storage:
        storage.buckets().insert(project=cloud.project, body=body).execute()
    plan = plan_setup(Wish(store_url=store, regions=("us-central1",)))
    (line,) = [each for each in plan.prepared.lines if each.what == "bucket"]
    assert [change.words for change in line.changes] == [
        "access by IAM alone, and nothing public",
        "versions on",
        "not kept a second time as soft-deleted",
        "what expires and what never does",
        "labelled as ours",
    ]
    plan.carry_out()
    told = cloud.buckets()[bucket]
    assert told["labels"] == {"team": "a", things.OWNER: told["labels"][things.OWNER]}
    assert own in told["lifecycle"]["rule"]
    assert len(told["lifecycle"]["rule"]) == 5
    assert plan_setup(Wish(store_url=store)).recorded


def test_teardown_leaves_nothing_but_the_bucket(cloud: Control, store: str) -> None:
    made(store, "us-central1", "us-east4", iap=True)
    plan_teardown(store).carry_out()
    assert left(cloud, store) == []
    assert store.split("/")[2] in cloud.buckets()
    assert written(store) is None
    removal = plan_teardown(store)
    assert removal.changes == 0


@pytest.mark.slow
def test_and_what_was_removed_can_be_made_again(cloud: Control, store: str) -> None:
    """Google keeps the ids of roles that were removed."""
    record = made(store, "us-central1")
    plan_teardown(store).carry_out()
    assert made(store, "us-central1") == record
    assert plan_setup(Wish(store_url=store)).recorded


@pytest.mark.slow
def test_teardown_with_the_bucket(cloud: Control, store: str) -> None:
    made(store, "us-central1")
    plan_teardown(store, delete_bucket=True).carry_out()
    assert left(cloud, store) == []
    assert store.split("/")[2] not in cloud.buckets()


@pytest.mark.slow
def test_a_bucket_that_holds_more_is_not_removed(cloud: Control, store: str) -> None:
    made(store, "us-central1")
    other = f"{store.rpartition('/')[0]}/other"
    made(other, "us-central1")
    with pytest.raises(InvalidValue, match="holds more than"):
        plan_teardown(store, delete_bucket=True)
    plan_teardown(store).carry_out()
    assert plan_setup(Wish(store_url=other)).recorded


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """Of which many projects' worth is made."""
    with running(tmp_path_factory.mktemp("google")) as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.0)
        yield control


@pytest.mark.slow
def test_cut_off_after_each_change_and_run_again(
    own: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in own.env.items():
        monkeypatch.setenv(variable, value)
    first = "gs://cut-first/tw"
    google = CutOff()
    record = plan_setup(Wish(store_url=first, regions=("us-central1",)), google).carry_out()
    assert google.changes > 10
    for after in range(1, google.changes + 1):
        store = f"gs://cut-{after}/tw"
        wish = Wish(store_url=store, regions=("us-central1",))
        with pytest.raises(Cut):
            plan_setup(wish, CutOff(after)).carry_out()
        made = plan_setup(wish).carry_out()
        assert set(made.zones) == set(record.zones)
        assert plan_setup(Wish(store_url=store)).recorded
        undoing = CutOff(after)
        try:
            plan_teardown(store, google=undoing).carry_out()
        except Cut:
            plan_teardown(store).carry_out()
        assert left(own, store) == []
