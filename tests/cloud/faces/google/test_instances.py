"""Compute Engine's instances, asked for with Google's own client."""

from __future__ import annotations

from typing import Any

import pytest
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from tests.cloud.faces.google.asking import (
    ZONE,
    codes,
    delete,
    done,
    get,
    insert,
    instance,
    listed,
    properties,
    row,
    running,
    spot,
)
from tests.cloud.faces.google.control import Control
from tests.eventually import eventually

REQUEST = "11111111-1111-4111-8111-111111111111"


def bulk(cloud: Control, names: list[str], **more: Any) -> Any:
    body: dict[str, Any] = {
        "count": str(len(names)),
        "minCount": str(len(names)),
        "perInstanceProperties": {each: {} for each in names},
        "instanceProperties": {"machineType": "g2-standard-4", **properties(**more)},
    }
    body["instanceProperties"].setdefault("scheduling", spot())
    asked = cloud.client("compute").instances()
    return asked.bulkInsert(project=cloud.project, zone=ZONE, body=body).execute()


def test_from_insert_to_bill(cloud: Control) -> None:
    told = running(cloud, instance("whole", labels={"owner": "whole"}))
    cloud.advance(1000)
    assert [each["name"] for each in listed(cloud, "labels.owner=whole")] == ["whole"]
    assert listed(cloud, "labels.owner=other") == []
    ended = done(cloud, delete(cloud, "whole"))
    assert "error" not in ended
    assert listed(cloud, "labels.owner=whole") == []
    with pytest.raises(HttpError, match="was not found"):
        get(cloud, "whole")
    paid = row(cloud, "whole")
    assert 1000 <= paid["seconds"] < 1030
    assert paid["usd"] == pytest.approx(paid["seconds"] * 0.1 / 3600)  # two invented CPUs
    assert told["id"] == paid["id"]
    (disk,) = [each for each in cloud.bill()["volumes"] if each["machine"] == paid["id"]]
    assert disk["gone"] is not None
    assert paid["id"] not in cloud.left()


def test_the_same_request_makes_one(cloud: Control) -> None:
    body = instance("once")
    first = insert(cloud, body, requestId=REQUEST)
    assert insert(cloud, body, requestId=REQUEST)["name"] == first["name"]
    with pytest.raises(HttpError, match="already exists") as told:
        insert(cloud, body)
    assert told.value.resp.status == 409
    with pytest.raises(HttpError, match="UUID"):
        insert(cloud, body, requestId="again")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"machineType": "zones/us-central1-a/machineTypes/z9"}, "'z9' does not exist"),
        ({"machineType": "e2-standard-2"}, "malformed"),
        ({"labels": {"Run": "x"}}, "Label key"),
        ({"labels": {"run": "x" * 64}}, "Label value"),
        ({"disks": []}, "boot disk"),
        ({"networkInterfaces": [{"network": "global/networks/none"}]}, "networks/none' was not"),
        ({"serviceAccounts": [{"email": "none@x.com"}]}, "none@x.com"),
        ({"scheduling": {"maxRunDuration": {"seconds": "60"}}}, "termination action"),
        ({"scheduling": {"provisioningModel": "FLEX_START"}}, "FLEX_START VM must be TERMINATE"),
        ({"name": "Upper"}, "Must be a match of regex"),
    ],
)
def test_what_is_refused_at_once(cloud: Control, change: Any, words: str) -> None:
    with pytest.raises(HttpError, match=words):
        insert(cloud, {**instance("refused"), **change})
    assert listed(cloud, "name=refused") == []


def test_a_zone_without_room_says_so_late(cloud: Control) -> None:
    cloud.capacity(0, zone=ZONE, kind="a3-highgpu-8g")
    kept = {"onHostMaintenance": "TERMINATE"}
    begun = insert(cloud, instance("full", "a3-highgpu-8g", scheduling=kept))
    ended = done(cloud, begun)
    assert codes(ended) == ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]
    assert ended["httpErrorStatusCode"] == 503
    assert listed(cloud, "name=full") == []
    assert [each for each in cloud.bill()["machines"] if each["name"] == "full"] == []
    other = f"{ZONE[:-1]}b"
    assert codes(done(cloud, insert(cloud, instance("full", "e2-standard-2", other), other))) == []


def test_a_gang_is_had_whole_or_not_at_all(cloud: Control) -> None:
    cloud.capacity(3, zone=ZONE, kind="g2-standard-4", market="spot")
    first = done(cloud, bulk(cloud, ["gang-0", "gang-1"]))
    assert "error" not in first
    second = done(cloud, bulk(cloud, ["more-0", "more-1"]))
    assert codes(second)[0] == "VM_MIN_COUNT_NOT_REACHED"
    assert codes(second)[1] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    cloud.dials(bulk_says_why=False)
    assert codes(done(cloud, bulk(cloud, ["more-0", "more-1"]))) == ["VM_MIN_COUNT_NOT_REACHED"]
    assert sorted(e["name"] for e in listed(cloud, "name eq '(gang|more)-.*'")) == [
        "gang-0",
        "gang-1",
    ]
    assert codes(done(cloud, bulk(cloud, ["gang-1", "gang-2"]))) == ["RESOURCE_ALREADY_EXISTS"]
    cloud.capacity(None, zone=ZONE, kind="g2-standard-4", market="spot")


