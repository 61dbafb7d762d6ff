"""Whether a machine could be launched in one region now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.aws.checks.permissions import found, permission_checks, todo
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, Network, setup_command
from tradewind.providers.aws.limits import images, quotas
from tradewind.providers.aws.limits.images import Image
from tradewind.providers.aws.troubles import explained

_FEW = 16
_QUOTAS = {
    ("g5.xlarge", "on_demand"): 8,
    ("g5.xlarge", "spot"): 8,
    ("p4d.24xlarge", "on_demand"): 192,
    ("p4d.24xlarge", "spot"): 96,
    ("p5.48xlarge", "spot"): 192,
}
"""Which are looked at, each by a type of its family, and what to ask for: a machine's vCPUs."""
_AWS_KEY = "alias/aws/ebs"
"""Every account has it, and whoever launches may use it."""


def region_checks(account: Account, footprint: Footprint, region: str, owner: str) -> list[Finding]:
    """What breaks one is what it has found: the others go on."""
    told: list[Finding] = []
    chosen: list[Image] = []

    def image() -> Iterator[Finding]:
        chosen.append(images.image(account, region, wanted=footprint.image))
        words = chosen[0].name or chosen[0].parameter
        yield found(OK, f"{region}: image {chosen[0].id}" + (f", {words}" if words else ""))

    network = footprint.regions[region]
    parts: dict[str, Callable[[], Iterator[Finding]]] = {
        "the image": image,
        "the network": lambda: _network(account, region, network, owner),
        "the disks' key": lambda: _disks(account, region),
        "permissions": lambda: permission_checks(account, footprint, region, owner, chosen),
        "quotas": lambda: quota_checks(account, region),
    }
    for name, check in parts.items():
        try:
            told.extend(check())
        except TradewindError as error:
            denied = getattr(error, "kind", "") == "not_allowed"
            again = "allow it to the user or role that this is" if denied else "run it again"
            level = BROKEN if name == "the image" else WARNING
            what = f"{region}: {name} could not be looked at"
            if name == "the image":
                what = f"{region}: there is no image to start from"
            told.append(found(level, what, why=error.message, todo=todo(error, again)))
    return told


def _network(account: Account, region: str, network: Network, owner: str) -> Iterator[Finding]:
    ec2 = account.client("ec2", region)
    with explained(f"looking at the network in {region}"):
        # By filters: naming one that is gone would be an error, and tell nothing of the others.
        groups = ec2.describe_security_groups(
            Filters=[{"Name": "group-id", "Values": [network.security_group]}]
        )["SecurityGroups"]
        ids = list(network.subnets.values())
        subnets = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": ids}])["Subnets"]
    there = {it["SubnetId"]: it for it in subnets}
    gone = [f"subnet {name}" for name in ids if name not in there]
    if not groups:
        gone.insert(0, f"security group {network.security_group}")
    if gone:
        yield found(
            BROKEN,
            f"{region}: {', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not there",
            why="no machine can be launched in it",
            todo=setup_command(owner, region),
        )
    open_to = sorted({source for group in groups for source in _open_to(group)})
    if open_to:
        yield found(
            WARNING,
            f"{region}: {network.security_group} lets {', '.join(open_to)} in",
            why="nothing of ours listens to anybody but the machines of one leg",
            todo="take the rule away: aws ec2 revoke-security-group-ingress"
            f" --region {region} --group-id {network.security_group} …",
        )
    itself = any(_admits_itself(group) for group in groups)
    if itself:
        yield found(
            WARNING,
            f"{region}: {network.security_group} lets every machine of the store in",
            why="earlier versions made it so: the job of one run reaches the machines of another",
            todo=f"when no run with several machines is up: {setup_command(owner, region)}",
        )
    free = {name: it.get("AvailableIpAddressCount", _FEW) for name, it in there.items()}
    few = {name: left for name, left in free.items() if left < _FEW}
    if few:
        yield found(
            WARNING if any(few.values()) else BROKEN,
            f"{region}: few addresses are left: "
            + ", ".join(f"{left} in {name}" for name, left in sorted(few.items())),
            why="a launch for which there is none is refused",
            todo="end what uses them, or set up larger subnets",
        )
    if not (gone or open_to or itself or few):
        many = f"{len(ids)} subnets" if len(ids) != 1 else "1 subnet"
        yield found(OK, f"{region}: {many} with free addresses, and no one is let in")


def _disks(account: Account, region: str) -> Iterator[Finding]:
    """A key of the account's own must allow itself to who launches: EC2 takes the launch, and ends
    the machine before it begins."""
    try:
        with explained(f"asking for the key of disks in {region}"):
            told = account.client("ec2", region).get_ebs_default_kms_key_id()
    except SourceFailed:
        return  # it is about a mishap that few can have
    key = str(told.get("KmsKeyId") or _AWS_KEY)
    if not key.endswith(_AWS_KEY):
        yield found(
            WARNING,
            f"{region}: disks are encrypted by {key}, a key of the account's own",
            why="where it may not be used by who launches, machines end before they begin"
            " (Client.InternalError)",
            todo="allow kms:CreateGrant, kms:Decrypt, kms:DescribeKey and"
            " kms:GenerateDataKeyWithoutPlaintext on it to the user or role that this is",
            measured={"key": key},
        )


def _open_to(group: dict[str, Any]) -> Iterator[str]:
    for rule in group.get("IpPermissions", []):
        yield from (it["CidrIp"] for it in rule.get("IpRanges", []))
        yield from (it["CidrIpv6"] for it in rule.get("Ipv6Ranges", []))
        yield from (it["PrefixListId"] for it in rule.get("PrefixListIds", []))
        for pair in rule.get("UserIdGroupPairs", []):
            if pair.get("GroupId") != group["GroupId"]:
                yield str(pair.get("GroupId"))


def _admits_itself(group: dict[str, Any]) -> bool:
    pairs = [p for rule in group.get("IpPermissions", []) for p in rule.get("UserIdGroupPairs", [])]
    return any(pair.get("GroupId") == group["GroupId"] for pair in pairs)


def quota_checks(account: Account, region: str) -> Iterator[Finding]:
    told = quotas.quotas(account, region, list(_QUOTAS))
    wanted = {quotas.governing(*each): vcpus for each, vcpus in _QUOTAS.items()}
    unknown = [quota for quota in told.values() if quota.limit is None]
    none = [(quota, wanted[key]) for key, quota in told.items() if quota.limit == 0]
    some = [quota for quota in told.values() if quota.limit]
    measured = {quota.code: {"limit": quota.limit, "used": quota.used} for quota in told.values()}
    if some:
        words = "; ".join(f"{it.name} {it.limit}" + _used(it.used) for it in some)
        yield found(OK, f"{region}: vCPUs: {words}", measured=measured)
    if none:
        first, vcpus = none[0]
        more = ", and so for the others" if len(none) > 1 else ""
        yield found(
            WARNING,
            f"{region}: no vCPUs at all: "
            + "; ".join(f"{quota.name} ({quota.code})" for quota, _ in none),
            why="such machines are left out of what a run may use there",
            todo=f"{first.raising(vcpus)}{more}, or {first.link}",
            measured=measured,
        )
    if unknown:
        yield found(
            WARNING,
            f"{region}: quotas could not be read",
            why=f"a launch that must fail is attempted all the same: {unknown[0].trouble}",
            todo="allow servicequotas:GetServiceQuota and servicequotas:ListServiceQuotas",
        )


def _used(used: int | None) -> str:
    return f" ({used} in use)" if used else ""
