"""Teardown: removes what setup made for a store, by its name and its mark, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_names
from tradewind.providers.changes import Line
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.api import Compute
from tradewind.providers.gcp.footprint import KEY, bucket_of, name, owner_of
from tradewind.providers.gcp.setup import accounts, network, roles, things
from tradewind.providers.gcp.setup.accounts import BucketPolicy, Policy, ProjectPolicy
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.things import OWNER
from tradewind.providers.gcp.tpu.api import Tpu


def look(calls: Calls, store_url: str, there: bool) -> list[Line]:
    """In the order in which it can be removed. `there`: the bucket is."""
    _refuse_while_up(calls, store_url)
    lines = _networks(calls, store_url)
    email = things.email(store_url, calls.project)
    policies: list[tuple[str, Policy]] = [(calls.project, ProjectPolicy(calls))]
    if there:
        bucket = bucket_of(store_url)[0]
        policies.append((bucket, BucketPolicy(calls, bucket)))
    for place, policy in policies:
        change = partial(accounts.granted, calls.project, email, ())
        if change(policy.bindings()) != policy.bindings():
            line = Line("grants", place, "", True)
            line.add("remove those of our machines", partial(policy.edit, change))
            lines.append(line)
    return lines + _roles(calls, store_url) + _account(calls, email)


def _refuse_while_up(calls: Calls, store_url: str) -> None:
    owner, up = owner_of(store_url), []
    if "compute" not in calls.off:
        listed = Compute(calls.google, calls.project).instances(labels.of_owner(owner))
        up += [f"{each.name} ({each.zone_name}, {each.status})" for each in listed]
    if "tpu" not in calls.off:
        up += [
            f"{each.short} ({each.zone}, {each.state})"
            for each in Tpu(calls.google, calls.project).nodes()
            if each.labels.get(labels.OWNER) == owner
        ]
    if up:
        raise InvalidValue(
            f"machines of {store_url} are up: {format_names(up, 10)}",
            hint="tradewind ps and tradewind stop end runs; tradewind sweep ends what none claims",
        )


def _networks(calls: Calls, store_url: str) -> list[Line]:
    told = network.ours(calls, name(store_url), f"Machines of {store_url}")
    if not told:
        return []
    lines = []
    for rule in network.rules(calls, told):
        line = Line("firewall rule", rule["name"], "", True)
        path = f"global/firewalls/{rule['name']}"
        line.add("remove", _removing(calls, path, "compute.firewalls.delete"))
        lines.append(line)
    for region, subnet in sorted(network.subnets(calls, told)):
        line = Line("subnetwork", subnet, region, True)
        path = f"regions/{region}/subnetworks/{subnet}"
        line.add("remove", _removing(calls, path, "compute.subnetworks.delete"))
        lines.append(line)
    for called in sorted(told):
        line = Line("network", called, "", True)
        path = f"global/networks/{called}"
        line.add("remove", _removing(calls, path, "compute.networks.delete"))
        lines.append(line)
    return lines


def _removing(calls: Calls, path: str, permission: str) -> Any:
    return partial(calls.compute, "DELETE", path, permission)


def _roles(calls: Calls, store_url: str) -> list[Line]:
    lines = []
    for role in (*roles.machines(store_url), *roles.users(store_url)):
        path = f"/v1/projects/{calls.project}/roles/{role.id}"
        told = calls.get("iam", path, "iam.roles.get")
        if told is None or told.get("deleted"):
            continue
        line = Line("role", role.id, "", True)
        line.add("remove", partial(calls.send, "iam", "DELETE", path, "iam.roles.delete"))
        lines.append(line)
    return lines


def _account(calls: Calls, email: str) -> list[Line]:
    path = f"/v1/projects/{calls.project}/serviceAccounts/{quote(email)}"
    if calls.get("iam", path, "iam.serviceAccounts.get") is None:
        return []
    line = Line("service account", email, "", True)
    line.add("remove", partial(calls.send, "iam", "DELETE", path, "iam.serviceAccounts.delete"))
    return [line]


def look_at_bucket(calls: Calls, store_url: str, told: Any) -> Line:
    """Only a bucket that setup labelled, and in which nothing is but this store."""
    bucket, prefix = bucket_of(store_url)
    ours = things.mark(bucket)
    if (told.get("labels") or {}).get(OWNER) != ours:
        raise InvalidValue(
            f"the bucket {bucket} has no label {OWNER}={ours}: setup did not make it",
            hint="leave out --delete-bucket",
        )
    versions = _versions(calls, bucket)
    others = [key for key, _ in versions if not key.startswith(prefix)]
    others += [key for key, _ in versions if key.endswith(f"/{KEY}") and key != prefix + KEY]
    if others:
        raise InvalidValue(
            f"the bucket {bucket} holds more than {store_url}: {others[0]}, for example",
            hint="leave out --delete-bucket, or remove that first",
        )
    line = Line("bucket", bucket, str(told.get("location", "")).lower(), True, last=True)
    words = f"remove, and {len(versions):,} objects and versions in it"
    line.add(words, lambda: _remove_bucket(calls, bucket))
    return line


def _versions(calls: Calls, bucket: str) -> Sequence[tuple[str, str]]:
    listed = calls.items(
        "storage", f"/b/{bucket}/o", "storage.objects.list",
        {"versions": "true", "fields": "items(name,generation),nextPageToken"},
    )  # fmt: skip
    return [(each["name"], str(each["generation"])) for each in listed]


def _remove_bucket(calls: Calls, bucket: str) -> None:
    """Uploads that were never finished go with it."""
    for key, generation in _versions(calls, bucket):
        path = f"/b/{bucket}/o/{quote(key, safe='')}"
        query = {"generation": generation}
        calls.send("storage", "DELETE", path, "storage.objects.delete", query=query)
    calls.send("storage", "DELETE", f"/b/{bucket}", "storage.buckets.delete")
