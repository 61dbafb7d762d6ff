"""What the equipment's books say of a run, held against its ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any

from tests.system.rented import ADDRESS, Rented, Runs
from tradewind.ledger.postings import MACHINE
from tradewind.model import places

DISK = 16_667
"""150 GB at $0.08 a month of 30 days, in micro-dollars an hour."""
USED = ("writes", "reads", "bytes_in", "bytes_out")
_GB = 2**30


def is_paid_and_gone(world: Rented, run_id: str, *, disk: int = 0, moved: int = 0) -> None:
    """Bill of EC2 and ledger agree to the micro-dollar, and nothing is left that costs anything.
    `disk`: what each machine's costs an hour. `moved`: what a gigabyte costs to the store, and from
    there."""
    assert world.cloud.left() == []
    told = world.cloud.bill()
    bill = {each["id"]: each for each in told["machines"]}
    postings = {
        f"i-{posting.machine_id.rpartition('-i-')[2]}": posting
        for posting in world.cost(run_id).postings
        if posting.kind == MACHINE and posting.provider == "aws"
    }
    assert set(bill) == set(postings)
    for name, row in bill.items():
        seconds = max(int(row["ended"]) - int(row["launched"]), 60)
        price = round(1e6 * row["usd"] / row["seconds"] * 3600)  # it did not change meanwhile
        due = 0 if row["waived"] else -(-price * seconds // 3600)
        assert row["public"]
        due += -(-ADDRESS * seconds // 3600) - (-disk * seconds // 3600)
        assert postings[name].micros == due, (row, postings[name])
        machine_id = postings[name].machine_id
        lost = lost_of(world, run_id, machine_id, row)
        the_store_is_paid(world, run_id, machine_id, told["s3"][name], moved, moved, lost)


def lost_of(world: Runs[Any], run_id: str, machine_id: str, row: Mapping[str, Any]) -> float:
    """How many requests are in no report of a machine: none, but where it was reclaimed before it
    could say its last words, as on a computer that is busy with other things."""
    text = world.store.get(places.heartbeat(run_id, machine_id)).decode()
    told, _ = json.JSONDecoder().raw_decode(text)  # and its signature behind it
    said = told["doing"] in ("stopped", "failed", "finished")
    return inf if row["ended_by"] == "spot" and not said else 0


def the_store_is_paid(
    world: Runs[Any],
    run_id: str,
    machine_id: str,
    row: Mapping[str, int],
    gb_in: int = 0,
    gb_out: int = 0,
    lost: float = 0,
) -> None:
    """By what the store's books have of this machine, and what a gigabyte costs in each direction:
    a million writes cost $5 and a million reads $0.4, in the home regions of both clouds. `lost`:
    so many requests may have come after its last words, of a machine that was taken untold."""
    usage = world.loaded(run_id).state.used[machine_id]
    for each in USED:
        told = getattr(usage, each)
        most = told + lost if each in ("writes", "reads") or lost == inf else told
        assert told <= row[each] <= most, (each, row, usage)
    row = {each: getattr(usage, each) for each in USED}
    lines = [p for p in world.cost(run_id).postings if p.machine_id == machine_id and p.line]
    posted = sum(p.micros for p in lines if p.line and p.line.unit == "Requests")
    assert posted == 5 * row["writes"] - (-4 * row["reads"] // 10)
    posted = sum(p.micros for p in lines if p.line and p.line.moved)
    assert posted == -(-row["bytes_in"] * gb_in // _GB) - (-row["bytes_out"] * gb_out // _GB)
