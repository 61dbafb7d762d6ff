"""A plan in a line of a table, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tradewind.base.units import format_chance, format_money, format_two_digits, usd
from tradewind.base.units import format_hours as span
from tradewind.cli import render
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from rich.text import Text

    from tradewind.model.plan import Loser, Plan, Plans

COMMITMENTS = {"1y": "a year", "3y": "three years"}
_ANOTHER_SUM = 0.02  # of the cost, from which what is expected in all is worth a word
MARKETS = {"on_demand": "on demand", "spot": "on spot", "reserved": "that you hold"}


def machines(plan: Plan) -> str:
    return f"{plan.nodes}× {plan.instance_type}" if plan.nodes > 1 else plan.instance_type


def what(plan: Plan) -> str:
    """`2× p5.48xlarge (16× H100-SXM)`; of machines without accelerators their type alone."""
    chips = f" ({plan.accelerators}× {plan.accelerator})" if plan.accelerator else ""
    return machines(plan) + chips


def an_hour(plan: Plan) -> str:
    """Of all its machines, by market."""
    parts = [
        f"{format_money(price * plan.nodes, digits=2)} an hour {MARKETS[market]}"
        for market, price in plan.price_hour.items()
    ]
    return ", ".join(parts)


def at_place(plan: Plan) -> str:
    if plan.own:
        return "of your own"
    return f"at {plan.provider}{_region(plan, ' ')} {on_markets(plan)}"


def at_region(plan: Plan) -> str:
    return plan.provider + _region(plan, " ")


def _region(plan: Plan, before: str) -> str:
    return "" if plan.region in ("", "any") else f"{before}{plan.region}"


def on_markets(plan: Plan) -> str:
    if plan.commit:
        return f"with a commitment of {COMMITMENTS[plan.commit]}"
    return " and ".join(MARKETS[market] for market in plan.markets)


def about_cost(plan: Plan) -> str:
    return f"about {format_money(plan.cost, digits=2)}"


def in_words(plan: Plan) -> str:
    if plan.at_most:
        where = "of your own" if plan.own else f"at {at_region(plan)}"
        return f"{what(plan)} {where}: {an_hour(plan)}"
    return (
        f"{format_money(plan.cost, digits=2)} in {span(plan.hours)}, {machines(plan)} "
        f"({plan.accelerators}× {plan.accelerator}) {at_place(plan)}"
    )


def keeps_limits(plan: Plan, plans: Plans) -> bool:
    limits = plans.workload.limits
    if limits.budget is not None and (
        plan.cost > limits.budget or plan.within_budget < limits.sure
    ):
        return False
    if plans.deadline_hours is None:
        return True
    return plan.hours <= plans.deadline_hours and plan.chance >= limits.sure


def plan_table(plans: Sequence[Plan]) -> None:
    columns = [
        Column("WHERE", keep=8, grow=True, least=9),
        Column("TYPE", keep=9, grow=True, least=12),
        Column("ACCELERATOR", keep=9),
        Column("LAYOUT", keep=5),
        Column("MARKET", keep=7),
        Column("TIME", right=True, keep=10),
        Column("COST", right=True, keep=10),
        Column("SURE", right=True, keep=6),
        Column("HAD", right=True, keep=6),
    ]
    after = [column.title for column in columns].index("COST") + 1
    rows = [_row(plan) for plan in plans]
    if any(expected(plan) for plan in plans):
        columns.insert(after, Column("EXPECTED", right=True, keep=8))
        for row, plan in zip(rows, plans, strict=True):
            row.insert(after, f"${dollars(usd(plan.expected or plan.cost))}")
    if any(_moving(plan) for plan in plans):
        columns.append(Column("MOVING", right=True, keep=5))
        for row, plan in zip(rows, plans, strict=True):
            row.append(_moving(plan))
    render.table(columns, rows)


def expected(plan: Plan) -> str:
    """What is expected to be paid in all, where refusals make that another sum than the cost."""
    if plan.expected and abs(plan.expected - plan.cost) >= _ANOTHER_SUM * plan.cost:
        return format_money(plan.expected, digits=2)
    return ""


def _moving(plan: Plan) -> str:
    """Of a start, and of an hour; empty where both are free."""
    start, hour = plan.bring + plan.bring_once, plan.save
    parts = [f"${dollars(usd(start))}"] if start else []
    return " + ".join(parts + ([f"${dollars(usd(hour))}/h"] if hour else []))


def _row(plan: Plan) -> list[Any]:
    return [
        at_region(plan),
        machines(plan),
        f"{plan.accelerators}× {plan.accelerator}",
        _layout(plan),
        _short_market(plan),
        _hours_with_band(plan),
        _cost_with_band(plan),
        format_chance(plan.chance),
        format_chance(plan.had),
    ]


def _layout(plan: Plan) -> str:
    """`tp4 pp2 z1`: data-parallel is the rest. In full it stands above the table, for the best."""
    lay = plan.layout
    if plan.accelerators == 1:
        return ""
    parts = [f"{name}{lay[name]}" for name in ("tp", "pp", "cp", "ep") if lay.get(name, 1) > 1]
    sharding = str(lay.get("sharding", ""))
    if sharding.startswith("zero"):
        parts.append(f"z{sharding[4:]}")
    elif sharding == "hybrid":
        parts.append("hsdp")
    return " ".join(parts) or ("ddp" if lay else "")


def _short_market(plan: Plan) -> str:
    if plan.own:
        return "own"
    if len(plan.markets) > 1:
        return "mixed"
    if plan.commit:
        return plan.commit
    return {"on_demand": "demand", "spot": "spot", "reserved": "held"}[plan.markets[0]]


def _hours_with_band(plan: Plan) -> Text:
    unit, size = _unit(plan.hours)
    low, middle, high = (
        _digits(hours / size) for hours in (plan.hours_low, plan.hours, plan.hours_high)
    )
    return _with_range(f"{middle}{unit}", f"{low}–{high}")


def _unit(hours: float) -> tuple[str, float]:
    if hours < 1:
        return "m", 1 / 60
    return ("h", 1) if hours < 100 else ("d", 24)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _cost_with_band(plan: Plan) -> Text:
    low, high = usd(plan.cost_low), usd(plan.cost_high)
    thousands = low >= 1000
    small = high < 0.1  # tenths would say nothing
    ends = [
        format_two_digits(value) if small else _digits(value / 1000 if thousands else value)
        for value in (low, high)
    ]
    return _with_range(
        f"${dollars(usd(plan.cost))}", f"{ends[0]}–{ends[1]}{'k' if thousands else ''}"
    )


def _with_range(value: str, band: str) -> Text:
    from rich.text import Text

    return Text(f"{value} ").append(band, style="dim")


def dollars(value: float) -> str:
    if 0 < value < 0.01:
        return format_two_digits(value)
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def how_many(loser: Loser) -> str:
    return f"{render.number(loser.accelerator_count, digits=3)}× {loser.accelerator}"
