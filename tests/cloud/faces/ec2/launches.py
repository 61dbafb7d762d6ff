"""RunInstances, as moto has it, made to refuse and to tell as EC2 does.

Moto's backend is changed in place, so that every way to launch (RunInstances, RequestSpotInstances,
fleets) meets the same limits. Also set right: MaxCount (moto knows MinCount only), the profile of
all machines and not of the first only, root volumes and network interfaces that go with their
machine, one spot request each. Known lies: a fleet that finds no room fails as a whole; stopped
machines cannot be started; security groups guard nothing; interfaces for EFA alone are looked at
and not made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cloud.faces.ec2 import checks
from tests.cloud.faces.ec2.account import Account
from tests.cloud.faces.ec2.actions import is_ready
from tests.cloud.faces.ec2.checks import refuse
from tests.cloud.faces.ec2.spot import request_for
from tests.cloud.faces.ec2.times import moment
from tests.cloud.faces.ec2.userdata import user_data
from tests.cloud.world import Machine


def install(account: Account) -> None:
    from moto.ec2.models import EC2Backend

    whole = EC2Backend.run_instances

    def run_instances(
        backend: Any,
        image_id: str,
        count: int,
        user_data: Any,
        security_group_names: Any,
        **more: Any,
    ) -> Any:
        return _launch(
            account, whole, backend, image_id, count, user_data, security_group_names, **more
        )

    EC2Backend.run_instances = run_instances  # type: ignore[method-assign, assignment]


def _launch(
    account: Account,
    whole: Callable[..., Any],
    backend: Any,
    image_id: str,
    count: int,
    user_data: Any,
    group_names: Any,
    **more: Any,
) -> Any:
    template = {}
    if more.get("launch_template"):
        template = backend._get_template_from_args(more["launch_template"]).data
        if more.get("is_instance_type_default") and template.get("InstanceType"):
            more |= {"instance_type": template["InstanceType"], "is_instance_type_default": False}
    market = "on-demand"
    of_template = template.get("InstanceMarketOptions", {}).get("MarketType")
    if more.get("instance_market_options") or more.get("lifecycle") == "spot" or of_template:
        market = "spot"
    kind = more.get("instance_type", "m1.small")
    checks.known(kind)
    checks.profile(account)
    checks.interfaces(account, kind)
    zones = _zone(account, backend, more, kind, market)
    count = _granted(account, backend.region_name, zones, kind, market, count)
    group = account.asked.get("Placement.GroupName", "")
    there = account.groups.get((backend.region_name, group))
    if group and not (there and is_ready(account, there)):
        raise refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
    _volumes(account.asked, backend, image_id, more)
    # Moto would have one interface at each device index, whatever its card.
    more["nics"] = [n for n in more.get("nics") or [] if n.get("InterfaceType") != "efa-only"]
    reservation = whole(backend, image_id, count, user_data, group_names, **more)
    for instance in reservation.instances:
        instance.placement.group_name = group
        instance.placement.availability_zone_id = zones[1]
        _profile(backend, instance, reservation.instances[0], more)
        _made(account, backend, instance, zones, kind, market, more)
    return reservation


def _zone(
    account: Account, backend: Any, more: dict[str, Any], kind: str, market: str
) -> tuple[str, str]:
    """That of the subnet, else the one that was asked for, else one that has room."""
    subnet = more.get("subnet_id")
    subnet = subnet or next(
        (n["SubnetId"] for n in more.get("nics") or [] if "SubnetId" in n), None
    )
    names = {each.name: each.zone_id for each in backend.describe_availability_zones()}
    if subnet:
        zone = backend.get_subnet(subnet).availability_zone
    elif account.asked.get("Placement.AvailabilityZoneId"):
        wished = account.asked["Placement.AvailabilityZoneId"]
        zone = more["placement"] = next((n for n, number in names.items() if number == wished), "")
    elif more.get("placement"):
        zone = more["placement"]
    else:
        offered = checks.where(backend.region_name, "availability-zone", kind)
        zone = more["placement"] = max(
            sorted(offered & set(names)) or sorted(names),
            key=lambda each: account.world.room((each, names[each]), kind, market),
        )
    if zone not in names:
        raise refuse("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    checks.offered(backend.region_name, zone, kind)
    return zone, names[zone]


def _granted(
    account: Account, region: str, zones: tuple[str, str], kind: str, market: str, least: int
) -> int:
    """How many of them: as many as there is room for, at least `least`, or none."""
    most = max(least, int(account.asked.get("MaxCount", least)))
    world = account.world
    by_quota = world.allowed(region, kind, market)
    if by_quota < least:
        if market == "spot":
            raise refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        allowed = world.quotas.value(region, world.face.counts(kind, market)[0])
        raise refuse(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {allowed:g} "
            f"allows for the instance bucket that the specified instance type belongs to. Please "
            f"visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment.",
        )
    checks.bid(account, region, zones[0], kind, market)
    room = world.room(zones, kind, market)
    if room < least:
        words = (
            f"We currently do not have sufficient {kind} capacity in the Availability Zone you "
            f"requested ({zones[0]}). Our system will be working on provisioning additional "
            "capacity."
        )
        if market == "spot":
            words = "There is no Spot capacity available that matches your request."
        raise refuse("InsufficientInstanceCapacity", words)
    return min(most, room, by_quota)


def _volumes(asked: dict[str, str], backend: Any, image_id: str, more: dict[str, Any]) -> None:
    """A root volume always, which goes with its machine unless that was refused (moto takes silence
    for refusal)."""
    image = backend.amis.get(image_id)
    root = image.root_device_name if image else "/dev/sda1"
    mappings = more.get("block_device_mappings")
    if not mappings:
        return
    if root not in [each["DeviceName"] for each in mappings]:
        mappings.insert(0, {"DeviceName": root, "Ebs": {}})
    named = {v: k.removesuffix("DeviceName") for k, v in asked.items() if k.endswith(".DeviceName")}
    for each in mappings:
        disk = each.setdefault("Ebs", {})
        if each["DeviceName"] == root:
            if disk.get("VolumeSize") is None:
                disk["VolumeSize"] = 8
            if asked.get(f"{named.get(root, '')}Ebs.DeleteOnTermination", "true") == "true":
                disk["DeleteOnTermination"] = True


def _profile(backend: Any, instance: Any, first: Any, more: dict[str, Any]) -> None:
    """Moto gives one to the first, after this."""
    named, arn = more.get("iam_instance_profile_name"), more.get("iam_instance_profile_arn")
    if instance is not first and (named or arn):
        backend.associate_iam_instance_profile(
            instance_id=instance.id,
            iam_instance_profile_name=named,
            iam_instance_profile_arn=arn,
        )


def _made(
    account: Account,
    backend: Any,
    instance: Any,
    zones: tuple[str, str],
    kind: str,
    market: str,
    more: dict[str, Any],
) -> None:
    world = account.world
    now = world.now()
    instance.launch_time = moment(int(now))
    instance.client_token = account.asked.get("ClientToken", "")
    wished = {int(n["DeviceIndex"]): n for n in more.get("nics") or [] if "DeviceIndex" in n}
    for index, card in instance.nics.items():
        if "NetworkInterfaceId" not in wished.get(index, {}):
            kept = wished.get(index, {}).get("DeleteOnTermination") is False
            card.delete_on_termination = not kept
            card.add_tags((more.get("tags") or {}).get("network-interface", {}))
        if card.id in world.things:
            world.things[card.id].machine = instance.id
    instance.security_groups = instance.security_groups or list(instance.nics[0]._group_set)
    for _, disk in instance.get_block_device_mapping:
        world.things[disk.volume_id].machine = instance.id
    machine = Machine(
        id=instance.id,
        region=backend.region_name,
        zones=zones,
        kind=kind,
        market=market,
        launched=float(int(now)),
        listed_from=now + world.dials.lag_s,
        user_data=user_data(instance),
        record=instance,
        public=any(card.public_ip_auto_assign for card in instance.nics.values()),
    )
    machine.address = world.bodies.address(machine) or ""
    if machine.address:
        card = instance.nics[0]
        card.private_ip_address = machine.address
        card.private_ip_addresses[0]["PrivateIpAddress"] = machine.address
    machine.hostname = instance.private_dns_name
    if market == "spot":
        instance.lifecycle = "spot"
        if more.get("lifecycle") != "spot":  # moto makes one itself
            request = account.requests[machine.id] = request_for(backend, instance, now)
            request.add_tags((more.get("tags") or {}).get("spot-instances-request", {}))
    world.begin(machine)
