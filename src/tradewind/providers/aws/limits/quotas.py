"""How many vCPUs an account may have at once: which quota it is, its value, and what is in use.

EC2 counts vCPUs by family of types and by market, in each region for itself. Codes are from AWS's
list of EC2's quotas. Spot machines of P6 have no row there: such a quota is looked for by its name
among all that the region has, and if there is none, nothing is known, which stops nobody.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from tradewind.base.errors import TradewindError
from tradewind.providers import remembered
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import zones
from tradewind.providers.aws.troubles import code_of, explained

_FRESH_S = 300.0
"""An increase that was granted should be seen soon."""


class Family(NamedTuple):
    """Types that are counted together."""

    on_demand: str
    """The quota's code; "": not in AWS's list."""
    spot: str
    on_demand_name: str
    spot_name: str


def _family(name: str, on_demand: str, spot: str) -> Family:
    return Family(
        on_demand, spot, f"Running On-Demand {name} instances", f"All {name} Spot Instance Requests"
    )


_STANDARD = _family("Standard (A, C, D, H, I, M, R, T, Z)", "L-1216C47A", "L-34B43A08")
_G = _family("G and VT", "L-DB2E81BA", "L-3819A6DF")
_P = "Running On-Demand P instances"
_OLD_P = Family("L-417A185B", "L-7212CCBC", _P, "All P4, P3 and P2 Spot Instance Requests")

FAMILIES = {
    "g": _G,
    "gr": _G,
    "vt": _G,
    "p2": _OLD_P,
    "p3": _OLD_P,
    "p4": _OLD_P,
    "p5": Family("L-417A185B", "L-C4BD4855", _P, "All P5 Spot Instance Requests"),
    "p": Family("L-417A185B", "", _P, "All P{number} Spot Instance Requests"),
    "trn": _family("Trn", "L-2C3B7624", "L-6B0D517C"),
    "inf": _family("Inf", "L-1945791B", "L-B5D1601B"),
    "dl": _family("DL", "L-6E869C2A", "L-85EED4F7"),
    "f": _family("F", "L-74FC7D96", "L-88CF9481"),
    "x": _family("X", "L-7295265B", "L-E3A00192"),
    "hpc": Family("L-F7808C92", "", "Running On-Demand HPC instances", ""),
    "u": Family("L-43DA4232", "", "Running On-Demand High Memory instances", ""),
    **dict.fromkeys("acdhimrtz", _STANDARD),
    **dict.fromkeys(("im", "is"), _STANDARD),
}
"""By the letters that a type's name begins with, and its number where that matters."""


class Key(NamedTuple):
    """Which quota."""

    code: str
    name: str


class Quota(Struct, frozen=True, kw_only=True):
    """Of one region, as it is now."""

    region: str
    code: str
    name: str
    limit: int | None
    """vCPUs; None: it could not be learned, and stops nobody."""
    used: int | None
    trouble: str = ""
    """Why it could not."""

    @property
    def free(self) -> int | None:
        """None: unknown."""
        return None if self.limit is None else max(self.limit - (self.used or 0), 0)

    @property
    def link(self) -> str:
        return link(self.region, self.code)

    def raising(self, least: int) -> str:
        """The command that asks for it."""
        return raising(self.region, self.code, least)


def governing(instance_type: str, market: str) -> Key | None:
    """None: we know of no quota for it. What is reserved is bought as on-demand is."""
    found = re.match(r"([a-z]+)(\d*)", instance_type)
    if not found:
        return None
    letters, number = found[1], found[2]
    family = FAMILIES.get(letters + number) or FAMILIES.get(letters)
    if not family:
        return None
    if market == "spot":
        name = family.spot_name.format(number=number)
        return Key(family.spot, name) if name else None
    return Key(family.on_demand, family.on_demand_name)


def link(region: str, code: str) -> str:
    place = f"https://{region}.console.aws.amazon.com/servicequotas/home/services/ec2/quotas"
    return f"{place}/{code}" if code else place


def raising(region: str, code: str, least: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code ec2"
        f" --quota-code {code or 'L-…'} --desired-value {least}"
    )


def quotas(account: Account, region: str, wanted: Collection[tuple[str, str]]) -> dict[Key, Quota]:
    """For each (instance type, market), the quota that governs it; never raises for what it may
    not see."""
    keys = dict.fromkeys(filter(None, (governing(*each) for each in wanted)))
    used: Mapping[Key, int] | None
    try:
        used = in_use(account, region)
        trouble = ""
    except TradewindError as error:
        used, trouble = None, error.message
    found = {}
    for key in keys:
        told, limit, why = _limit(account, region, key)
        found[key] = Quota(
            region=region,
            code=told.code,
            name=told.name,
            limit=limit,
            used=None if used is None else used.get(key, 0),
            trouble=why or trouble,
        )
    return found


