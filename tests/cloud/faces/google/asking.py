"""What tests of Google's face ask for, with Google's own client."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.google.control import Control
from tests.eventually import eventually

ZONE = "us-central1-a"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"
ALL = ["https://www.googleapis.com/auth/cloud-platform"]


def properties(**more: Any) -> dict[str, Any]:
    return {
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "100"},
            }
        ],
        "networkInterfaces": [{"network": "global/networks/default"}],
        "serviceAccounts": [{"email": "default", "scopes": ALL}],
        **more,
    }


def instance(name: str, kind: str = "e2-standard-2", zone: str = ZONE, **more: Any) -> Any:
    return {"name": name, "machineType": f"zones/{zone}/machineTypes/{kind}", **properties(**more)}


def spot(**more: Any) -> dict[str, Any]:
    return {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", **more}


def script(text: str) -> dict[str, Any]:
    return {"items": [{"key": "startup-script", "value": text}]}


def insert(cloud: Control, body: Any, zone: str = ZONE, **more: Any) -> Any:
    asked = cloud.client("compute").instances()
    return asked.insert(project=cloud.project, zone=zone, body=body, **more).execute()


def done(cloud: Control, operation: Any) -> Any:
    """As it ends, by asking the server to wait."""
    zone = operation["zone"].rpartition("/")[2]
    asked = cloud.client("compute").zoneOperations()
    return asked.wait(project=cloud.project, zone=zone, operation=operation["name"]).execute()


def codes(operation: Any) -> list[str]:
    return [each["code"] for each in operation.get("error", {}).get("errors", [])]


def listed(cloud: Control, filter: str = "") -> list[Any]:  # noqa: A002
    asked = cloud.client("compute").instances()
    told = asked.aggregatedList(project=cloud.project, filter=filter).execute()["items"]
    return [one for each in told.values() for one in each.get("instances", [])]


def get(cloud: Control, name: str, zone: str = ZONE) -> Any:
    asked = cloud.client("compute").instances()
    return asked.get(project=cloud.project, zone=zone, instance=name).execute()


def delete(cloud: Control, name: str, zone: str = ZONE) -> Any:
    asked = cloud.client("compute").instances()
    return asked.delete(project=cloud.project, zone=zone, instance=name).execute()


def running(cloud: Control, body: Any, zone: str = ZONE) -> Any:
    """Made, and running."""
    assert "error" not in done(cloud, insert(cloud, body, zone))
    return eventually(
        lambda: told if (told := get(cloud, body["name"], zone))["status"] == "RUNNING" else None
    )


def row(cloud: Control, name: str) -> Any:
    return [each for each in cloud.bill()["machines"] if each["name"] == name][-1]
