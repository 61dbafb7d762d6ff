"""Writes examples/store: the journals of four made-up runs, for docs/commands/cost.md.

    python tools/example_store.py

A commit holds several events there, so that the files are few. What is written is always the same.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from tradewind import journal
from tradewind.model import event as events
from tradewind.model.run import Facts, Machine, Request, Spec, Way
from tradewind.store.base import RESERVED
from tradewind.store.local import LocalStore

FOLDER = Path(__file__).parent.parent / "examples" / "store"
SPOT = Way(
    provider="aws",
    region="eu-central-1",
    zone="eu-central-1a",
    instance_type="p5.48xlarge",
    market="spot",
    nodes=1,
    price=21_500_000,
    rate=2.5,
    start_s=420.0,
    start_cost=1_250_000,
    facts=Facts(notice_s=120, tokens=True),
)
ON_DEMAND = replace(SPOT, market="on_demand", price=55_040_000)
LAMBDA = replace(
    SPOT,
    provider="lambda",
    region="us-east-3",
    zone="",
    instance_type="gpu_8x_a100_80gb_sxm4",
    market="on_demand",
    price=14_320_000,
    start_cost=0,
    facts=Facts(billing_step_s=60),
)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    store = LocalStore(FOLDER)
    month = {"project": "nlp", "user": "ada", "tags": {"team": "blue"}}
    stays: tuple[tuple[Way, float | None], ...]
    for run_id, name, start, stays, outcome, more in (
        (
            "run-0199f3a1c2d4-5e1d9c", "finetune-8b", "2026-10-31T20:00",
            ((SPOT, 5.5), (SPOT, 2.25), (ON_DEMAND, 1.1)), "succeeded",
            month | {"predicted_cost": 240_000_000, "predicted_hours": 9.0},
        ),
        (
            "run-019a0b77e010-a9c3f1", "pretrain-1.3b", "2026-11-06T09:30",
            ((SPOT, 14.2), (SPOT, 6.4)), "succeeded",
            month | {"predicted_cost": 430_000_000, "predicted_hours": 19.0},
        ),
        (
            "run-019a1d02b6f8-03be77", "segment", "2026-11-11T16:00", ((LAMBDA, 7.3),), "failed",
            {"project": "vision", "user": "grace", "tags": {"team": "red"}},
        ),
        (
            "run-019a2e91f5a3-c40d12", "pretrain-1.3b-b", "2026-11-15T08:00", ((SPOT, None),), "",
            month | {"user": "grace", "predicted_cost": 430_000_000, "predicted_hours": 19.0},
        ),
    ):  # fmt: skip
        spec = Spec(
            name=name, work=9000.0, ways=(SPOT, ON_DEMAND) if stays[0][0] is SPOT else (LAMBDA,),
            **more,  # type: ignore[arg-type]
        )  # fmt: skip
        at = datetime.fromisoformat(start).replace(tzinfo=UTC)
        _write(store, run_id, spec, at, stays, outcome)
    (FOLDER / RESERVED).rmdir()


def _write(
    store: LocalStore,
    run_id: str,
    spec: Spec,
    at: datetime,
    stays: tuple[tuple[Way, float | None], ...],
    outcome: str,
) -> None:
    start_s = int(at.timestamp())
    written: list[list[events.Event]] = [[events.Submitted(run_id=run_id, spec=spec)]]
    for leg, (way, hours) in enumerate(stays, 1):
        name = f"{run_id}-{leg}"
        request = Request(launch_id=name, run_id=run_id, leg=leg, way=way, hard_stop_s=100_000)
        machine = Machine(
            machine_id=f"i-{run_id[-6:]}{leg:02d}", launch_id=name, run_id=run_id, leg=leg, rank=0,
            launched_s=start_s,
        )  # fmt: skip
        written.append(
            [
                events.LegRequested(request=request, reason="it is the cheapest"),
                events.MachinesFound(machines=(machine,), reason="the provider launched them"),
                events.LegUp(leg=leg, reason="every supervisor has reported"),
            ]
        )
        if hours is None:
            continue
        start_s += int(hours * 3600)
        cause = "interrupted" if leg < len(stays) else "finished"
        ended = replace(machine, ended_s=start_s)
        written.append(
            [
                events.LegOver(leg=leg, cause=cause, reason="it has stopped", saved=1000.0 * leg),
                events.MachineEnded(machine=ended, reason="its provider says so"),
            ]
        )
        start_s += 240
    if outcome:
        written[-1] += [
            events.Ended(outcome=outcome, reason="the job has ended"),
            events.Closed(reason="every machine has ended and is accounted for"),
        ]
    for number, together in enumerate(written, 1):
        journal.append(store, run_id, number, writer="example", at=at, events=together)


if __name__ == "__main__":
    main()
