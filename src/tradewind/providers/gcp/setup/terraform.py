"""The same things as Terraform, to be kept and applied by those who set up projects that way."""

from __future__ import annotations

from typing import Any

from tradewind.providers import hcl
from tradewind.providers.gcp.setup.nets import Firewall, Network
from tradewind.providers.gcp.setup.network import profile
from tradewind.providers.gcp.setup.things import Bucket, Rule, Things
from tradewind.providers.hcl import Block, Raw, mapped


def rendered(things: Things) -> str:
    blocks: list[Block] = [
        ("terraform", {"required_providers": {"google": Raw('{ source = "hashicorp/google" }')}}),
        ('provider "google"', {"project": things.project}),
    ]
    blocks += [_service(each) for each in things.services]
    if things.bucket is not None:
        blocks.append(_bucket(things.bucket))
    blocks += _accounts(things)
    for network in things.networks:
        blocks += _network(network, things.project)
    return (
        f"# What machines of {things.store_url} need. `tradewind setup gcp` finds it afterwards,\n"
        "# and writes down that it is there.\n\n" + hcl.rendered(blocks)
    )


def _service(service: str) -> Block:
    """Others may use it: it stays when this is destroyed."""
    head = f'resource "google_project_service" "{_slug(service)}"'
    return head, {"service": service, "disable_on_destroy": False}


def _needs(service: str) -> dict[str, Any]:
    return {"depends_on": Raw(f"[google_project_service.{_slug(f'{service}.googleapis.com')}]")}


def _bucket(wanted: Bucket) -> Block:
    return 'resource "google_storage_bucket" "store"', {
        "name": wanted.name,
        "location": wanted.location,
        "uniform_bucket_level_access": True,
        "public_access_prevention": "enforced",
        "labels": mapped(wanted.labels),
        "versioning": {"enabled": True},
        "soft_delete_policy": {"retention_duration_seconds": 0},
        "lifecycle_rule": [_rule(rule) for rule in wanted.rules],
    } | _needs("storage")


def _rule(rule: Rule) -> dict[str, Any]:
    when: dict[str, Any] = {}
    if rule.age_days:
        when["age"] = rule.age_days
    if rule.noncurrent_days:
        when["days_since_noncurrent_time"] = rule.noncurrent_days
    if rule.prefix:
        when["matches_prefix"] = [rule.prefix]
    if rule.suffix:
        when["matches_suffix"] = [rule.suffix]
    return {"action": {"type": rule.action}, "condition": when}


def _accounts(things: Things) -> list[Block]:
    account = things.account
    blocks: list[Block] = [
        (
            'resource "google_service_account" "machines"',
            {
                "account_id": account.id,
                "display_name": account.display,
                "description": account.description,
            }
            | _needs("iam"),
        )
    ]
    for role in things.roles:
        fields = {
            "role_id": role.id,
            "title": role.title,
            "description": role.description,
            "permissions": list(role.permissions),
        }
        head = f'resource "google_project_iam_custom_role" "{role.id}"'
        blocks.append((head, fields | _needs("iam")))
    for grant in things.grants:
        kind = "storage_bucket" if grant.on == "bucket" else "project"
        where: dict[str, Any] = (
            {"bucket": Raw("google_storage_bucket.store.name")}
            if grant.on == "bucket"
            else {"project": things.project}
        )
        fields = where | {
            "role": Raw(f"google_project_iam_custom_role.{grant.role}.name"),
            "member": Raw("google_service_account.machines.member"),
            "condition": {"title": grant.title, "expression": grant.condition},
        }
        blocks.append((f'resource "google_{kind}_iam_member" "{grant.role}"', fields))
    return blocks


def _network(wanted: Network, project: str) -> list[Block]:
    own = _slug(wanted.suffix) or "machines"
    fields: dict[str, Any] = {
        "name": wanted.name,
        "description": wanted.description,
        "auto_create_subnetworks": False,
    }
    if wanted.mtu:
        fields["mtu"] = wanted.mtu
    if wanted.profile:
        fields["network_profile"] = profile(project, wanted)
    else:
        fields["routing_mode"] = "REGIONAL"
    inside = {"network": Raw(f"google_compute_network.{own}.id")}
    blocks: list[Block] = [
        (f'resource "google_compute_network" "{own}"', fields | _needs("compute"))
    ]
    for subnet in wanted.subnets:
        # Of the store's own network and of those like it the region tells them apart.
        last = subnet.name.removeprefix(wanted.name).strip("-") or subnet.region
        called = _slug("-".join(filter(None, (wanted.suffix, last))))
        reaching = {"private_ip_google_access": True} if subnet.private_access else {}
        blocks.append(
            (
                f'resource "google_compute_subnetwork" "{called}"',
                {
                    "name": subnet.name,
                    "description": subnet.description,
                    "region": subnet.region,
                    **inside,
                    "ip_cidr_range": subnet.range,
                    **reaching,
                },
            )
        )
    for rule in wanted.firewalls:
        called = _slug("-".join(filter(None, (wanted.suffix, rule.name.rpartition("-")[2]))))
        blocks.append((f'resource "google_compute_firewall" "{called}"', _firewall(rule) | inside))
    return blocks


def _firewall(rule: Firewall) -> dict[str, Any]:
    allowed: dict[str, Any] = {"protocol": rule.protocol}
    if rule.ports:
        allowed["ports"] = list(rule.ports)
    return {
        "name": rule.name,
        "description": rule.description,
        "direction": "INGRESS",
        "source_ranges": list(rule.sources),
        "allow": allowed,
    }


def _slug(name: str) -> str:
    return name.removesuffix(".googleapis.com").replace("-", "_")