def test_quotas(cloud: Control) -> None:
    cloud.quota("PREEMPTIBLE_NVIDIA_L4_GPUS", 1, "us-central1")
    told = codes(done(cloud, bulk(cloud, ["quota-0", "quota-1"])))
    assert told[1] == "QUOTA_EXCEEDED"
    asked = cloud.client("compute").regions()
    region = asked.get(project=cloud.project, region="us-central1").execute()
    (quota,) = [q for q in region["quotas"] if q["metric"] == "PREEMPTIBLE_NVIDIA_L4_GPUS"]
    assert (quota["limit"], quota["usage"]) == (1, 0)
    cloud.quota("PREEMPTIBLE_NVIDIA_L4_GPUS", 1000, "us-central1")
    cloud.quota("GPUS_ALL_REGIONS", 0)
    (ended,) = [done(cloud, bulk(cloud, ["quota-2"]))]
    assert "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally." in str(ended["error"])
    cloud.quota("GPUS_ALL_REGIONS", 1000)


def test_gpus_are_attached_to_n1(cloud: Control) -> None:
    gpu = {"acceleratorType": f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-t4"}
    body = instance(
        "gpu",
        "n1-standard-8",
        guestAccelerators=[{**gpu, "acceleratorCount": 2}],
        scheduling=spot(),
    )
    running(cloud, body)
    assert row(cloud, "gpu")["type"] == "n1-standard-8+2xT4"
    with pytest.raises(HttpError, match="live migration"):
        insert(cloud, {**body, "name": "other", "scheduling": {}})


def test_one_that_is_taken(cloud: Control) -> None:
    running(cloud, instance("taken", scheduling=spot()))
    cloud.advance(600)
    cloud.interrupt("taken")
    (event,) = cloud.operations("compute.instances.preempted")
    assert (event["status"], event["user"]) == ("RUNNING", "system")
    assert get(cloud, "taken")["status"] == "RUNNING"
    cloud.advance(30)
    eventually(lambda: listed(cloud, "name=taken") == [])
    asked = cloud.client("compute").globalOperations()
    told = asked.aggregatedList(
        project=cloud.project,
        filter='operationType="compute.instances.preempted" AND targetLink eq ".*/taken"',
    ).execute()["items"]
    (event,) = [one for each in told.values() for one in each.get("operations", [])]
    assert event["status"] == "DONE"
    assert row(cloud, "taken")["seconds"] == pytest.approx(630, abs=25)
    assert "taken" not in str(cloud.left())


def test_one_whose_time_is_over(cloud: Control) -> None:
    limit = {"maxRunDuration": {"seconds": "3600"}, "instanceTerminationAction": "DELETE"}
    told = running(cloud, instance("limited", scheduling=limit))
    assert told["resourceStatus"]["scheduling"]["terminationTimestamp"]
    cloud.advance(3601)
    eventually(lambda: listed(cloud, "name=limited") == [])
    (event,) = cloud.operations("compute.instances.deferredDelete")
    assert event["targetLink"].endswith("/limited")


def test_flex_start_waits_for_room(cloud: Control) -> None:
    cloud.capacity(0, zone=ZONE, kind="a2-highgpu-1g", market="flex-start")
    scheduling = {
        "provisioningModel": "FLEX_START",
        "onHostMaintenance": "TERMINATE",
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": "86400"},
    }
    body = instance(
        "flex",
        "a2-highgpu-1g",
        scheduling=scheduling,
        reservationAffinity={"consumeReservationType": "NO_RESERVATION"},
        params={"requestValidForDuration": {"seconds": "7200"}},
    )
    insert(cloud, body)
    assert get(cloud, "flex")["status"] == "PENDING"
    cloud.advance(60)
    assert get(cloud, "flex")["status"] == "PENDING"
    assert not [each for each in cloud.bill()["machines"] if each["name"] == "flex"]
    cloud.capacity(None, zone=ZONE, kind="a2-highgpu-1g", market="flex-start")
    eventually(lambda: get(cloud, "flex")["status"] == "RUNNING")
    assert row(cloud, "flex")["market"] == "flex-start"


def test_pages_and_late_lists(cloud: Control) -> None:
    for number in range(3):
        running(cloud, instance(f"page-{number}", labels={"page": "yes"}))
    asked = cloud.client("compute").instances()
    query = {"project": cloud.project, "zone": ZONE, "filter": "labels.page=yes", "maxResults": 2}
    first = asked.list(**query).execute()
    second = asked.list(**query, pageToken=first["nextPageToken"]).execute()
    assert (len(first["items"]), len(second["items"])) == (2, 1)
    assert "nextPageToken" not in second
    cloud.dials(lag_s=50)
    insert(cloud, instance("late", labels={"page": "late"}))
    assert listed(cloud, "labels.page=late") == []
    cloud.advance(50)
    assert len(listed(cloud, "labels.page=late")) == 1
    cloud.unreachable("us-central1-b")
    told = asked.aggregatedList(project=cloud.project).execute()
    assert told["items"]["zones/us-central1-b"]["warning"]["code"] == "UNREACHABLE"


def test_faults_and_late_ones(cloud: Control) -> None:
    cloud.fail("compute.instances.insert", "rateLimitExceeded", message="Rate Limit Exceeded")
    with pytest.raises(HttpError, match="Rate Limit") as told:
        insert(cloud, instance("fault"))
    assert told.value.resp.status == 403
    cloud.fail_late("compute.instances.insert", "INTERNAL_ERROR")
    assert codes(done(cloud, insert(cloud, instance("fault")))) == ["INTERNAL_ERROR"]
    assert codes(done(cloud, insert(cloud, instance("fault")))) == []
