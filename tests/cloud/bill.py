"""What it all costs, by the equipment's own books: no code of the product is used, so that a test
can hold the product's figures against these.

A machine costs from its launch to its end, in steps that its face knows; a spot machine, in each of
its own hours, at the price at which that began. Volumes cost by the second from birth to death.

A public address costs from launch to end, as its machine does. What the door before S3 has counted
(s3.py) costs by the request, and by the gigabyte where the machine is in another region than the
bucket: `s3` has a row for each machine, as counted, and "" for all others.

Known lies: a spot machine that is taken within its first hour is not charged by some clouds; such a
row says `waived` and is charged here all the same.
"""

from __future__ import annotations

import math
from typing import Any

from tests.cloud.world import Machine, World

MONTH_S = 30 * 24 * 3600.0


def bill(world: World) -> dict[str, Any]:
    now = world.now()
    machines = [_machine(world, each, now) for each in world.machines.values()]
    volumes = [
        {
            "id": each.id,
            "machine": each.machine,
            "gb_s": each.gb * (_end(each.gone, now) - each.made),
            "gone": each.gone,
            "usd": each.gb
            * (_end(each.gone, now) - each.made)
            * world.market.volume_usd_gb_month
            / MONTH_S,
        }
        for each in world.things.values()
        if each.sort == "volume" and each.machine
    ]
    asked = world.s3.rows() if world.s3 else {}
    for caller, row in asked.items():
        region = world.machines[caller].region if caller else world.market.bucket_region
        row["usd"] = world.market.s3_usd(row, region)
    return {
        "machines": machines,
        "volumes": volumes,
        "s3": asked,
        "s3_usd": sum(row["usd"] for row in asked.values()),
        "address_usd": sum(each["address_usd"] for each in machines),
        "usd": sum(each["usd"] for each in machines),
        "volume_usd": sum(each["usd"] for each in volumes),
        "left": left(world),
    }


def left(world: World) -> list[str]:
    """What still exists and was made since the start."""
    machines = [
        each.id
        for each in world.machines.values()
        if each.ended is None or each.state in ("stopped", "stopping")
    ]
    return machines + [each.id for each in world.things.values() if each.gone is None]


def _machine(world: World, machine: Machine, now: float) -> dict[str, Any]:
    end = _end(machine.ended, now)
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
        usd = seconds * world.market.on_demand(machine.region, machine.kind) / 3600
    return {
        "id": machine.id,
        "type": machine.kind,
        "zone": machine.zones[0],
        "market": machine.market,
        "launched": machine.launched,
        "ended": machine.ended,
        "ended_by": machine.ended_by,
        "seconds": seconds,
        "usd": usd,
        "public": machine.public,
        "address_usd": seconds * world.market.address_usd_hour / 3600 if machine.public else 0.0,
        "waived": machine.ended_by == "spot" and end - machine.launched < 3600,
    }


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
