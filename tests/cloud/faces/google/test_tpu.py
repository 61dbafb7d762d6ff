"""TPU slices and queued resources, asked for with Google's own client."""

from __future__ import annotations

from typing import Any

import pytest
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from tests.cloud.faces.google.control import Control
from tests.cloud.faces.google.tputypes import found
from tests.eventually import eventually

PARENT = f"projects/{Control.project}/locations/us-central1-a"
NODE = {"acceleratorType": "v5litepod-16", "runtimeVersion": "v2-alpha-tpuv5-lite"}
KIND = "tpu-v5litepod-16"


def places(cloud: Control) -> Any:
    return cloud.client("tpu", "v2").projects().locations()


def create(cloud: Control, name: str, **more: Any) -> Any:
    body = {**NODE, **more}
    operation = places(cloud).nodes().create(parent=PARENT, nodeId=name, body=body).execute()
    asked = places(cloud).operations()
    return eventually(
        lambda: told if (told := asked.get(name=operation["name"]).execute())["done"] else None
    )


def state(cloud: Control, name: str) -> str:
    return str(places(cloud).nodes().get(name=f"{PARENT}/nodes/{name}").execute()["state"])


@pytest.mark.parametrize(
    ("name", "chips", "hosts", "topology"),
    [
        ("v5litepod-1", 1, 1, "1x1"),
        ("v5litepod-8", 8, 1, "2x4"),
        ("v5litepod-16", 16, 4, "4x4"),
        ("v6e-256", 256, 64, "16x16"),
        ("v4-8", 4, 1, "2x2x1"),
        ("v5p-16", 8, 2, "2x2x2"),
        ("v3-32", 16, 4, "4x4"),
    ],
)
def test_types(name: str, chips: int, hosts: int, topology: str) -> None:
    kind = found(name)
    assert kind is not None
    assert (kind.chips, kind.hosts, kind.topology) == (chips, hosts, topology)
    assert found("v5litepod-17") is None


def test_a_slice_of_four_workers(cloud: Control) -> None:
    cloud.on_demand_price(KIND, 20.0)
    told = create(cloud, "slice", labels={"run": "r"})["response"]
    assert told["state"] == "READY"
    assert len(told["networkEndpoints"]) == 4
    cloud.advance(3600)
    places(cloud).nodes().delete(name=f"{PARENT}/nodes/slice").execute()
    eventually(lambda: places(cloud).nodes().list(parent=PARENT).execute()["nodes"] == [])
    rows = [e for e in cloud.bill()["machines"] if e["name"].startswith("slice-w-")]
    assert len(rows) == 4
    assert sum(each["usd"] for each in rows) == pytest.approx(20.0, rel=0.01)


def test_a_spot_slice_is_taken_whole(cloud: Control) -> None:
    create(cloud, "taken", schedulingConfig={"spot": True})
    cloud.interrupt("taken-w-2", notice_s=0)
    eventually(lambda: state(cloud, "taken") == "PREEMPTED")
    rows = [e for e in cloud.bill()["machines"] if e["name"].startswith("taken-w-")]
    assert {each["ended_by"] for each in rows} == {"spot"}
    places(cloud).nodes().delete(name=f"{PARENT}/nodes/taken").execute()
    eventually(lambda: places(cloud).nodes().list(parent=PARENT).execute()["nodes"] == [])


def test_no_room_and_no_quota(cloud: Control) -> None:
    cloud.capacity(0, kind=KIND)
    told = create(cloud, "full")
    assert told["error"]["code"] == 8
    assert "no more capacity in the zone" in told["error"]["message"]
    cloud.capacity(None, kind=KIND)
    name = "TPUV5sLitepodPerProjectPerZoneForTPUAPI"
    cloud.quota(name, 8, "us-central1")
    with pytest.raises(HttpError, match=name) as refused:
        create(cloud, "full")
    assert refused.value.resp.status == 429
    cloud.quota(name, 100_000, "us-central1")
    with pytest.raises(HttpError, match="Runtime version"):
        create(cloud, "full", runtimeVersion="tpu-vm-base")


def test_a_queued_resource_waits(cloud: Control) -> None:
    cloud.capacity(0, kind=KIND, market="spot")
    queue = places(cloud).queuedResources()
    spec = {"parent": PARENT, "nodeId": "later", "node": NODE}
    body = {"tpu": {"nodeSpec": [spec]}, "spot": {}}
    queue.create(parent=PARENT, queuedResourceId="waits", body=body).execute()
    name = f"{PARENT}/queuedResources/waits"

    def queued() -> str:
        return str(queue.get(name=name).execute()["state"]["state"])

    cloud.advance(60)
    assert queued() == "WAITING_FOR_RESOURCES"
    cloud.capacity(None, kind=KIND, market="spot")
    eventually(lambda: queued() == "ACTIVE")
    assert state(cloud, "later") == "READY"
    with pytest.raises(HttpError, match="has nodes"):
        queue.delete(name=name).execute()
    cloud.interrupt("later-w-0", notice_s=0)
    eventually(lambda: queued() == "SUSPENDED")
    queue.delete(name=name, force=True).execute()
    eventually(lambda: queue.list(parent=PARENT).execute()["queuedResources"] == [])
    assert places(cloud).nodes().list(parent=PARENT).execute()["nodes"] == []
