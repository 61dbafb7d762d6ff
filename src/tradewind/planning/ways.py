"""From a plan to what a run is told: the ways on which its work may be done. Pure.

The plan's own machines on each of its markets come first, then those of other plans that keep the
same limits, so that a run which turns out slower than thought has somewhere to go. Work is counted
in optimizer steps where there are any, else in seconds of the plan's own machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.model.job import REPORT, RETRIES, STOP
from tradewind.model.run import Facts, Spec, Way
from tradewind.planning import finish

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.model import Workload
    from tradewind.model.plan import Plan


def spec(
    plan: Plan,
    workload: Workload,
    now: datetime,
    *,
    others: Sequence[Plan] = (),
    facts: Callable[[str], Facts] = lambda provider: Facts(),
    job: dict[str, Any] | None = None,
    project: str = "",
    user: str = "",
    tags: dict[str, str] | None = None,
) -> Spec:
    """`facts` tells how a provider behaves, by its name."""
    if workload.run is None:
        raise InvalidValue(
            f"workload {workload.name} says nothing about what to run",
            hint="add a section `run:` with `command:` to it",
        )
    work = float(workload.total_steps or plan.work_hours * 3600)
    ways = tuple(way for each in (plan, *others) for way in _ways(each, work, facts(each.provider)))
    deadline = workload.limits.deadline_at(now)
    on_idle = workload.run.on_idle or (STOP if plan.at_most else REPORT)
    longest_s = round(plan.hours * 3600) if plan.at_most else None
    return Spec(
        name=workload.name,
        work=work,
        steps=workload.total_steps is not None,
        untold=plan.at_most,
        ways=ways,
        deadline_s=deadline.timestamp() if deadline else None,
        hard=workload.limits.hard,
        late=workload.limits.late,
        budget=workload.limits.budget,
        tries=1 + (RETRIES if workload.run.retries is None else workload.run.retries),
        retry_on=workload.run.retry_on,
        max_duration_s=workload.run.max_duration_s or longest_s,
        idle_s=workload.run.idle_s,
        idle_stop=on_idle == STOP,
        checkpoint_every_s=plan.checkpoint_every_s,
        checkpoint_bytes=plan.checkpoint_bytes,
        checkpoint_keep=workload.checkpoint.keep,
        checkpoint_stall_s=(
            None
            if workload.checkpoint.every_s is not None
            else finish.stall_s(plan.checkpoint_bytes, plan.nodes)
        ),
        data=workload.data.uri if workload.data else "",
        data_bytes=(workload.data.size_bytes or 0) if workload.data else 0,
        job={"command": workload.run.command}
        | ({"setup": workload.run.setup} if workload.run.setup else {})
        | ({"env": dict(workload.run.env)} if workload.run.env else {})
        | ({"secrets": dict(workload.run.secrets)} if workload.run.secrets else {})
        | ({"outputs": list(workload.run.outputs)} if workload.run.outputs else {})
        | ({"include": list(workload.run.include)} if workload.run.include else {})
        | ({"image": workload.run.image} if workload.run.image else {})
        | (job or {}),
        project=project,
        user=user,
        tags=tags or {},
        amounts=workload.train.amounts if workload.train else {},
        predicted_cost=None if plan.at_most else plan.cost,
        predicted_hours=None if plan.at_most else plan.hours,
        disk_bytes=(workload.machines.disk_bytes or 0) if workload.machines else 0,
    )


def _ways(plan: Plan, work: float, facts: Facts) -> list[Way]:
    """One for each market."""
    return [
        Way(
            provider=plan.provider,
            region=plan.region,
            zone=plan.zone,
            instance_type=plan.instance_type,
            # A commitment lowers the price of what is launched on demand.
            market="on_demand" if plan.commit else market,
            nodes=plan.nodes,
            price=plan.price_hour[market],
            rate=work / (plan.work_hours * 3600),
            start_s=plan.startup_hours * 3600,
            bring=plan.bring,
            bring_once=plan.bring_once,
            save=plan.save,
            facts=facts,
            layout=plan.layout | {"precision": plan.precision} if plan.layout else {},
        )
        for market in plan.markets
    ]
