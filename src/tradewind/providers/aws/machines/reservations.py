"""Capacity that the user has bought before: reservations, and blocks for a fixed time."""

from __future__ import annotations

from tradewind.model.run import Request
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.machines.order import Reservation
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused


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
        Reservation(
            reservation_id=each["CapacityReservationId"],
            block=each.get("ReservationType") == "capacity-block",
        )
        for each in there
        if each.get("AvailableInstanceCount", 0) >= way.nodes
        and way.zone in ("", each.get("AvailabilityZoneId"))
    ]
    if not fitting:
        raise Refused(
            "no_capacity",
            f"no reservation of {way.instance_type} in {way.zone or way.region} has room for"
            f" {way.nodes}",
            hint="`aws ec2 describe-capacity-reservations` lists what the account has",
        )
    return min(fitting, key=lambda each: not each.block)
