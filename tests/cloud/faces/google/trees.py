"""What a machine may know of itself: the tree that its metadata server tells."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.google.instances import Instance
from tests.cloud.faces.google.state import State
from tests.cloud.faces.google.tpu import Worker
from tests.cloud.world import Machine


def of_instance(state: State, machine: Machine) -> dict[str, Any]:
    made = machine.record
    assert isinstance(made, Instance)
    told = made.order.told
    attributes = {
        each["key"]: each.get("value", "") for each in told.get("metadata", {}).get("items", [])
    }
    number = state.found(made.project).number
    scheduling = told.get("scheduling", {})
    spot = made.order.market == "spot"
    return _tree(
        state,
        made.project,
        machine,
        name=made.name,
        id=int(made.id),
        attributes=attributes,
        emails=[
            (each.get("email", "default"), each.get("scopes", []))
            for each in told.get("serviceAccounts", [])
        ],
        machineType=f"projects/{number}/machineTypes/" + told["machineType"].rpartition("/")[2],
        tags=told.get("tags", {}).get("items", []),
        scheduling={
            "automaticRestart": "FALSE",
            "onHostMaintenance": scheduling.get("onHostMaintenance", "TERMINATE"),
            "preemptible": "TRUE" if spot else "FALSE",
            "provisioningModel": scheduling.get("provisioningModel", "STANDARD"),
        },
    )


def of_worker(state: State, machine: Machine) -> dict[str, Any]:
    worker = machine.record
    assert isinstance(worker, Worker)
    number = state.found(worker.slice.project).number
    return _tree(
        state,
        worker.slice.project,
        machine,
        name=machine.hostname,
        id=int(machine.id),
        attributes=worker.attributes(),
        emails=[(worker.slice.email, ["https://www.googleapis.com/auth/cloud-platform"])],
        machineType=f"projects/{number}/machineTypes/n1-standard-2",
        tags=worker.slice.told.get("tags", []),
        scheduling={"preemptible": "TRUE" if worker.slice.spot else "FALSE"},
    )


def email_of(state: State, machine: Machine) -> str:
    """The service account that a machine has; "" for none."""
    tree = of_worker if isinstance(machine.record, Worker) else of_instance
    accounts = tree(state, machine)["instance"]["serviceAccounts"]
    return str(accounts.get("default", {}).get("email", ""))


def _tree(
    state: State,
    project: str,
    machine: Machine,
    emails: list[tuple[str, list[str]]],
    **more: Any,
) -> dict[str, Any]:
    number = state.found(project).number
    accounts: dict[str, Any] = {}
    for email, scopes in emails:
        if email == "default":
            email = f"{number}-compute@developer.gserviceaccount.com"
        told = {"aliases": ["default"], "email": email, "scopes": scopes}
        accounts |= {"default": told, email: told}
    card = {
        "ip": machine.address,
        "mac": "42:01:0a:80:00:02",
        "network": f"projects/{number}/networks/default",
        "accessConfigs": [],
        "gateway": "10.128.0.1",
        "mtu": 1460,
        "subnetmask": "255.255.240.0",
        "dnsServers": ["169.254.169.254"],
    }
    return {
        "instance": {
            "hostname": machine.hostname.partition(" ")[0],
            "zone": f"projects/{number}/zones/{machine.zones[0]}",
            "image": "",
            "description": "",
            "cpuPlatform": "Intel Haswell",
            "preempted": "FALSE" if machine.taken_at is None else "TRUE",
            "maintenanceEvent": (
                "TERMINATE_ON_HOST_MAINTENANCE"
                if machine.warned_at is not None and machine.taken_at is None
                else "NONE"
            ),
            "networkInterfaces": [card],
            "serviceAccounts": accounts,
            "disks": [
                {"deviceName": "boot", "index": 0, "mode": "READ_WRITE", "type": "PERSISTENT"}
            ],
            **more,
        },
        "project": {"projectId": project, "numericProjectId": int(number), "attributes": {}},
        "oslogin": {"authenticate": {"sessions": {}}},
    }
