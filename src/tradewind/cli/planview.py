"""What people see of plans: words, tables, and why the rest lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tradewind.cli import render
from tradewind.cli.render import Column
from tradewind.cli.schema import limit_words, work_words
from tradewind.errors import NotFound
from tradewind.units import format_bytes, format_duration, format_money, usd

if TYPE_CHECKING:
    from rich.text import Text

    from tradewind.catalog import Catalog
    from tradewind.model import Workload
    from tradewind.model.plan import Loser, Plan, Plans

_FRONT = 6
_FAMOUS = 6
# Accelerators that people ask for, by how their names begin; the ones asked for most come first.
_FAMILIES = (
    "H100", "A100", "TPU", "RTX4090", "V100", "H200", "B200", "L40S", "L4", "A10", "MI300X",
    "Trainium", "T4",
)  # fmt: skip
_KINDS = {
    "money": "dearer",
    "time": "too slow or too unsure",
    "memory": "without the memory",
    "price": "without a price to trust",
    "limits": "outside your limits",
    "quota": "over your quota",
    "layout": "without a layout that suits",
    "chip": "unfit to train this",
}
_MARKETS = {"on_demand": "on demand", "spot": "on spot", "reserved": "that you hold"}
_LIMITS = {
    "deadline": "the deadline",
    "budget": "the budget",
    "markets": "markets",
    "regions": "regions",
    "providers": "providers",
    "accelerators": "accelerators",
    "exclude": "exclude",
    "max_nodes": "max_nodes",
    "max_accelerators": "max_accelerators",
}


class Named(NamedTuple):
    provider: str
    instance_type: str
    accelerator: str


# -- the whole answer ----------------------------------------------------------------------------


def show(plans: Plans) -> None:
    if plans.best is None:
        _show_what_would_do(plans)
    else:
        render.paragraph(recommendation(plans), bold=True)
        for line in _details(plans.best, plans):
            render.paragraph(line, indent="  ", dim=True)
        click.echo()
        _table(plans.plans)
        _show_later(plans)
        shown = _show_front(plans, plans.plans)
        _show_losers(plans, [*plans.plans, *shown])
    _show_assumptions(plans)


def recommendation(plans: Plans) -> str:
    """One line."""
    best = plans.best
    assert best is not None
    verb = "Use" if best.own or "reserved" in best.markets else "Rent"
    sure = ""
    if plans.deadline_hours is not None:
        sure = f", {_share(best.chance)} sure"
    return (
        f"{verb} {machines(best)} ({best.accelerators}× {best.accelerator}) {_at(best)}: "
        f"{_about(best)} in {_span(best.hours)}{sure}."
    )


def machines(plan: Plan) -> str:
    return f"{plan.nodes}× {plan.instance_type}" if plan.nodes > 1 else plan.instance_type


def _at(plan: Plan) -> str:
    if plan.own:
        return "of your own"
    return f"at {plan.provider}{_region(plan, ' ')} {_market(plan)}"


def _region(plan: Plan, before: str) -> str:
    return "" if plan.region in ("", "any") else f"{before}{plan.region}"


def _market(plan: Plan) -> str:
    return " and ".join(_MARKETS[market] for market in plan.markets)


def _about(plan: Plan) -> str:
    return f"about {format_money(plan.cost, digits=2)}"


def _details(best: Plan, plans: Plans) -> list[str]:
    """How the best plan is to be carried out, and what its money goes to."""
    lines = [f"{plans.workload.name}: {work_words(plans.workload)}"]
    if limits := limit_words(plans.workload):
        lines.append(f"limits: {limits}")
    how = []
    if best.layout_words:
        micro = best.layout.get("micro_batch")
        how.append(best.layout_words + (f"; micro-batch {micro}" if micro else ""))
        how.append(f"{best.precision}, {best.stack}")
        how.append(f"{best.memory_gb:.0f} of {best.capacity_gb:.0f} GB")
    every = format_duration(best.checkpoint_every_s, parts=2)
    size = f" of {format_bytes(best.checkpoint_bytes, digits=2)}" if best.checkpoint_bytes else ""
    how.append(f"a checkpoint{size} every {every}")
    lines.append("how: " + "; ".join(how))
    money = [
        f"{name.replace('_', '-')} {format_money(micros, digits=2)}"
        for name, micros in sorted(best.costs.items(), key=lambda item: -item[1])
        if micros >= 5_000
    ]
    prices = " and ".join(
        f"{format_money(price, digits=2)} {'held' if market == 'reserved' else _MARKETS[market]}"
        for market, price in best.price_hour.items()
    )
    taken = ""
    if "spot" in best.markets and best.interruptions >= 0.2:
        taken = f"; taken away {_times(best.interruptions)}"
    lines.append(f"money: {', '.join(money) or 'none'}; a machine-hour is {prices}{taken}")
    lines += _own_verdict(best, plans)
    return lines


def _times(number: float) -> str:
    return f"about {number:.0f} times" if number >= 1.5 else "perhaps once"


def _own_verdict(best: Plan, plans: Plans) -> list[str]:
    """Where there are machines of one's own: are they the better choice?"""
    if best.own:
        rented = next((plan for plan in plans.plans if not plan.own), None)
        if rented is None:
            return ["nothing that can be rented keeps the limits"]
        return [
            f"renting would cost more: {machines(rented)} {_at(rented)} is {_about(rented)} "
            f"in {_span(rented.hours)}"
        ]
    cheaper = "what you hold" if "reserved" in best.markets else "renting"
    return [
        f"your own {loser.instance_type} would take {_span(loser.hours)} and "
        f"{format_money(loser.cost, digits=2)}: "
        + (f"{cheaper} is cheaper" if loser.cost > best.cost else f"it {loser.why}")
        for loser in plans.losers
        if loser.own and loser.hours is not None and loser.cost is not None
    ]


