"""What stands at the top of each file, as a comment: which plan, prices and date it came from, and
the command that makes it again."""

from __future__ import annotations

from tradewind.base.units import format_duration, format_money
from tradewind.export.asked import Asked

_SIGNS = {
    ".json": None, ".jsonl": None, ".lock": None,  # no comments, or somebody else's file
    ".md": ("<!-- ", " -->"), ".html": ("<!-- ", " -->"),
    ".ts": ("// ", ""), ".js": ("// ", ""), ".groovy": ("// ", ""),
}  # fmt: skip
_HASH = ("# ", "")


def over(path: str, text: str, asked: Asked) -> str:
    """The text with its header. What must be in the first line (`#!`, `# syntax=`) stays there."""
    sign = next((s for end, s in _SIGNS.items() if path.endswith(end)), _HASH)
    if sign is None:
        return text
    begin, end = sign
    lines = [f"{begin}{each}{end}".rstrip() for each in words(asked)]
    first, rest = "", text
    if text.startswith(("#!", "# syntax=")):
        first, _, rest = text.partition("\n")
        first += "\n"
    return first + "\n".join(lines) + "\n" + ("" if rest.startswith("\n") else "\n") + rest


def words(asked: Asked) -> list[str]:
    return [
        f"{asked.name}: plan {asked.digest} of {asked.made_at.date().isoformat()}, written by",
        f"  {asked.command}",
        *_plan(asked),
        "Yours to edit: the command above shows what would change, and keeps what you edited.",
    ]


def _plan(asked: Asked) -> list[str]:
    if asked.plan is not None:
        plan = asked.plan
        many = f"{plan.nodes} × " if plan.nodes > 1 else ""
        markets = " and ".join(each.replace("_", " ") for each in plan.markets)
        return [
            f"{many}{plan.instance_type} ({plan.accelerator_count}× {plan.accelerator}) at"
            f" {plan.place}, {markets}:",
            f"  about {format_money(plan.cost, digits=2)} in"
            f" {format_duration(round(plan.hours * 3600))}, {plan.chance:.0%} sure",
            f"Prices: {plan.price_source or 'your own'}"
            + (f", {plan.price_as_of}" if plan.price_as_of else ""),
        ]
    assert asked.serving is not None
    found = []
    for pool in asked.serving.pools:
        most = max(hour.on_demand + hour.spot for hour in pool.hours)
        least = min(hour.on_demand + hour.spot for hour in pool.hours)
        many = f"{least}" if least == most else f"{least} to {most}"
        found += [
            f"{many} × {pool.instance_type} ({pool.accelerator_count}× {pool.accelerator}) at"
            f" {pool.provider}/{pool.region}, {pool.replicas} × {pool.engine} on each,"
            f" {pool.weights}, tp {pool.tp}",
            f"Prices: {pool.price_source or 'your own'}"
            + (f", {pool.price_as_of}" if pool.price_as_of else ""),
        ]
    return [*found, f"About {format_money(asked.serving.cost, digits=2)} a month."]
