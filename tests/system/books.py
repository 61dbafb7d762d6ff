"""What the equipment's books say of a run, held against its ledger."""

from __future__ import annotations

from tests.system.rented import ADDRESS, Rented
from tradewind.ledger.postings import MACHINE


def is_paid_and_gone(world: Rented, run_id: str, *, disk: int = 0) -> None:
    """Bill and ledger agree to the micro-dollar, and nothing is left that costs anything. `disk`:
    what each machine's costs an hour."""
    assert world.cloud.left() == []
    told = world.cloud.bill()
    bill = {each["id"]: each for each in told["machines"]}
    postings = {
        posting.machine_id.removeprefix("aws-us-east-1-"): posting
        for posting in world.cost(run_id).postings
        if posting.kind == MACHINE
    }
    assert set(bill) == set(postings)
    for name, row in bill.items():
        seconds = max(int(row["ended"]) - int(row["launched"]), 60)
        price = round(1e6 * row["usd"] / row["seconds"] * 3600)  # it did not change meanwhile
        due = 0 if row["waived"] else -(-price * seconds // 3600)
        assert row["public"]
        due += -(-ADDRESS * seconds // 3600) - (-disk * seconds // 3600)
        assert postings[name].micros == due, (row, postings[name])
        the_store_is_paid(world, run_id, name, told["s3"][name])


def the_store_is_paid(world: Rented, run_id: str, name: str, row: dict[str, int]) -> None:
    """By what S3's books have of this machine."""
    usage = world.loaded(run_id).state.used[f"aws-us-east-1-{name}"]
    for each in ("writes", "reads", "bytes_in", "bytes_out"):
        assert getattr(usage, each) == row[each], (each, row, usage)
    lines = [p for p in world.cost(run_id).postings if p.machine_id.endswith(name) and p.line]
    posted = sum(p.micros for p in lines if p.line and p.line.unit == "Requests")
    assert posted == 5 * row["writes"] - (-4 * row["reads"] // 10)
