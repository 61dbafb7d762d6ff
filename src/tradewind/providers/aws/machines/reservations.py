"""Capacity that the user has bought before: reservations, and blocks for a fixed time."""

from __future__ import annotations

import math
from typing import Any

from tradewind.base import clock
from tradewind.base.units import format_duration
from tradewind.model.run import Request
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.machines.order import Reservation
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

_PLATFORM = "Linux/UNIX"
_BEFORE_END_S = 35 * 60
"""EC2 begins to end the machines of a block half an hour before the block ends."""


def find(account: Account, request: Request) -> Reservation | None:
    """The one that has room for all machines of a request on the market `reserved`, blocks first:
    they run out."""
    way = request.way
    if way.market != "reserved":
        return None
    filters = {"instance-type": way.instance_type, "state": "active"}
    with explained(f"looking for reservations in {way.region}"):
        pages = (
            account.client("ec2", way.region)
            .get_paginator("describe_capacity_reservations")
            .paginate(Filters=[{"Name": k, "Values": [v]} for k, v in filters.items()])
        )
        there = [each for page in pages for each in page["CapacityReservations"]]
    fitting = [
        each
        for each in there
        if each.get("AvailableInstanceCount", 0) >= way.nodes
        and way.zone in ("", each.get("AvailabilityZoneId"))
        and each.get("InstancePlatform", _PLATFORM) == _PLATFORM
        and each.get("Tenancy", "default") == "default"
    ]
    lasting = [each for each in fitting if _left_s(each) >= request.hard_stop_s]
    if not lasting:
        where = way.zone or way.region
        words = f"no reservation of {way.instance_type} in {where} has room for {way.nodes}"
        if fitting:
            longest = format_duration(int(max(0, *map(_left_s, fitting))), parts=2)
            needed = format_duration(request.hard_stop_s, parts=2)
            words = (
                f"the capacity blocks of {way.instance_type} in {where} end too soon: machines may"
                f" run there for {longest} at most, and {needed} may be needed"
            )
        raise Refused(
            "no_capacity",
            words,
            hint="`aws ec2 describe-capacity-reservations` lists what the account has",
        )
    return min(map(_reservation, lasting), key=lambda each: not each.block)


def _reservation(told: dict[str, Any]) -> Reservation:
    return Reservation(
        reservation_id=told["CapacityReservationId"],
        block=_is_block(told),
        group=str(told.get("PlacementGroupArn") or "").rpartition("/")[2],
    )


def _is_block(told: dict[str, Any]) -> bool:
    return bool(told.get("ReservationType") == "capacity-block")


def _left_s(told: dict[str, Any]) -> float:
    """How long a machine may run in it. Others than blocks may end too; machines outlive that."""
    if not _is_block(told) or told.get("EndDate") is None:
        return math.inf
    return float(told["EndDate"].timestamp()) - _BEFORE_END_S - clock.now().timestamp()