def in_use(account: Account, region: str) -> dict[Key, int]:
    """vCPUs of what runs in a region, whoever started it, by quota, and of what is asked of the
    spot market there and not had yet: EC2 counts that too."""
    counted: Counter[tuple[str, str, int]] = Counter()
    with explained(f"asking AWS what runs in {region}"):
        pages = (
            account.client("ec2", region)
            .get_paginator("describe_instances")
            .paginate(Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}])
        )
        for page in pages:
            for reservation in page["Reservations"]:
                for it in reservation["Instances"]:
                    if _counts(it):
                        market = "spot" if it.get("InstanceLifecycle") == "spot" else "on_demand"
                        cores = it.get("CpuOptions") or {}
                        vcpus = cores.get("CoreCount", 0) * cores.get("ThreadsPerCore", 0)
                        counted[it["InstanceType"], market, vcpus] += 1
        # Those that have their machine are counted by it.
        asked = (
            account.client("ec2", region)
            .get_paginator("describe_spot_instance_requests")
            .paginate(Filters=[{"Name": "state", "Values": ["open"]}])
        )
        for page in asked:
            for it in page["SpotInstanceRequests"]:
                kind = it.get("LaunchSpecification", {}).get("InstanceType")
                if kind and not it.get("InstanceId"):
                    counted[kind, "spot", 0] += 1
    untold = {kind for kind, _, vcpus in counted if not vcpus}
    facts = zones.facts(account, region, untold) if untold else {}
    used: Counter[Key] = Counter()
    for (kind, market, vcpus), number in counted.items():
        key = governing(kind, market)
        if key:
            used[key] += number * (vcpus or (facts[kind].vcpus if kind in facts else 0))
    return dict(used)


def _counts(told: Mapping[str, Any]) -> bool:
    """Capacity blocks and dedicated hosts have quotas of their own."""
    return (
        told.get("InstanceLifecycle", "") in ("", "spot")
        and told.get("Placement", {}).get("Tenancy") != "host"
    )


def _limit(account: Account, region: str, key: Key) -> tuple[Key, int | None, str]:
    """Code and name as AWS has them, vCPUs, and why they are not known. A code that AWS does not
    know any more is looked for by its name."""
    try:
        if key.code:
            told = remembered.one(
                account, ("quota", region, key.code), lambda: _asked(account, region, key), _FRESH_S
            )
            if told.limit is not None:
                return Key(key.code, told.name), told.limit, ""
        named = remembered.one(account, ("quotas", region), lambda: _all(account, region), _FRESH_S)
    except TradewindError as error:
        return key, None, error.message
    for name, (code, limit) in named.items():
        if _same(name, key.name):
            return Key(code, name), limit, ""
    return key, None, f"{region} has no quota of the name {key.name!r}"


def _same(name: str, wanted: str) -> bool:
    """`All P6 Spot …` may be one of several in `All P6 and P5 Spot …`."""
    if name == wanted:
        return True
    number = re.fullmatch(r"All (P\d+) Spot Instance Requests", wanted)
    return bool(number and re.match(rf"All .*\b{number[1]}\b.* Spot Instance Requests", name))


class _Told(NamedTuple):
    name: str
    limit: int | None
    """None: there is none of this code."""


def _asked(account: Account, region: str, key: Key) -> _Told:
    from botocore.exceptions import ClientError

    client = account.client("service-quotas", region)
    with explained(f"asking for the quota {key.code} of {region}"):
        try:
            told = client.get_service_quota(ServiceCode="ec2", QuotaCode=key.code)["Quota"]
        except ClientError as error:
            if code_of(error) == "NoSuchResourceException":
                return _Told("", None)
            raise
    return _Told(told.get("QuotaName", key.name), math.floor(told["Value"]))


def _all(account: Account, region: str) -> dict[str, tuple[str, int]]:
    with explained(f"asking for the quotas of {region}"):
        pages = (
            account.client("service-quotas", region)
            .get_paginator("list_service_quotas")
            .paginate(ServiceCode="ec2")
        )
        return {
            it["QuotaName"]: (it["QuotaCode"], math.floor(it["Value"]))
            for page in pages
            for it in page["Quotas"]
            if "QuotaName" in it and "QuotaCode" in it and "Value" in it
        }
