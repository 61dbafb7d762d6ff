"""The same things as Terraform, to be kept and applied by those who set up accounts that way."""

from __future__ import annotations

from typing import Any

from tradewind.providers import hcl
from tradewind.providers.aws.setup.things import Private, Region, Rule, Things
from tradewind.providers.hcl import Block, Raw, mapped, text


def rendered(things: Things) -> str:
    blocks: list[Block] = [
        ("terraform", {"required_providers": {"aws": Raw('{ source = "hashicorp/aws" }')}})
    ]
    home = things.home
    every = dict.fromkeys([home, *(each.region for each in things.regions)])
    blocks += [('provider "aws"', {"alias": _slug(each), "region": each}) for each in every]
    blocks += _bucket(things)
    blocks += _role(things, home)
    for region in things.regions:
        blocks += _region(region)
    return (
        f"# What machines of {things.store_url} need. `tradewind setup aws` finds it afterwards,\n"
        "# and writes down that it is there.\n\n" + hcl.rendered(blocks)
    )


def _bucket(things: Things) -> list[Block]:
    wanted = things.bucket
    if wanted is None:
        return []
    here: dict[str, Any] = {"provider": _provider(wanted.region)}
    of = here | {"bucket": Raw("aws_s3_bucket.store.id")}

    def part(kind: str, fields: dict[str, Any]) -> Block:
        return f'resource "aws_s3_bucket_{kind}" "store"', of | fields

    by_default = {"sse_algorithm": wanted.encryption}
    return [
        (
            'resource "aws_s3_bucket" "store"',
            here | {"bucket": wanted.name, "tags": mapped(wanted.tags)},
        ),
        part("versioning", {"versioning_configuration": {"status": "Enabled"}}),
        part(
            "server_side_encryption_configuration",
            {"rule": {"apply_server_side_encryption_by_default": by_default}},
        ),
        part(
            "public_access_block",
            {
                "block_public_acls": True,
                "ignore_public_acls": True,
                "block_public_policy": True,
                "restrict_public_buckets": True,
            },
        ),
        part("ownership_controls", {"rule": {"object_ownership": wanted.ownership}}),
        part("policy", {"policy": _document(wanted.policy)}),
        part(
            "lifecycle_configuration",
            {
                "rule": [_rule(rule) for rule in wanted.rules],
                "depends_on": Raw("[aws_s3_bucket_versioning.store]"),
            },
        ),
    ]  # fmt: skip


def _rule(rule: Rule) -> dict[str, Any]:
    where: dict[str, Any] = {"prefix": rule.prefix}
    if rule.larger_than:
        where = {"and": where | {"object_size_greater_than": rule.larger_than}}
    made: dict[str, Any] = {"id": rule.id, "status": "Enabled", "filter": where}
    if rule.expire_days:
        made["expiration"] = {"days": rule.expire_days}
    if rule.markers:
        made["expiration"] = {"expired_object_delete_marker": True}
    if rule.noncurrent_days:
        made["noncurrent_version_expiration"] = {"noncurrent_days": rule.noncurrent_days}
    if rule.unfinished_days:
        made["abort_incomplete_multipart_upload"] = {"days_after_initiation": rule.unfinished_days}
    return made


def _role(things: Things, home: str) -> list[Block]:
    role = things.role
    here: dict[str, Any] = {"provider": _provider(home)}
    named, tags = Raw("aws_iam_role.machines.name"), mapped(role.tags)
    blocks: list[Block] = [
        (
            'resource "aws_iam_policy" "boundary"',
            here | {"name": role.boundary_name, "policy": _document(role.boundary), "tags": tags},
        ),
        (
            'resource "aws_iam_role" "machines"',
            here
            | {
                "name": role.name,
                "assume_role_policy": _document(role.trust),
                "permissions_boundary": Raw("aws_iam_policy.boundary.arn"),
                "tags": tags,
            },
        ),
        (
            'resource "aws_iam_role_policy" "machines"',
            here | {"name": role.policy_name, "role": named, "policy": _document(role.policy)},
        ),
        (
            'resource "aws_iam_instance_profile" "machines"',
            here | {"name": role.name, "role": named, "tags": tags},
        ),
    ]
    for number, arn in enumerate(role.managed):
        head = f'resource "aws_iam_role_policy_attachment" "machines_{number}"'
        blocks.append((head, here | {"role": named, "policy_arn": arn}))
    return blocks


def _region(wanted: Region) -> list[Block]:
    slug, here = _slug(wanted.region), {"provider": _provider(wanted.region)}
    if wanted.private:
        blocks, vpc = _private(wanted.private, slug, here), f"aws_vpc.{slug}.id"
    else:
        blocks = [(f'data "aws_vpc" "{slug}"', here | {"default": True})]
        vpc = f"data.aws_vpc.{slug}.id"
    group = wanted.group
    everything = {"from_port": 0, "to_port": 0, "protocol": "-1"}
    fields = {
        "name": group.name,
        "description": group.description,
        "vpc_id": Raw(vpc),
        "egress": everything | {"cidr_blocks": [group.world]},
        "tags": mapped(group.tags),
    }
    return [*blocks, (f'resource "aws_security_group" "{slug}"', here | fields)]


def _private(wanted: Private, slug: str, here: dict[str, Any]) -> list[Block]:
    zones, tags = f"data.aws_availability_zones.{slug}.zone_ids", mapped(wanted.tags)
    vpc = {"vpc_id": Raw(f"aws_vpc.{slug}.id")}
    usual = {"name": "zone-type", "values": ["availability-zone"]}
    return [
        (f'data "aws_availability_zones" "{slug}"', here | {"state": "available", "filter": usual}),
        (f'resource "aws_vpc" "{slug}"', here | {"cidr_block": wanted.cidr, "tags": tags}),
        (f'resource "aws_route_table" "{slug}"', here | vpc | {"tags": tags}),
        (
            f'resource "aws_subnet" "{slug}"',
            here
            | vpc
            | {
                "count": Raw(f"length({zones})"),
                "cidr_block": Raw(f"{text(list(wanted.subnets))}[count.index]"),
                "availability_zone_id": Raw(f"sort({zones})[count.index]"),
                "tags": tags,
            },
        ),
        (
            f'resource "aws_route_table_association" "{slug}"',
            here
            | {
                "count": Raw(f"length({zones})"),
                "subnet_id": Raw(f"aws_subnet.{slug}[count.index].id"),
                "route_table_id": Raw(f"aws_route_table.{slug}.id"),
            },
        ),
        (
            f'resource "aws_vpc_endpoint" "{slug}"',
            here
            | vpc
            | {
                "service_name": wanted.endpoint,
                "vpc_endpoint_type": "Gateway",
                "route_table_ids": Raw(f"[aws_route_table.{slug}.id]"),
                "tags": tags,
            },
        ),
    ]


def _slug(region: str) -> str:
    return region.replace("-", "_")


def _provider(region: str) -> Raw:
    return Raw(f"aws.{_slug(region)}")


def _document(policy: dict[str, Any]) -> Raw:
    return Raw(f"jsonencode({text(policy)})")
