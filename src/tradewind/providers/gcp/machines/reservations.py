"""Capacity that the user has reserved before."""

from __future__ import annotations

from tradewind.model.run import Request
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Compute, Reservation
from tradewind.providers.gcp.machines.order import Reserved
from tradewind.providers.gcp.machines.types import Kind
from tradewind.providers.gcp.operations import at_s


def find(compute: Compute, request: Request, kind: Kind) -> Reserved | None:
    """The one that has room for all machines of a request on the market `reserved`, and lasts as
    long as they may: those that must be named first, since nobody else is given them."""
    way = request.way
    if way.market != "reserved":
        return None
    if not way.zone:
        raise Refused("not_found", "a reservation is in a zone, and none is named")
    there = [each for each in compute.reservations(way.zone) if _fits(each, request, kind)]
    lasting = [each for each in there if _lasts(each, request, compute.at_s())]
    if not lasting:
        words = f"no reservation of {kind.machine_type} in {way.zone} has room for {way.nodes}"
        if there:
            words = f"{there[0].name} in {way.zone} ends before machines of this run may"
        raise Refused(
            "no_capacity", words, hint="`gcloud compute reservations list` shows what there is"
        )
    first = min(lasting, key=lambda each: not each.specific_reservation_required)
    return Reserved(name=first.name, specific=first.specific_reservation_required)


def _fits(each: Reservation, request: Request, kind: Kind) -> bool:
    held = each.specific_reservation
    return (
        each.status in ("", "READY")
        and held is not None
        and held.instance_properties.machine_type == kind.machine_type
        and int(held.count) - int(held.in_use_count) >= request.way.nodes
    )


def _lasts(each: Reservation, request: Request, now_s: int) -> bool:
    ends_s = at_s(each.delete_at_time) if each.delete_at_time else None
    return ends_s is None or ends_s - now_s >= request.hard_stop_s
