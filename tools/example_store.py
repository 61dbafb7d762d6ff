"""Writes examples/store: four made-up runs, for docs/commands/cost.md and report.md.

    python tools/example_store.py

Their journals, and what the job of one of them has measured. A commit holds all events of a moment,
so that the files are few. What is written is always the same.
"""

from __future__ import annotations

import json
import math
import shutil
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from tradewind.journal import journal
from tradewind.model import event as events
from tradewind.model import places
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

_WHY = {
    "interrupted": "interruption notice from the provider",
    "finished": "the job succeeded on every machine",
    "job_failed": "the job has failed with exit code 1",
}


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    store = LocalStore(FOLDER)
    month = {"project": "nlp", "user": "ada", "tags": {"team": "blue"}}
    stays: tuple[tuple[Way, float | None], ...]
    for run_id, name, start, stays, outcome, more in (
        (
            "run-0199f3a1c2d4-5e1d9c", "finetune-8b", "2026-10-31T20:00",
            ((SPOT, 5.5), (SPOT, 2.25), (ON_DEMAND, 1.1)), "succeeded",
            month
            | {"predicted_cost": 240_000_000, "predicted_hours": 9.0}
            | {"amounts": {"tokens": 590e6, "epochs": 3.0}},
        ),
        (
            "run-019a0b77e010-a9c3f1", "pretrain-1.3b", "2026-11-06T09:30",
            ((SPOT, 14.2), (SPOT, 6.4)), "succeeded",
            month
            | {"predicted_cost": 430_000_000, "predicted_hours": 19.0}
            | {"amounts": {"tokens": 4.7e9}},
        ),
        (
            "run-019a1d02b6f8-03be77", "segment", "2026-11-11T16:00", ((LAMBDA, 7.3),), "failed",
            {"project": "vision", "user": "grace", "tags": {"team": "red"}}
            | {"amounts": {"samples": 1.8e6, "epochs": 30.0}},
        ),
        (
            "run-019a2e91f5a3-c40d12", "pretrain-1.3b-b", "2026-11-15T08:00", ((SPOT, None),), "",
            month
            | {"user": "grace", "predicted_cost": 430_000_000, "predicted_hours": 19.0}
            | {"amounts": {"tokens": 4.7e9}},
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
    whole_h = sum(hours or 0 for _, hours in stays)
    written: list[tuple[int, list[events.Event]]] = [
        (start_s, [events.Submitted(run_id=run_id, spec=spec)])
    ]
    saved = 0
    for leg, (way, hours) in enumerate(stays, 1):
        name = f"{run_id}-{leg}"
        request = Request(launch_id=name, run_id=run_id, leg=leg, way=way, hard_stop_s=100_000)
        machine = Machine(
            machine_id=f"i-{run_id[-6:]}{leg:02d}", launch_id=name, run_id=run_id, leg=leg, rank=0,
            launched_s=start_s,
        )  # fmt: skip
        asked = events.LegRequested(request=request, reason="it is the cheapest")
        found = events.MachinesFound(machines=(machine,), reason="the provider launched them")
        up = events.LegUp(leg=leg, reason="every supervisor has reported")
        written += [(start_s, [asked, found]), (start_s + 420, [up])]
        if hours is None:
            going = events.Progress(leg=leg, step=1900.0, saved=1800.0, rate=0.137)
            written.append((start_s + 14_000, [going]))
            continue
        ended_s = start_s + int(hours * 3600)
        last = leg == len(stays)
        done = spec.work if outcome == "succeeded" else 0.6 * spec.work
        begun, reached = saved, done if last else saved + int(done * hours / whole_h)
        saved = int(reached) if last and outcome == "succeeded" else int(reached) // 500 * 500
        cause = (
            "interrupted" if not last else "finished" if outcome == "succeeded" else "job_failed"
        )
        written.append(
            (
                ended_s,
                [
                    events.LegOver(
                        leg=leg, cause=cause, reason=_WHY[cause], step=reached, saved=float(saved)
                    ),
                    events.MachineEnded(
                        machine=replace(machine, ended_s=ended_s), reason="its provider says so"
                    ),
                ],
            )
        )
        if spec.name == "finetune-8b":
            _measure(store, run_id, leg, (begun, int(reached)), (start_s + 600, ended_s))
        start_s = ended_s + 240
    if outcome:
        written[-1][1].extend(
            [
                events.Ended(outcome=outcome, reason="the job has ended"),
                events.Closed(reason="every machine has ended and is accounted for"),
            ]
        )
    for number, (at_s, together) in enumerate(written, 1):
        moment = datetime.fromtimestamp(at_s, UTC)
        journal.append(store, run_id, number, writer="example", at=moment, events=together)


def _measure(
    store: LocalStore, run_id: str, leg: int, steps: tuple[int, int], times: tuple[int, int]
) -> None:
    """Every fiftieth step, and the checkpoints; a curve as trainings have them."""
    (begun, reached), (since_s, until_s) = steps, times
    lines = []
    for step in range(begun + 50 - begun % 50, reached + 1, 50):
        at_s = since_s + (until_s - since_s) * (step - begun) // (reached - begun)
        wobble = (step * 7919 % 101 - 50) / 50
        loss = 1.1 + 1.6 * math.exp(-step / 1800) + 0.05 * wobble
        lines.append({"step": step, "loss": round(loss, 4), "at_s": at_s})
        if step % 500 == 0:
            lines.append(
                {"checkpoint": step, "took_s": 41.5, "bytes": 112_000_000_000, "at_s": at_s + 42}
            )
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    store.create(places.piece(places.metrics(run_id, leg, 0), 0), data)


if __name__ == "__main__":
    main()
