"""What it all costs, by the equipment's own books: no code of the product is used, so that a test
can hold the product's figures against these.

A machine costs from its launch to its end, in steps that its face knows; a spot machine, in each of
its own hours, at the price at which that began. Volumes cost by the second from birth to death.

A public address costs from launch to end, as its machine does. What the door before S3 has counted
(s3.py) costs by the request, and by the gigabyte where the machine is in another region than the
bucket: `s3` has a row for each machine, as counted, "" for this computer, and the address of
whoever is neither, whose traffic is not reckoned.

Known lies: a spot machine that is taken within its first hour is not charged by some clouds; such a
row says `waived` and is charged here all the same.
"""

from __future__ import annotations

import math
from typing import Any

from tests.cloud.sustained import taken_off
from tests.cloud.world import Machine, Thing, World

MONTH_S = 30 * 24 * 3600.0


def bill(world: World) -> dict[str, Any]:
    now = world.now()
    machines = [_machine(world, each, now) for each in world.machines.values()]
    volumes = [
        {
            "id": each.id,
            "machine": each.machine,
            "gb_s": each.gb * (_end(each.gone, now) - each.made),
            "made": each.made,
            "gone": each.gone,
            "kind": each.kind,
            "usd": _month_usd(world, each) * (_end(each.gone, now) - each.made) / MONTH_S,
        }
        for each in world.things.values()
        if each.sort == "volume" and each.machine
    ]
    asked = world.s3.rows() if world.s3 else {}
    for caller, row in asked.items():
        here = caller in world.machines
        region = world.machines[caller].region if here else world.market.bucket_region
        row["usd"] = world.market.s3_usd(row, region)
    return {
        "machines": machines,
        "volumes": volumes,
        "s3": asked,
        "s3_usd": sum(row["usd"] for row in asked.values()),
        "address_usd": sum(each["address_usd"] for each in machines),
        "usd": sum(each["usd"] for each in machines),
        "volume_usd": sum(each["usd"] for each in volumes),
        "sustained": taken_off(machines, world.market.sustained),
        "left": left(world),
    }


def _month_usd(world: World, volume: Thing) -> float:
    usual = world.market.volume_usd_gb_month
    per_gb = world.market.volume_usd_by_kind.get(volume.kind, usual)
    return volume.gb * per_gb + volume.more_usd_month


def left(world: World) -> list[str]:
    """What still exists and was made since the start."""
    machines = [
        each.id
        for each in world.machines.values()
        if each.ended is None or each.state in ("stopped", "stopping")
    ]
    return machines + [each.id for each in world.things.values() if each.gone is None]


def _machine(world: World, machine: Machine, now: float) -> dict[str, Any]:
    end = _end(world.face.billed_until(machine), now)
    start, seconds = _billed(world, machine, end)
    if machine.market == "spot":
        pieces = world.market.spot_pieces(
            machine.region,
            machine.zones[0],
            machine.kind,
            start,
            start + seconds,
        )
        usd = sum(length * usd_hour / 3600 for length, usd_hour in pieces)
    else:
        usd = seconds * _fixed(world, machine) / 3600
    usd *= machine.share
    taken = machine.taken_at is not None and machine.ended is not None  # whoever was faster then
    if taken and end - start < world.face.billing.free_s:
        usd = 0.0
    return {
        "id": machine.id,
        "name": machine.name,
        "type": machine.kind,
        "region": machine.region,
        "zone": machine.zones[0],
        "hour_usd": _fixed(world, machine),
        "reserved": machine.reserved,
        "address": machine.address,
        "market": machine.market,
        "launched": machine.launched,
        "ended": machine.ended,
        "ended_by": machine.ended_by,
        "from": start,
        "to": end,
        "seconds": seconds,
        "usd": usd,
        "public": machine.public,
        "address_usd": seconds * world.market.address_usd(machine.market) / 3600
        if machine.public
        else 0.0,
        "waived": machine.ended_by == "spot" and end - machine.launched < 3600,
    }


def _fixed(world: World, machine: Machine) -> float:
    market = "reserved" if machine.reserved else machine.market
    return world.market.fixed(machine.region, machine.kind, market)


def _billed(world: World, machine: Machine, end: float) -> tuple[float, float]:
    """From when on, and for how many seconds."""
    how = world.face.billing
    start = machine.running_at if how.from_running else machine.launched
    if start is None:
        return end, 0.0
    seconds = max(how.least_s, end - start)
    return start, math.ceil(seconds / how.step_s) * how.step_s if how.step_s else seconds


def _end(gone: float | None, now: float) -> float:
    return now if gone is None else gone
