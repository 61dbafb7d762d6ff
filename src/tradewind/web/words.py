"""Amounts and plans in words, for pages. Pure."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from tradewind.base.plaintext import one_line
from tradewind.base.units import (
    format_bytes,
    format_chance,
    format_count,
    format_duration,
    format_money,
)
from tradewind.base.units import format_hours as span

if TYPE_CHECKING:
    from tradewind.model.limits import Limits
    from tradewind.model.plan import Plan, Plans
    from tradewind.model.train import Train
    from tradewind.model.workload import Measured, Workload

LONGEST = 160  # characters of a name or a reason

MARKETS = {"on_demand": "on-demand", "spot": "spot", "reserved": "reserved"}
LIMITS = {
    "deadline": "A later deadline",
    "budget": "A larger budget",
    "deadline and budget": "A later deadline and a larger budget",
    "markets": "Other markets",
    "regions": "Other regions",
    "providers": "Other providers",
    "accelerators": "Other accelerators",
    "exclude": "Nothing excluded",
    "carbon": "More carbon",
    "max_nodes": "More machines",
    "max_accelerators": "More accelerators",
}


def clean(text: str, longest: int = LONGEST) -> str:
    """On one line, of a sane length, without what HTML has no way to write."""
    text = one_line(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def html(text: str) -> str:
    return escape(clean(text))


def prose(text: str) -> str:
    """Sentences: longer than a name or a reason."""
    return escape(clean(text, 20 * LONGEST))


def money(micros: int) -> str:
    """`$4,798`, `$23.58`: cents only where they say something."""
    if micros >= 100_000_000:
        return format_money(micros, digits=0)
    if 0 < micros < 100_000:
        return format_money(micros, digits=4)
    return format_money(micros, digits=2)


def chance(share: float) -> str:
    return format_chance(share).replace(">", "over ").replace("<", "under ")


def source(plan: Plan) -> str:
    """Without the folders of a file of one's own: pages are sent on."""
    return re.sub(r"^[~/]\S*/", "", plan.price_source)


def markets(plan: Plan) -> str:
    if plan.own:
        return "your own"
    if plan.commit:
        return f"committed for {plan.commit}"
    return " with ".join(MARKETS.get(m, m.replace("_", "-")) for m in plan.markets)


def machines(plan: Plan) -> str:
    return f"{plan.nodes} × {plan.instance_type}" if plan.nodes > 1 else plan.instance_type


def chips(plan: Plan) -> str:
    return f"{plan.accelerators:,} × {plan.accelerator}"


def place(plan: Plan) -> str:
    return f"{plan.provider} {plan.zone or plan.region}".strip()


def where(plan: Plan) -> str:
    return "your own" if plan.own else f"{markets(plan)} at {place(plan)}"


def recommendation(plans: Plans) -> str:
    """One sentence: what to take, what it costs, when it is done and how surely."""
    best, limits = plans.best, plans.workload.limits
    if best is None:
        wanted = []
        if plans.deadline_hours is not None:
            wanted.append(f"within {span(plans.deadline_hours)}")
        if limits.budget is not None:
            wanted.append(f"for {money(limits.budget)}")
        asked = " ".join(wanted) or "within these limits"
        return f"Nothing among {plans.candidates:,} ways finishes this work {asked}."
    if best.own:
        doing = f"Use your own {machines(best)} ({chips(best)})"
    elif best.markets == ("reserved",) and not best.commit:
        doing = f"Use the {machines(best)} ({chips(best)}) that you hold at {place(best)}"
    else:
        market = f"on {where(best)}" if best.markets[0] == "spot" else where(best)
        doing = f"Rent {machines(best)} ({chips(best)}) {market}"
    text = f"{doing}: about {money(best.cost)} in {span(best.hours)}"
    if plans.deadline_hours is not None:
        text += f", {chance(best.chance)} likely to be done within {span(plans.deadline_hours)}"
    if limits.budget is not None:
        text += f", {chance(best.within_budget)} likely for {money(limits.budget)} at most"
    if best.had < 0.995:
        text += f"; {chance(best.had)} likely to be available"
    return text + "."


