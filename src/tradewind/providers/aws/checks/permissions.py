"""Whether we may launch, tag and terminate: asked as dry runs, which change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, OK, WARNING, About, Finding
from tradewind.model.run import Request, Way
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import OWNER, Footprint, tag_list
from tradewind.providers.aws.limits import zones
from tradewind.providers.aws.limits.images import Image
from tradewind.providers.aws.limits.zones import TypeFacts
from tradewind.providers.aws.machines import order
from tradewind.providers.aws.troubles import code_of, explained
from tradewind.providers.base import Refused

_TYPES = ("g4dn.xlarge", "g5.xlarge", "g6.xlarge", "t3.micro")
"""For a dry run: the first that the region offers."""
_NO_MACHINE = "i-00000000000000000"


found = About("aws")


def todo(error: TradewindError, otherwise: str) -> str:
    """Its hint, unless that is to run what this is."""
    return otherwise if not error.hint or "doctor aws" in error.hint else error.hint


def permission_checks(
    account: Account,
    footprint: Footprint,
    region: str,
    owner: str,
    chosen: list[Image],
) -> Iterator[Finding]:
    """Launching asks for RunInstances, CreateTags and PassRole at once. Terminating is allowed by a
    machine's tags as a rule: where there is none of ours, a refusal says nothing."""
    ec2 = account.client("ec2", region)
    refused: list[Finding] = []
    place = _place(account, footprint, region) if chosen else None
    if place:
        for market in ("on_demand", "spot"):
            asked = _launch(footprint, region, chosen[0], owner, *place, market)
            words = f"launch machines ({market.replace('_', '-')})"
            refused += _dry(ec2.run_instances, asked, region, words, BROKEN)
    ours = [{"Name": f"tag:{OWNER}", "Values": [owner]}]
    with explained(f"listing machines in {region}"):
        listed = ec2.describe_instances(Filters=ours, MaxResults=5)["Reservations"]
    machines = [it["InstanceId"] for one in listed for it in one["Instances"]]
    asked = {"InstanceIds": machines[:1] or [_NO_MACHINE]}
    ending = _dry(ec2.terminate_instances, asked, region, "terminate machines", BROKEN)
    refused += ending if machines else []
    group = {
        "GroupName": "tradewind-doctor",
        "Strategy": "cluster",
        "TagSpecifications": _tagged("placement-group", owner),
    }
    words = "make placement groups, for several machines close together"
    refused += _dry(ec2.create_placement_group, group, region, words, WARNING)
    fence = {
        "GroupName": "tradewind-doctor",
        "Description": "tradewind doctor",
        "VpcId": footprint.regions[region].vpc,
        "TagSpecifications": _tagged("security-group", owner),
    }
    words = "make security groups, for several machines that work together"
    refused += _dry(ec2.create_security_group, fence, region, words, WARNING)
    yield from refused
    if not refused:
        tried = ["launched"] * bool(place) + ["listed"] + ["terminated"] * (not ending)
        yield found(OK, f"{region}: machines may be {', '.join(tried)}")


def _tagged(kind: str, owner: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tag_list({OWNER: owner})}]


def _place(account: Account, footprint: Footprint, region: str) -> tuple[TypeFacts, str] | None:
    """A type, and a zone with a subnet of ours that offers it."""
    facts = zones.facts(account, region, _TYPES)
    for name in _TYPES:
        for zone in zones.places(account, region, footprint.regions[region], name):
            if name in facts:
                return facts[name], zone
    return None


def _launch(
    footprint: Footprint,
    region: str,
    image: Image,
    owner: str,
    kind: TypeFacts,
    zone: str,
    market: str,
) -> dict[str, Any]:
    """As a launch asks, but for the token: nothing is to be remembered of it."""
    way = Way(
        provider="aws",
        region=region,
        zone=zone,
        instance_type=kind.name,
        market=market,
        nodes=1,
        price=0,
        rate=1.0,
        start_s=0.0,
    )
    request = Request(launch_id="doctor", run_id="doctor", leg=1, way=way, hard_stop_s=3600)
    asked = order.parameters(request, owner, footprint, kind=kind, image=image, user_data=b"")
    del asked["ClientToken"]
    return asked


def _dry(
    call: Callable[..., Any], asked: dict[str, Any], region: str, words: str, level: str
) -> list[Finding]:
    """Empty: it would have been done."""
    from botocore.exceptions import ClientError

    try:
        with explained(f"asking whether we may {words} in {region}"):
            try:
                call(**asked, DryRun=True)
            except ClientError as error:
                if code_of(error) in ("DryRunOperation", "InvalidInstanceID.NotFound"):
                    return []
                raise
    except TradewindError as error:
        if isinstance(error, Refused | NoAccess) and getattr(error, "kind", "") != "throttled":
            what = f"{region}: we may not {words}"
            do = todo(error, "allow it to the user or role that the first line names")
        else:
            level, what = WARNING, f"{region}: whether we may {words} could not be learned"
            do = todo(error, "run it again")
        return [found(level, what, why=error.message, todo=do)]
    return []
