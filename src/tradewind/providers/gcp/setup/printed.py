"""Setup as code or as roles, without asking Google anything."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.providers.gcp.credentials import PROJECT
from tradewind.providers.gcp.footprint import bucket_of, is_home
from tradewind.providers.gcp.setup import commands, fast, roles, terraform, things
from tradewind.providers.gcp.setup.roles import Role

PRINTS = {
    "terraform": "Terraform",
    "gcloud": "a script of gcloud commands",
    "role": "the custom roles for running Tradewind, and of machines",
    "setup-role": "the custom role for running setup",
}


def printed(kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> str:
    project, iap = settings.get("project") or _usual(), bool(settings.get("iap"))
    if kind == "role":
        return _json(_roles(store_url, project, iap=iap))
    if kind == "setup-role":
        setter = Role(
            id=f"{roles.base(store_url)}_setup",
            title="Tradewind setup",
            description=f"Setting up {store_url}",
            permissions=roles.SETTER,
        )
        return _json(spelled(setter))
    if not project:
        raise InvalidValue(
            "no project is named", hint="--project PROJECT, or `export GOOGLE_CLOUD_PROJECT=…`"
        )
    if not regions:
        raise InvalidValue("no region is named", hint="--region us-central1, for example")
    things.checked_project(project)
    named = things.checked_regions(regions)
    asked = fast.asked(str(settings.get("gpudirect") or ""))
    if asked.rdma and not asked.zones:
        raise InvalidValue(
            "which zones have RDMA only Google knows, and printing asks it nothing",
            hint="name them: --gpudirect rdma:us-central1-b; `gcloud compute network-profiles list`"
            " shows those that there are",
        )
    fast.checked_zones(asked.zones, named)
    wanted = fast.Wanted(cards=asked.cards, zones=asked.zones)
    found = things.described(store_url, project, named[0], named, iap=iap, wanted=wanted)
    return terraform.rendered(found) if kind == "terraform" else commands.rendered(found)


def _usual() -> str:
    return next((os.environ[name] for name in PROJECT if os.environ.get(name)), "")


def _roles(store_url: str, project: str, *, iap: bool) -> dict[str, Any]:
    """Setup makes them all. Those of machines it grants too; those of people an administrator
    grants, where `on` says."""
    conditions = {grant.role: grant for grant in roles.grants(store_url)}
    account = things.email(store_url, project or "PROJECT")
    whole = f"projects/{project or 'PROJECT'}"
    bucket = f"gs://{bucket_of(store_url)[0]}" if is_home(store_url) else ""
    places = [each for each in (whole, bucket, account) if each]
    people = [
        spelled(role) | {"on": where}
        for role, where in zip(roles.users(store_url), places, strict=True)
    ]
    if iap:
        people.append(
            {"role": "roles/iap.tunnelResourceAccessor", "on": whole}
            | {"includedPermissions": ["iap.tunnelInstances.accessViaIAP"]}
        )
    machines = []
    for role in roles.machines(store_url):
        grant = conditions[role.id]
        where = bucket if grant.on == "bucket" else whole
        machines.append(spelled(role) | {"on": where, "condition": grant.condition})
    return {"people": people, "machines": machines, "machines_are": account}


def spelled(role: Role) -> dict[str, Any]:
    """As IAM has it, and `gcloud iam roles create --file` takes it."""
    return {
        "name": role.id,
        "title": role.title,
        "description": role.description,
        "stage": "GA",
        "includedPermissions": list(role.permissions),
    }


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