# -- the workload --------------------------------------------------------------------------------


def summary(workload: Workload) -> list[tuple[str, str]]:
    """Names and words of everything that was asked. The command stays out: pages are sent on, and
    commands hold secrets."""
    found: list[tuple[str, str]] = []
    if workload.train is not None:
        found += _train(workload.train)
    if workload.work is not None:
        found += _measured(workload.work)
    if workload.machines is not None:
        found.append(("Machines", workload.machines.words))
    if workload.data is not None:
        data = workload.data
        size = f"{format_bytes(data.size_bytes, digits=3)} " if data.size_bytes else ""
        where = "/".join(filter(None, (data.provider, data.region)))
        found.append(("Data", f"{size}at {where or data.uri}"))
    every = workload.checkpoint.every_s
    found.append(("Checkpoints", f"every {format_duration(every)}" if every else "chosen"))
    return found


def asked(plans: Plans) -> list[tuple[str, str]]:
    limits = plans.workload.limits
    found = [
        ("Deadline", "none" if plans.deadline_hours is None else _deadline(plans)),
        ("Budget", "none" if limits.budget is None else money(limits.budget)),
    ]
    if plans.deadline_hours is not None:
        found.append(("Confidence", f"{limits.sure * 100:.4g}%"))
    if limits.late is not None:
        found.append(("Late", f"{money(limits.late)} an hour"))
    return found + _places(limits)


def _deadline(plans: Plans) -> str:
    moment = plans.workload.limits.deadline
    words = span(plans.deadline_hours or 0)
    return f"{words}, until {moment:%Y-%m-%d %H:%M %Z}" if moment else words


def _places(limits: Limits) -> list[tuple[str, str]]:
    found = []
    for name, words in (
        ("providers", "Providers"),
        ("regions", "Regions"),
        ("exclude", "Excluded"),
        ("markets", "Markets"),
        ("accelerators", "Accelerators"),
    ):
        chosen = getattr(limits, name)
        if chosen:
            found.append((words, ", ".join(MARKETS.get(one, one) for one in chosen)))
    if limits.max_nodes:
        found.append(("Machines", f"at most {limits.max_nodes}"))
    if limits.max_accelerators:
        found.append(("Accelerators", f"at most {limits.max_accelerators}"))
    if limits.commit:
        found.append(("Commitment", f"up to {limits.commit}"))
    if limits.assume_capacity:
        found.append(("Capacity", f"assumed {', '.join(limits.assume_capacity)}"))
    if limits.carbon:
        found.append(("Carbon", limits.carbon))
    return found


def _train(train: Train) -> list[tuple[str, str]]:
    model = train.model if isinstance(train.model, str) else train.model.name
    how = f" with {'QLoRA' if train.qlora else 'LoRA'} of rank {train.lora or train.qlora}"
    found = [("Model", model + (how if train.lora or train.qlora else ""))]
    tokens = train.total_tokens
    amount = (
        f"{format_count(tokens, digits=3)} tokens"
        if tokens
        else f"{format_count(train.total_samples, digits=3)} samples"
    )
    found.append(("Training", f"{amount} in {train.total_steps:,} steps"))
    batch = f"{train.sequences_per_step:,} samples"
    if train.sequence:
        batch = f"{train.sequences_per_step:,} sequences of {train.sequence:,} tokens"
    found.append(("Batch", batch))
    found.append(("Numbers", f"{train.precision}, {train.optimizer}"))
    if train.stack:
        found.append(("Software", train.stack))
    return found


def _measured(work: Measured) -> list[tuple[str, str]]:
    found = [
        ("Work", f"{span(work.seconds / 3600)} on {work.count} × {work.accelerator}, as measured"),
        ("More machines", "make it faster" if work.scales else "do not make it faster"),
    ]
    if work.memory_bytes:
        found.append(("Memory", f"{format_bytes(work.memory_bytes, digits=3)} an accelerator"))
    return found
