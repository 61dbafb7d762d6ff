"""Actions of EC2 that moto answers with 500 or with nothing: placement groups, placement scores,
price histories, capacity reservations, console output. They become methods of moto's own class, so
that its reader and writer of EC2's protocol serve them. And security groups, which moto deletes
while machines are behind them.

Known lies: a placement group has no effect; scores are what a test set, else 9 with capacity and 1
without; reservations are only listed, and no launch uses one.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from tests.cloud.faces.ec2.account import Account
from tests.cloud.faces.ec2.checks import refuse
from tests.cloud.faces.ec2.times import moment
from tests.cloud.world import Thing


def install(account: Account) -> None:
    from moto.ec2.responses import EC2Response

    for make in (_placement_groups, _scores, _prices, _reservations, _console):
        for name, method in make(account).items():
            setattr(EC2Response, name, method)
    _security_groups(account)


def _answer(**result: Any) -> Any:
    from moto.core.responses import ActionResult

    return ActionResult(result)


def _chosen(given: list[dict[str, Any]], asked: Any, names: dict[str, str]) -> list[dict[str, Any]]:
    """By Filters; `names` says which key a filter is about."""
    for name, values in asked._filters_from_querystring().items():
        if name.startswith("tag:"):
            tags = [{t["Key"]: t["Value"] for t in each.get("Tags", [])} for each in given]
            pairs = zip(given, tags, strict=True)
            given = [each for each, has in pairs if has.get(name[4:]) in values]
        elif name in names:
            given = [each for each in given if str(each.get(names[name])) in values]
        else:
            raise refuse("InvalidParameterValue", f"The filter '{name}' is invalid")
    return given


def is_ready(account: Account, group: dict[str, Any]) -> bool:
    world = account.world
    return world.now() >= world.things[group["GroupId"]].made + account.dials.group_lag_s


def _placement_groups(account: Account) -> dict[str, Any]:
    world = account.world

    def create_placement_group(asked: Any) -> Any:
        name, strategy = asked._get_param("GroupName"), asked._get_param("Strategy", "cluster")
        if (asked.region, name) in account.groups:
            words = f"The placement group '{name}' already exists."
            raise refuse("InvalidPlacementGroup.Duplicate", words)
        number = f"pg-{len(world.things):017x}"
        tags = asked._parse_tag_specification().get("placement-group", {})
        group = {
            "GroupName": name,
            "GroupId": number,
            "GroupArn": f"arn:aws:ec2:{asked.region}:123456789012:placement-group/{name}",
            "State": "available",
            "Strategy": strategy,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
        if strategy == "partition":
            group["PartitionCount"] = int(asked._get_param("PartitionCount", 2))
        account.groups[asked.region, name] = group
        world.things[number] = Thing(number, "placement-group", asked.region, world.now())
        return _answer(PlacementGroup=group)

    def delete_placement_group(asked: Any) -> Any:
        name = asked._get_param("GroupName")
        if (asked.region, name) not in account.groups:
            words = f"The Placement Group '{name}' is unknown."
            raise refuse("InvalidPlacementGroup.Unknown", words)
        for each in world.alive(region=asked.region):
            if each.record.placement.group_name == name:
                words = f"The placement group '{name}' is in use and may not be deleted."
                raise refuse("InvalidPlacementGroup.InUse", words)
        group = account.groups.pop((asked.region, name))
        world.things[group["GroupId"]].gone = world.now()
        return _answer()

    def describe_placement_groups(asked: Any) -> Any:
        given = [
            group | {"State": "available" if is_ready(account, group) else "pending"}
            for (region, _), group in account.groups.items()
            if region == asked.region
        ]
        for name in asked._get_param("GroupNames", []):
            if name not in [each["GroupName"] for each in given]:
                words = f"The Placement Group '{name}' is unknown."
                raise refuse("InvalidPlacementGroup.Unknown", words)
        names = asked._get_param("GroupNames", [])
        ids = asked._get_param("GroupIds", [])
        given = [each for each in given if not names or each["GroupName"] in names]
        given = [each for each in given if not ids or each["GroupId"] in ids]
        keys = {"group-name": "GroupName", "state": "State", "strategy": "Strategy"}
        return _answer(PlacementGroups=_chosen(given, asked, keys))

    return {
        "create_placement_group": create_placement_group,
        "delete_placement_group": delete_placement_group,
        "describe_placement_groups": describe_placement_groups,
    }


def _security_groups(account: Account) -> None:
    world = account.world
    from moto.ec2.models import EC2Backend

    create, delete = EC2Backend.create_security_group, EC2Backend.delete_security_group

    def create_security_group(backend: Any, *given: Any, **more: Any) -> Any:
        made = create(backend, *given, **more)
        if len(made.get_tags()) > 1:  # that of a network says whose it is, and no more
            where = backend.region_name
            world.things[made.id] = Thing(made.id, "security-group", where, world.now())
        return made

    def delete_security_group(
        backend: Any, name: str | None = None, group_id: str | None = None
    ) -> None:
        for each in world.alive(region=backend.region_name):
            groups = [group.id for card in each.record.nics.values() for group in card._group_set]
            if group_id in groups:
                words = f"resource {group_id} has a dependent object"
                raise refuse("DependencyViolation", words)
        delete(backend, name, group_id)
        if group_id in world.things:
            world.things[group_id].gone = world.now()

    EC2Backend.create_security_group = create_security_group  # type: ignore[method-assign, assignment]
    EC2Backend.delete_security_group = delete_security_group  # type: ignore[method-assign, assignment]


def _scores(account: Account) -> dict[str, Any]:
    def get_spot_placement_scores(asked: Any) -> Any:
        from moto.ec2.models import ec2_backends

        single = asked._get_param("SingleAvailabilityZone") in (True, "true")
        scores: list[dict[str, Any]] = []
        for region in asked._get_param("RegionNames", []) or [asked.region]:
            backend = ec2_backends[asked.current_account][region]
            zones = [(each.name, each.zone_id) for each in backend.describe_availability_zones()]
            if single:
                scores += [
                    {"Region": region, "AvailabilityZoneId": z[1], "Score": account.score(z)}
                    for z in zones
                ]
            else:
                best = max(account.score(each) for each in zones)
                scores.append({"Region": region, "Score": account.scores.get(region, best)})
        scores.sort(key=lambda each: -each["Score"])
        return _answer(SpotPlacementScores=scores[:10])

    return {"get_spot_placement_scores": get_spot_placement_scores}


def _prices(account: Account) -> dict[str, Any]:
    world = account.world

    def describe_spot_price_history(asked: Any) -> Any:
        from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS as OFFERED

        wished = asked._filters_from_querystring()
        kinds = set(asked._get_param("InstanceTypes", []) or wished.get("instance-type", []))
        zone = asked._get_param("AvailabilityZone")
        zones = {zone} if zone else set(wished.get("availability-zone", []))
        products = asked._get_param("ProductDescriptions", []) or wished.get(
            "product-description", []
        )
        start = _seconds(asked._get_param("StartTime"), world.now())
        end = _seconds(asked._get_param("EndTime"), world.now())
        history = []
        for offer in OFFERED["availability-zone"].get(asked.region, []):
            kind, place = offer["InstanceType"], offer["Location"]
            if (kinds and kind not in kinds) or (zones and place not in zones):
                continue
            changes = world.market.spot_changes(asked.region, place, kind)
            before = [each for each in changes if each[0] <= start][-1:]
            for since, usd_hour in before + [c for c in changes if start < c[0] <= end]:
                history.append(
                    {
                        "AvailabilityZone": place,
                        "InstanceType": kind,
                        "ProductDescription": "Linux/UNIX",
                        "SpotPrice": f"{usd_hour:.6f}",
                        "Timestamp": moment(int(since)),
                    }
                )
        if products and not {"Linux/UNIX", "Linux/UNIX (Amazon VPC)"} & set(products):
            history = []
        history.sort(key=lambda each: each["Timestamp"], reverse=True)
        first = int(asked._get_param("NextToken") or 0)
        most = int(asked._get_param("MaxResults") or 1000)
        more = str(first + most) if first + most < len(history) else ""
        return _answer(SpotPriceHistory=history[first : first + most], NextToken=more)

    return {"describe_spot_price_history": describe_spot_price_history}


def _seconds(given: Any, now: float) -> float:
    if given is None:
        return now
    if isinstance(given, str):
        given = datetime.fromisoformat(given)
    return float((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())


def _reservations(account: Account) -> dict[str, Any]:
    def describe_capacity_reservations(asked: Any) -> Any:
        given = [each for each in account.reservations if each["Region"] == asked.region]
        ids = asked._get_param("CapacityReservationIds", [])
        for number in ids:
            if number not in [each["CapacityReservationId"] for each in given]:
                words = f"The Capacity Reservation '{number}' does not exist."
                raise refuse("InvalidCapacityReservationId.NotFound", words)
        given = [each for each in given if not ids or each["CapacityReservationId"] in ids]
        keys = {"instance-type": "InstanceType", "state": "State"}
        keys["availability-zone"] = "AvailabilityZone"
        return _answer(CapacityReservations=_chosen(given, asked, keys))

    return {"describe_capacity_reservations": describe_capacity_reservations}


def _console(account: Account) -> dict[str, Any]:
    world = account.world

    def get_console_output(asked: Any) -> Any:
        machine = world.machines.get(asked._get_param("InstanceId"))
        if machine is None:
            raise refuse("InvalidInstanceID.NotFound", "The instance ID does not exist")
        text = world.bodies.console(machine.id)[-65536:]
        output = base64.b64encode(text).decode()
        now = moment(int(world.now()))
        return _answer(InstanceId=machine.id, Output=output, Timestamp=now)

    return {"get_console_output": get_console_output}
