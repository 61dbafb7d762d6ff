"""Plans of serving as JSON: what `tradewind plan --json` prints for `serve`. Dollars, a month.

The best plan and its workload are read from it again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from msgspec import ValidationError, convert

from tradewind.base.errors import BadFile
from tradewind.model import Workload
from tradewind.model.serveplan import ServingPlan, ServingPlans
from tradewind.planning.document import workload_json, workload_of

KIND = "tradewind-serving-plan"
_MONEY = {
    "cost": "usd_a_month", "starting": "usd_a_month_starting", "more": "usd_a_month_more",
    "price_hour": "price_usd_per_hour",
}  # fmt: skip


def to_json(plans: ServingPlans) -> dict[str, Any]:
    return {
        "kind": KIND,
        "name": plans.workload.name,
        "workload": workload_json(plans.workload),
        "made_at": plans.made_at.isoformat(),
        "traffic": {
            "requests_per_s": plans.requests_per_s,
            "peak_requests_per_s": plans.peak_requests_per_s,
            "input_tokens": plans.input,
            "output_tokens": plans.output,
            "cv": plans.cv,
            "hours": plans.hours,
        },
        "targets": {
            name: {"ms": 1e3 * seconds, "share": share}
            for name, (seconds, share) in plans.targets.items()
        },
        "best": _plan(plans.best),
        "single_pool": _plan(plans.single),
        "one_site": None if plans.one_site is None else _money(asdict(plans.one_site)),
        "targets_cost": [_money(asdict(one)) for one in plans.targets_cost],
        "alternatives": [_money(asdict(one)) for one in plans.alternatives],
        "growth": [_money(asdict(one)) for one in plans.growth],
        "losers": [_money(asdict(one)) for one in plans.losers],
        "nearest": None if plans.nearest is None else asdict(plans.nearest),
        "offers": plans.offers,
        "layouts": plans.layouts,
        "notes": list(plans.notes),
    }


def _plan(plan: ServingPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    found = _money(asdict(plan))
    found["chance"], found["had"] = plan.chance, plan.had
    found["pools"] = [_money(pool) for pool in found["pools"]]
    return found


def _money(value: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, inner in value.items():
        if name not in _MONEY:
            found[name] = list(inner) if isinstance(inner, tuple) else inner
        elif isinstance(inner, dict):
            found[_MONEY[name]] = {key: one / 1e6 for key, one in inner.items()}
        else:
            found[_MONEY[name]] = None if inner is None else inner / 1e6
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The best of what was planned."""

    plan: ServingPlan
    workload: Workload
    made_at: datetime


def is_one(root: Any) -> bool:
    return isinstance(root, dict) and root.get("kind") == KIND


def read(text: str, origin: str) -> Saved:
    """Raises BadFile, whatever the text is."""
    try:
        root = json.loads(text)
        best, made_at = root["best"], datetime.fromisoformat(root["made_at"])
        plan = None if best is None else convert(_back(best), ServingPlan)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError) as e:
        raise BadFile(
            f"{origin} is no plan of serving: {e}", hint="tradewind plan … --json prints one"
        ) from None
    if plan is None or not plan.pools:
        raise BadFile(f"{origin}: in it no plan keeps every target", hint="other targets or limits")
    if "workload" not in root:
        raise BadFile(
            f"{origin} does not say what it was planned for", hint="tradewind plan … --json again"
        )
    return Saved(plan=plan, workload=workload_of(root["workload"], origin), made_at=made_at)


_NAMES = {shown: name for name, shown in _MONEY.items()}


def _back(value: Any) -> Any:
    """Micro-dollars again; what was a property of the plan is left out."""
    if isinstance(value, list):
        return [_back(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        if name not in _NAMES:
            found[name] = _back(inner)
        elif isinstance(inner, dict):
            found[_NAMES[name]] = {key: round(each * 1e6) for key, each in inner.items()}
        else:
            found[_NAMES[name]] = None if inner is None else round(inner * 1e6)
    if "pools" in found:
        found.pop("chance", None)
    return found
