"""Plans made by hand, for pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tradewind.base.units import Micros
from tradewind.model.limits import Limits
from tradewind.model.plan import Loser, Plan, Plans, Relaxation
from tradewind.model.train import Train
from tradewind.model.workload import Workload

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def plan(cost: float = 100.0, hours: float = 10.0, **other: Any) -> Plan:
    """Of so many dollars and hours."""
    micros = round(cost * 1e6)
    given: dict[str, Any] = {
        "provider": "aws", "region": "us-east-1", "zone": "use1-az1",
        "instance_type": "p5.48xlarge", "accelerator": "H100-SXM", "accelerator_count": 8,
        "nodes": 1, "own": False, "markets": ("on_demand",), "layout": {}, "layout_words": "dp 8",
        "precision": "bf16", "stack": "fsdp-compile", "samples_per_s": 90.0, "memory_gb": 60.0,
        "capacity_gb": 80.0, "hours": hours, "hours_low": hours * 0.8, "hours_high": hours * 1.25,
        "cost": Micros(micros), "cost_low": Micros(round(micros * 0.8)),
        "cost_high": Micros(round(micros * 1.25)), "chance": 0.95, "work_hours": hours * 0.9,
        "startup_hours": hours * 0.1, "on_demand_hours": hours, "spot_hours": 0.0,
        "interruptions": 0.1, "checkpoint_every_s": 1800, "checkpoint_bytes": 10**10,
        "costs": {"on_demand": round(micros * 0.9), "egress": round(micros * 0.1)},
        "price_hour": {"on_demand": 10_000_000}, "price_as_of": "2026-11-01",
        "price_source": "price list", "band": "as measured",
    }  # fmt: skip
    return Plan(**(given | other))


def own(cost: float = 50.0, hours: float = 40.0, **other: Any) -> Plan:
    given: dict[str, Any] = {
        "provider": "own", "region": "home", "zone": "", "instance_type": "desk",
        "accelerator": "RTX4090", "accelerator_count": 4, "own": True, "interruptions": 0.0,
        "price_source": "/home/ada/.tradewind/account.yaml line 4",
    }  # fmt: skip
    return plan(cost, hours, **(given | other))


def loser(kind: str = "money", **other: Any) -> Loser:
    given: dict[str, Any] = {
        "provider": "gcp", "instance_type": "a3-highgpu-8g", "accelerator": "H100-SXM",
        "accelerator_count": 8, "kind": kind, "why": "costs 1.1×: $110.00",
        "hours": 9.0, "cost": Micros(110_000_000),
    }  # fmt: skip
    return Loser(**(given | other))


def workload(**limits: Any) -> Workload:
    given: dict[str, Any] = {"within_s": 20 * 3600, "budget": Micros(500_000_000)}
    train = Train(model="gpt3-1.3b", tokens=10**9, sequence=2048, global_batch=512)
    return Workload(name="bot", train=train, limits=Limits(**(given | limits)))


FRONT = (
    plan(400, 4, instance_type="p6-b200.48xlarge", accelerator="B200"),
    plan(100, 10),
    plan(60, 30, instance_type="p4d.24xlarge", accelerator="A100-40GB", chance=0.02),
)
OTHERS = tuple(plan(120 + 7 * i, 8 + 3 * i, instance_type=f"type-{i}") for i in range(12))
LOSERS = (
    loser(),
    loser("time", instance_type="g5.xlarge", why="would take 4d 16h at best"),
    loser("memory", instance_type="g4dn.xlarge", why="does not fit", hours=None, cost=None),
)


def plans(**other: Any) -> Plans:
    given: dict[str, Any] = {
        "workload": workload(), "made_at": NOW, "deadline_hours": 20.0, "best": FRONT[1],
        "plans": (FRONT[1], FRONT[0]), "front": FRONT, "others": OTHERS, "later": (),
        "losers": LOSERS, "relaxations": (), "candidates": 900, "layouts": 5000, "offers": 300,
        "notes": ("spot: as public probes show",), "prices_from": "2026-10-01",
        "prices_until": "2026-11-01",
    }  # fmt: skip
    return Plans(**(given | other))


def nothing() -> Plans:
    """Where no way keeps the limits."""
    longer = Relaxation(limit="deadline", why="with 14h instead of 2h", plan=FRONT[1])
    dearer = Relaxation(limit="budget", why="with 4.0× the budget", plan=FRONT[0])
    return plans(
        workload=workload(within_s=2 * 3600), deadline_hours=2.0, best=None, plans=(),
        relaxations=(longer, dearer),
    )  # fmt: skip
