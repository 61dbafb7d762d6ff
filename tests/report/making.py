"""Made-up runs for the tests of reports: journals in a store, as controllers write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, SPOT, WAY
from tradewind.api.handle import Run
from tradewind.journal import journal
from tradewind.model import event as events
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.report.figures import Report
from tradewind.store.base import Store
from tradewind.store.memory import MemoryStore

START = datetime(2026, 11, 15, 8, tzinfo=UTC)
RUN_ID = "run-1"
MARKETS = replace(SPEC, work=1000.0, ways=(WAY, SPOT))
"""A thousand steps, a second each, on spot or on demand."""


class Making:
    """A run that is written down event by event, at seconds from its beginning."""

    def __init__(self, store: Store | None = None, spec: Spec = MARKETS, **more: Any) -> None:
        self.store = MemoryStore() if store is None else store
        self.number = self.leg = 0
        self.at_s = 0
        self.step = self.saved = 0.0
        self.write(events.Submitted(run_id=RUN_ID, spec=replace(spec, **more)))

    def write(self, *together: Event, later_s: int = 0) -> Making:
        self.number += 1
        self.at_s += later_s
        at = START + timedelta(seconds=self.at_s)
        journal.append(self.store, RUN_ID, self.number, writer="w", at=at, events=list(together))
        return self

    def stay(self, seconds: int | None, cause: str = "interrupted", way: Way = SPOT) -> Making:
        """A leg of so many seconds of work after ten of starting; None: it goes on. What it makes
        is saved every hundred steps."""
        self.leg += 1
        name = f"{RUN_ID}-{self.leg}"
        request = Request(launch_id=name, run_id=RUN_ID, leg=self.leg, way=way, hard_stop_s=100_000)
        machines = tuple(
            Machine(
                machine_id=f"m{self.leg}" + (f"-{rank}" if rank else ""), launch_id=name,
                run_id=RUN_ID, leg=self.leg, rank=rank,
                launched_s=int(START.timestamp()) + self.at_s,
            )
            for rank in range(way.nodes)
        )  # fmt: skip
        self.write(
            events.LegRequested(request=request, reason="it is the cheapest"),
            events.MachinesFound(machines=machines, reason="the provider launched them"),
        )
        self.write(events.LegUp(leg=self.leg, reason="all have reported"), later_s=10)
        if seconds is None:
            return self
        self.step = self.saved + seconds
        self.saved = self.step if cause == "finished" else self.step // 100 * 100
        over = events.LegOver(
            leg=self.leg, cause=cause, reason="so it is", step=self.step, saved=self.saved,
            tail="ValueError: <b>bad</b>" if cause == "job_failed" else "",
        )  # fmt: skip
        gone = [
            events.MachineEnded(
                machine=replace(machine, ended_s=machine.launched_s + 10 + seconds),
                reason="its provider says so",
            )
            for machine in machines
        ]
        return self.write(over, *gone, later_s=seconds)

    def refused(self) -> Making:
        self.leg += 1
        request = Request(
            launch_id=f"{RUN_ID}-{self.leg}", run_id=RUN_ID, leg=self.leg, way=SPOT,
            hard_stop_s=100_000,
        )  # fmt: skip
        self.write(events.LegRequested(request=request, reason="it is the cheapest"))
        full = events.LaunchRefused(leg=self.leg, kind="no_capacity", reason="there is none")
        return self.write(full, later_s=1)

    def wait(self, seconds: int) -> Making:
        self.at_s += seconds
        return self

    def end(self, outcome: str = "succeeded", reason: str = "the job has ended") -> Making:
        ended = events.Ended(outcome=outcome, reason=reason)
        return self.write(ended, events.Closed(reason="all is accounted for"))

    def measured(self, leg: int, rows: Sequence[dict[str, Any]] | bytes, offset: int = 0) -> Making:
        data = rows if isinstance(rows, bytes) else lines(rows)
        self.store.create(places.piece(places.metrics(RUN_ID, leg, 0), offset), data)
        return self

    def report(self) -> Report:
        return Run(RUN_ID, self.store).report()


def lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def losses(first: int, last: int) -> list[dict[str, Any]]:
    return [{"step": step, "loss": 1000.0 / (step + 100)} for step in range(first, last + 1)]


def finished() -> Making:
    """Two spot legs, taken after 450 and 330 steps, a refusal, and the rest on demand."""
    made = Making(deadline_s=START.timestamp() + 3600)
    made.stay(450).measured(1, losses(1, 450))
    made.wait(20).refused().wait(30)
    made.stay(330).measured(3, losses(401, 730))
    made.stay(300, "finished", WAY).measured(4, losses(701, 1000))
    return made.end()


def of_many(legs: int, spec: Spec = MARKETS) -> Making:
    """So many interruptions, in three places."""
    made = Making(spec=spec, work=100.0 * (legs + 1))
    for number in range(legs):
        zone = "abc"[number % 3]
        made.stay(150, way=replace(SPOT, zone=f"r1-{zone}"))
        made.measured(made.leg, losses(int(made.saved) - 99, int(made.saved) + 40))
        made.wait(5)
    return made.stay(100, "finished", WAY).end()
