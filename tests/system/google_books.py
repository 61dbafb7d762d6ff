"""What the books of the emulated Google Cloud say of a run, held against its ledger."""

from __future__ import annotations

from typing import Any

from tests.system.books import lost_of, the_store_is_paid
from tests.system.google import OnGoogle
from tradewind.ledger.postings import MACHINE, Posting
from tradewind.model.event import LegRequested
from tradewind.providers.gcp import footprint
from tradewind.providers.gcp.setup import roles


def is_paid_and_gone(world: OnGoogle, run_id: str) -> None:
    """Bill and ledger agree to the micro-dollar, requests to the store too, and nothing is left
    that costs anything, nor a placement policy."""
    machines_are_paid(world, run_id)
    machines_were_somebody(world)
    told, bill = world.cloud.bill()["s3"], world.billed(run_id)
    for name, posting in _posted(world, run_id).items():
        row, machine_id = bill[name], posting.machine_id
        lost = lost_of(world, run_id, machine_id, row)
        the_store_is_paid(world, run_id, machine_id, told[row["id"]], lost=lost)


def machines_are_paid(world: OnGoogle, run_id: str) -> None:
    assert world.cloud.left() == []
    assert world.cloud.shelf("resourcePolicies") == []
    bill, postings = world.billed(run_id), _posted(world, run_id)
    assert set(bill) == set(postings)
    volumes = {each["machine"]: each for each in world.cloud.bill()["volumes"]}
    for name, row in bill.items():
        _machine_is_paid(world, run_id, row, volumes[row["id"]], postings[name])


def machines_were_somebody(world: OnGoogle) -> None:
    """Each of their requests to the store came with a token of their service account, and was for
    something that this may do."""
    email = footprint.name(world.store.url)
    asked = [each for each in world.cloud.permissions() if f":{email}@" in each["member"]]
    granted = {each["permission"] for each in asked if each["granted"]}
    refused = {(each["permission"], each["resource"]) for each in asked if not each["granted"]}
    assert {*roles.READ, "storage.objects.create"} <= granted <= {*roles.READ, *roles.WRITE}
    assert refused == set()


def _posted(world: OnGoogle, run_id: str) -> dict[str, Posting]:
    """By the names of machines."""
    return {
        posting.machine_id[posting.machine_id.index("tw-") :]: posting
        for posting in world.cost(run_id).postings
        if posting.kind == MACHINE and posting.provider == "gcp"
    }


def _machine_is_paid(
    world: OnGoogle, run_id: str, row: dict[str, Any], volume: dict[str, Any], posting: Posting
) -> None:
    ways = {
        event.request.leg: event.request.way
        for commit in world.loaded(run_id).commits
        for event in commit.events
        if isinstance(event, LegRequested)
    }
    way = ways[posting.leg]
    assert row["public"]
    assert _hour(row) in (0, way.price - way.disk_price - way.address_price)
    assert posting.micros == due(row, volume), (row, volume, posting)


def due(row: dict[str, Any], volume: dict[str, Any]) -> int:
    """Micro-dollars for a machine, its address and its disk."""
    begun, ended, gone = (int(at) for at in (row["from"], row["to"], volume["gone"]))
    up_s, kept_s = max(ended - begun, 60), max(gone - begun, 60)
    address = round(1e6 * row["address_usd"] / row["seconds"] * 3600)
    disk = round(1e6 * volume["usd"] / (volume["gone"] - volume["made"]) * 3600)
    return sum(
        -(-price * seconds // 3600)
        for price, seconds in ((_hour(row), up_s), (address, up_s), (disk, kept_s))
    )


def _hour(row: dict[str, Any]) -> int:
    """It did not change meanwhile."""
    return round(1e6 * float(row["usd"]) / float(row["seconds"]) * 3600)