# -- tables --------------------------------------------------------------------------------------


def keeps_limits(plan: Plan, plans: Plans) -> bool:
    limits = plans.workload.limits
    if limits.budget is not None and plan.cost > limits.budget:
        return False
    if plans.deadline_hours is None:
        return True
    return plan.hours <= plans.deadline_hours and plan.chance >= limits.confidence


def _table(plans: Sequence[Plan]) -> None:
    columns = [
        Column("WHERE", keep=8, grow=True, least=12),
        Column("TYPE", keep=9, grow=True, least=16),
        Column("ACCELERATOR", keep=9),
        Column("LAYOUT", keep=5),
        Column("MARKET", keep=7),
        Column("TIME", right=True, keep=10),
        Column("COST", right=True, keep=10),
        Column("SURE", right=True, keep=6),
    ]
    render.table(columns, [_row(plan) for plan in plans])


def _row(plan: Plan) -> list[Any]:
    return [
        plan.provider + _region(plan, " "),
        machines(plan),
        f"{plan.accelerators}× {plan.accelerator}",
        _layout(plan),
        _short_market(plan),
        _hours_with_band(plan),
        _cost_with_band(plan),
        _share(plan.chance),
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
    ends = [_digits(value / 1000 if thousands else value) for value in (low, high)]
    return _with_range(
        f"${_dollars(usd(plan.cost))}", f"{ends[0]}–{ends[1]}{'k' if thousands else ''}"
    )


def _with_range(value: str, band: str) -> Text:
    from rich.text import Text

    return Text(f"{value} ").append(band, style="dim")


def _dollars(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def _share(chance: float) -> str:
    """Never a promise: what is nearly certain is >99%."""
    return ">99%" if chance > 0.99 else f"{int(100 * chance)}%" if chance >= 0.01 else "<1%"


def _span(hours: float) -> str:
    if hours >= 24 * 365 * 10:
        return "decades"
    seconds = round(hours * 3600)
    return format_duration(seconds if seconds < 60 else seconds // 60 * 60, parts=2)


def _show_later(plans: Plans) -> None:
    """What another day would save, and what a day less would cost."""
    best = plans.best
    if best is None or plans.deadline_hours is None:
        return
    parts, before = [], best.cost
    for later in plans.later:
        by = _span(later.deadline_hours)
        if later.deadline_hours < plans.deadline_hours:
            said = "nothing would do"
            if later.plan is not None:
                said = format_money(later.plan.cost, digits=2)
            parts.append(f"in {by}: {said}")
        elif later.plan is not None and later.plan.cost < 0.98 * before:
            before = later.plan.cost
            saved = format_money(best.cost - later.plan.cost, digits=2)
            parts.append(f"in {by}: {format_money(later.plan.cost, digits=2)} (saves {saved})")
    if len(parts) < 2:
        parts.append("more time would save little")
    render.paragraph(f"Another deadline: {'; '.join(parts)}.", indent="  ")


def _show_front(plans: Plans, few: Sequence[Plan]) -> list[Plan]:
    """What less time would cost, and what more time would save. Gives what was shown."""
    assert plans.best is not None
    keys = {_key(plan) for plan in few}
    rest = [plan for plan in plans.front if _key(plan) not in keys]
    fast = [plan for plan in rest if plan.hours < plans.best.hours]
    slow = [plan for plan in rest if plan.hours >= plans.best.hours]
    shown: list[Plan] = []
    for title, chosen in (
        ("\nFaster for more:", _spread(fast, _FRONT)),
        ("\nCheaper, but not within your limits:", _spread(slow, _FRONT // 2)),
    ):
        if chosen:
            click.echo(title)
            _table(chosen)
            shown += chosen
    return shown


def _key(plan: Plan) -> tuple[str, str, str, int, tuple[str, ...]]:
    return plan.provider, plan.region, plan.instance_type, plan.nodes, plan.markets


def _spread(plans: Sequence[Plan], most: int) -> list[Plan]:
    """So many of them, with even steps between their times; the first and the last always."""
    if len(plans) <= most:
        return list(plans)
    first, last = log(plans[0].hours), log(plans[-1].hours)
    found: list[Plan] = []
    for step in range(most):
        wanted = first + (last - first) * step / (most - 1)
        nearest = min(plans, key=lambda plan: abs(log(plan.hours) - wanted))
        if nearest not in found:
            found.append(nearest)
    return found


# -- what lost -----------------------------------------------------------------------------------


def _show_losers(plans: Plans, few: Iterable[Plan]) -> None:
    if not plans.losers:
        return
    shown = {family for plan in few if (family := _family(plan.accelerator))}
    famous = _famous(plans.losers, shown)
    if famous:
        click.echo("\nWhy others lost:")
        rows = [[_count(loser), loser.provider, loser.instance_type, loser.why] for loser in famous]
        render.table(
            [
                Column("ACCELERATOR", keep=9),
                Column("PROVIDER", keep=7),
                Column("TYPE", keep=8, grow=True),
                Column("WHY", keep=10, grow=True, least=56),
            ],
            rows,
        )
    click.echo()
    hint = "--why TYPE explains one, --all-losers lists them"
    render.paragraph(f"{_counts(plans)}. {hint}.", dim=True)


def _counts(plans: Plans) -> str:
    losers = plans.losers
    other = "other types" if plans.best else "types"
    parts = [
        f"{number:,} {_KINDS.get(kind, kind)}"
        for kind, number in Counter(loser.kind for loser in losers).most_common()
    ]
    return f"{len(losers):,} {other} lost: {', '.join(parts)}"


def _family(accelerator: str) -> str:
    for name in _FAMILIES:
        if accelerator.startswith(name) and not accelerator[len(name) :][:1].isdigit():
            return name
    return ""


def _famous(losers: Iterable[Loser], shown: set[str]) -> list[Loser]:
    """Of each well-known family that the table does not show, the one that came nearest."""
    by_family: dict[str, Loser] = {}
    for loser in losers:
        family = _family(loser.accelerator)
        if not family or family in shown or loser.kind == "limits":
            continue
        if family not in by_family or _nearness(loser) < _nearness(by_family[family]):
            by_family[family] = loser
    return [by_family[name] for name in _FAMILIES if name in by_family][:_FAMOUS]


def _nearness(loser: Loser) -> tuple[int, float, float]:
    """First what kept the deadline, by its cost; then the fastest; then machines of eight."""
    order = {"money": 0, "time": 1, "memory": 2, "price": 4}
    measure = loser.cost if loser.kind == "money" else loser.hours
    return (
        order.get(loser.kind, 3),
        float(measure or 0),
        abs(loser.accelerator_count - 8),
    )


def _count(loser: Loser) -> str:
    return f"{render.number(loser.accelerator_count, digits=3)}× {loser.accelerator}"


def losers(plans: Plans) -> None:
    """All of them, what came nearest first."""
    order = sorted(plans.losers, key=lambda loser: (loser.cost is None, *_nearness(loser)))
    render.table(
        [
            Column("PROVIDER", keep=7),
            Column("TYPE", keep=9, grow=True),
            Column("ACCELERATOR", keep=8),
            Column("TIME", right=True, keep=5),
            Column("COST", right=True, keep=5),
            Column("WHY", keep=10, grow=True, least=56),
        ],
        [
            [
                loser.provider,
                loser.instance_type,
                _count(loser),
                "" if loser.hours is None else _span(loser.hours),
                "" if loser.cost is None else f"${_dollars(usd(loser.cost))}",
                loser.why,
            ]
            for loser in order
        ],
    )
    render.note(f"\n{_counts(plans)}.")


# -- one type ------------------------------------------------------------------------------------


def types_called(catalog: Catalog, text: str) -> list[Named]:
    """`TYPE` or `provider/TYPE`, in any capitals, of whoever sells it."""
    from tradewind.catalog.names import nearest

    table = catalog.table.columns
    everything = dict.fromkeys(
        Named(table["provider"][row], table["instance_type"][row], table["accelerator"][row])
        for row in range(len(catalog.table))
        if table["accelerator"][row]
    )
    wanted = text.strip().lower()
    found = [
        one
        for one in everything
        if wanted in (one.instance_type.lower(), f"{one.provider}/{one.instance_type}".lower())
    ]
    if found:
        return found
    names = list(dict.fromkeys(one.instance_type for one in everything))
    inside = [name for name in names if len(wanted) > 2 and wanted in name.lower()][:4]
    close = inside or list(nearest(text, names))
    if not close and wanted:
        chips = {one.accelerator for one in everything if wanted in one.accelerator.lower()}
        close = [one.instance_type for one in everything if one.accelerator in chips][:4]
    raise NotFound(
        f"no type of machine with accelerators is called {text!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else "`tradewind offers` lists types",
        choices=close,
    )


def why(plans: Plans, named: Sequence[Named], ways: Sequence[Plan], as_json: bool) -> None:
    keys = {(one.provider, one.instance_type) for one in named}
    lost = [loser for loser in plans.losers if (loser.provider, loser.instance_type) in keys]
    best = plans.best
    won = best is not None and (best.provider, best.instance_type) in keys
    order = sorted(ways, key=lambda plan: (not keeps_limits(plan, plans), plan.cost))
    if as_json:
        from tradewind.plan.document import loser_json, plan_json

        render.print_json(
            {
                "won": won,
                "lost": [loser_json(loser) for loser in lost],
                "ways": [plan_json(plan) for plan in order],
            }
        )
        return
    if won:
        click.secho(f"{best.instance_type} of {best.provider} won." if best else "", bold=True)
        render.paragraph(_why_it_won(plans))
    for loser in lost:
        render.paragraph(
            f"{loser.instance_type} of {loser.provider} ({_count(loser)}) lost: {loser.why}.",
            bold=True,
        )
        if best is not None and loser.hours is not None and loser.cost is not None:
            render.paragraph(
                f"At best it takes {_span(loser.hours)} and {format_money(loser.cost, digits=2)}; "
                f"{machines(best)} takes {_span(best.hours)} and "
                f"{format_money(best.cost, digits=2)}."
            )
    if order:
        good = sum(keeps_limits(plan, plans) for plan in order)
        click.echo(f"\n{render.count(len(order), 'way')} to use it, {good} within your limits:")
        _table(order)
    elif won or lost:
        render.note("There is no way to use it at all.")


def _why_it_won(plans: Plans) -> str:
    best = plans.best
    assert best is not None
    second = next((p for p in plans.plans if p.instance_type != best.instance_type), None)
    if second is None:
        return "Nothing else keeps every limit."
    more = second.cost / max(best.cost, 1) - 1
    much = f"{more:.0%} more" if more >= 0.01 else "hardly more"
    if more >= 1:
        much = f"{more + 1:.1f}×"
    return (
        f"It is the cheapest that keeps every limit: {format_money(best.cost, digits=2)} in "
        f"{_span(best.hours)}. The next type, {machines(second)} at {second.provider}, costs "
        f"{much}: {format_money(second.cost, digits=2)} in {_span(second.hours)}."
    )


def instead(work: Workload, theirs: Plan, better: Sequence[Plan]) -> None:
    """Right-sizing: the machine that was named, and what does its work for less."""
    render.paragraph(f"{work.name}: {work_words(work)}", dim=True)
    if not better:
        render.paragraph(
            f"Keep {machines(theirs)}: nothing is as fast and cheaper.",
            bold=True,
        )
    else:
        first = better[0]
        saved = 1 - first.cost / max(theirs.cost, 1)
        render.paragraph(
            f"Instead of {machines(theirs)} {_at(theirs)} ({_span(theirs.hours)}, {_about(theirs)})"
            f" take {machines(first)} {_at(first)}: {saved:.0%} less, {_about(first)} in "
            f"{_span(first.hours)}.",
            bold=True,
        )
    click.echo()
    _table([theirs, *better])


# -- nothing is right ----------------------------------------------------------------------------


def _show_what_would_do(plans: Plans) -> None:
    click.secho(f"{plans.workload.name}: {work_words(plans.workload)}", bold=True)
    if limits := limit_words(plans.workload):
        render.paragraph(f"limits: {limits}", indent="  ", dim=True)
    if plans.relaxations:
        click.echo("\nNothing keeps every limit. Any of these changes would do:")
        for change in sorted(plans.relaxations, key=lambda r: r.plan.cost):
            plan = change.plan
            render.paragraph(f"  {change.why}: {_in_words(plan)}", indent="    ")
    elif plans.front:
        click.echo("\nNothing keeps every limit, and giving way on one alone is not enough.")
        fastest, cheapest = plans.front[0], plans.front[-1]
        for words, plan in (("fastest", fastest), ("cheapest", cheapest)):
            render.paragraph(f"  the {words} of all: {_in_words(plan)}", indent="    ")
    else:
        click.echo("\nNothing can do this work at all.")
    if plans.front:
        click.echo("\nWithout limits on time and money:")
        _table(_spread(plans.front, _FRONT))
    _show_losers(plans, ())


def _in_words(plan: Plan) -> str:
    return (
        f"{format_money(plan.cost, digits=2)} in {_span(plan.hours)}, {machines(plan)} "
        f"({plan.accelerators}× {plan.accelerator}) {_at(plan)}"
    )


def what_binds(plans: Plans) -> str:
    """For the error: which limit to give way on."""
    if plans.relaxations:
        cheapest = min(plans.relaxations, key=lambda r: r.plan.cost)
        limits = " or ".join(_LIMITS.get(r.limit, r.limit) for r in plans.relaxations)
        words = f"{cheapest.why} it would cost {format_money(cheapest.plan.cost, digits=2)}"
        if "together" in cheapest.why:
            words = f"{cheapest.why} it would do"
        return f"what binds is {limits}; {words}"
    if plans.front:
        return "more than one limit must give way: deadline and budget together"
    kinds = Counter(loser.kind for loser in plans.losers if loser.kind != "price")
    if kinds:
        return f"most types are {_KINDS.get(kinds.most_common(1)[0][0])}; --all-losers lists all"
    return "--all-losers says why each type cannot do it"


def _show_assumptions(plans: Plans) -> None:
    prices = ""
    if plans.prices_from:
        until = f" to {plans.prices_until}" if plans.prices_until != plans.prices_from else ""
        prices = f"; prices of {plans.prices_from}{until}"
    text = (
        f"{render.count(plans.candidates, 'way')} of {plans.offers:,} offers and "
        f"{plans.layouts:,} layouts weighed{prices}; ranges hold in 4 of 5 cases"
    )
    notes = [text, *(note[:1].upper() + note[1:] for note in plans.notes)]
    render.paragraph(". ".join(notes) + ".", dim=True)
