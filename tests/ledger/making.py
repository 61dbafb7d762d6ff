"""What made-up runs cost, for the tests of reports, budgets and exports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, SPOT, WAY
from tradewind.ledger.postings import Posting, RunCost, cost_of
from tradewind.model.event import (
    Ended,
    Event,
    LegRequested,
    LegUp,
    MachineEnded,
    MachinesFound,
    MachineUsed,
    Stored,
    Submitted,
)
from tradewind.model.run import Machine, Request, Way
from tradewind.model.usage import Rates, Usage

HOUR_S = 3600
RATES = Rates(
    writes=5_000_000, reads=400_000, gb_in=10_000, gb_out=20_000, gb_month=23_000, kept_s=86_400
)
USED = Usage(writes=12_345, reads=777, bytes_in=10**11, bytes_out=10**10, byte_s=10**16, gone=1)


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


NOON_S = moment("2026-11-15T12:00")


def events_of(
    run_id: str,
    start_s: int,
    *stays: tuple[Way, int | None],
    outcome: str = "succeeded",
    nodes: int = 1,
    **spec: Any,
) -> list[Event]:
    """One leg for each stay, right after the other; a machine of a stay without an end lives."""
    ways = spec.pop("ways", (WAY, SPOT))
    events: list[Event] = [
        Submitted(run_id=run_id, spec=replace(SPEC, name=f"of {run_id}", ways=ways, **spec))
    ]
    for leg, (way, seconds) in enumerate(stays, 1):
        name = f"{run_id}-{leg}"
        request = Request(launch_id=name, run_id=run_id, leg=leg, way=way, hard_stop_s=10 * HOUR_S)
        events.append(LegRequested(request=request, reason="r"))
        machines = tuple(
            Machine(
                machine_id=f"{name}-m{rank}",
                launch_id=name,
                run_id=run_id,
                leg=leg,
                rank=rank,
                launched_s=start_s,
            )
            for rank in range(nodes)
        )
        events.append(MachinesFound(machines=machines, reason="r"))
        events.append(LegUp(leg=leg, reason="r"))
        if way.rates is not None:
            events += [MachineUsed(machine_id=m.machine_id, leg=leg, usage=USED) for m in machines]
        if seconds is None:
            continue
        start_s += seconds
        events += [MachineEnded(machine=replace(m, ended_s=start_s), reason="r") for m in machines]
    if outcome:
        events.append(Ended(outcome=outcome, reason="r"))
        events.append(Stored(bytes=10**9, byte_s=10**15))
    return events


def run_cost(
    run_id: str, start_s: int, *stays: tuple[Way, int | None], now_s: int = NOON_S, **more: Any
) -> RunCost:
    return cost_of(run_id, events_of(run_id, start_s, *stays, **more), now_s)


def postings_of(*run_costs: RunCost) -> list[Posting]:
    return [posting for run_cost in run_costs for posting in run_cost.postings]


names = st.sampled_from(["", "a", "b"])


@st.composite
def run_costs(draw: st.DrawFn) -> list[RunCost]:
    """Up to four runs of some days, with everything that a posting can be."""
    made = []
    for number in range(draw(st.integers(0, 4))):
        stays = draw(
            st.lists(
                st.tuples(
                    st.sampled_from([WAY, SPOT, replace(WAY, rates=RATES)]),
                    st.one_of(st.none(), st.integers(0, 5 * 86_400)),
                    st.integers(0, 10**6),
                    st.sampled_from([1, 60, 3600]),
                ),
                max_size=3,
            )
        )
        made.append(
            run_cost(
                f"run-{number}",
                NOON_S - draw(st.integers(0, 40 * 86_400)),
                *(
                    (
                        replace(
                            way, start_cost=cost, facts=replace(way.facts, billing_step_s=step_s)
                        ),
                        seconds,
                    )
                    for way, seconds, cost, step_s in stays
                ),
                outcome=draw(st.sampled_from(["", "succeeded"])),
                nodes=draw(st.integers(1, 2)),
                ways=draw(st.sampled_from([(WAY, SPOT), (SPOT,)])),
                project=draw(names),
                user=draw(names),
                tags={"team": draw(names)},
                predicted_cost=draw(st.one_of(st.none(), st.integers(0, 10**9))),
            )
        )
    return made
