"""A way to finish a workload: where, on what, how, and what it will take. Plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.base.units import Micros
    from tradewind.model.workload import Workload

REFUSAL = 0.05
"""What being refused is worth, as a share of the plan's cost: it is asked again, or something else
is taken."""


def weighed_cost(cost: Any, had: Any) -> Any:
    """What plans are chosen by: the cost, and a share of it for each refusal that is to be expected
    before the machines are had, 1 / had − 1 of them. To ask in this order until something is had
    costs least on average (docs/design/014-capacity.md)."""
    return cost * (1 + REFUSAL * (1 / had - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hours are wall-clock from the start, money is micro-dollars; `_low` and `_high` are the 80 %
    band. Machine-hours are of each of `nodes` machines."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerator_count: int  # in one machine
    nodes: int
    own: bool
    markets: tuple[str, ...]
    """What is held: `on_demand`, `spot`, `reserved` (capacity that you hold already), or spot with
    on-demand where the deadline asks for it."""
    layout: dict[str, Any]
    """Degrees of parallelism, micro-batch, sharding, recompute; empty for work by measurement."""
    layout_words: str
    precision: str
    stack: str
    samples_per_s: float
    memory_gb: float  # peak of the fullest accelerator
    capacity_gb: float
    hours: float
    hours_low: float
    hours_high: float
    cost: Micros
    cost_low: Micros
    cost_high: Micros
    chance: float
    """That it fits and, where there is a deadline, is met."""
    work_hours: float
    """Of the work alone, on machines that are never taken."""
    startup_hours: float
    on_demand_hours: float
    spot_hours: float
    interruptions: float
    checkpoint_every_s: int
    checkpoint_bytes: int
    costs: dict[str, int]
    """Micro-dollars by what they are for: on_demand, spot, reserved, egress, storage."""
    price_hour: dict[str, int]
    """Of one machine, by market."""
    price_as_of: str
    price_source: str
    band: str
    """Why the estimate's range is as wide as it is."""
    expected: int = 0
    """What a run costs on average that asks for these machines first and, where it is refused, for
    the next ones: refusals count (`planning/asking.py`). Unlike `cost`, which is of these machines;
    0 in a plan that was saved without it."""
    within_budget: float = 1.0
    """The chance that it costs no more than the budget; 1 where there is none."""
    had: float = 1.0
    """How likely the machines are there when they are asked for; apart from `chance`."""
    had_by: str = ""
    """What that is taken from: a prior, what was seen of late, or what you assume."""
    network: str = ""
    """What connects several machines, and who says so."""
    commit: str = ""
    """`1y` or `3y` where the price asks for a new commitment."""
    spot_by: str = ""
    """Where what is expected of spot comes from."""
    bring: int = 0
    """For carrying the checkpoint there, with each start after the first."""
    bring_once: int = 0
    """For carrying the data there, with each start."""
    save: int = 0
    """An hour, for carrying checkpoints back."""
    energy_kwh: float = 0.0
    co2_kg: float = 0.0
    """CO2e of that energy on the grid of the place."""
    co2_kg_low: float = 0.0
    co2_kg_high: float = 0.0
    at_most: bool = False
    """How long the work takes is not known: hours and cost are the most that they come to, of which
    nothing is said but that; then its machines are stopped."""
    grid: str = ""
    """Whose intensity that is, and what is doubtful about it."""
    not_ours: str = ""
    """Why a run cannot launch it (`model/driven.py`); empty where it can."""

    @property
    def accelerators(self) -> int:
        return self.accelerator_count * self.nodes

    @property
    def place(self) -> str:
        return f"{self.provider}/{self.zone or self.region}"

    @property
    def weighed(self) -> float:
        """Micro-dollars; see `weighed_cost`."""
        return float(weighed_cost(self.cost, self.had))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loser:
    """A type of machine that is not in the best plan, and why: the best that it could do."""

    provider: str
    instance_type: str
    accelerator: str
    accelerator_count: float
    kind: str
    """memory, time, money, capacity, price, limits, quota, layout, chip"""
    why: str
    own: bool = False
    hours: float | None = None
    cost: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """What one limit would have to be, all others kept, and what the work would then cost."""

    limit: str
    why: str
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """The cheapest plan for another deadline, all other limits kept; None where there is none."""

    deadline_hours: float
    plan: Plan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surer:
    """The cheapest plan for another chance of keeping deadline and budget; None where there is
    none."""

    confidence: float
    plan: Plan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    workload: Workload
    made_at: datetime
    deadline_hours: float | None
    best: Plan | None
    """The cheapest that keeps every limit; None where nothing does."""
    plans: tuple[Plan, ...]
    """The first few that keep every limit, each of another kind of machine, in the order in which
    they are asked for; and the first one's machines on demand, where it is on spot alone."""
    front: tuple[Plan, ...]
    """Of all that keep every limit but deadline and budget: none is both faster and cheaper, with
    what refusals take and cost, nor without."""
    others: tuple[Plan, ...]
    """More of the same, for a closer look: the cheapest of every type and number of machines."""
    later: tuple[Later, ...]
    """What more time would save, and less would cost; empty where there is no deadline."""
    losers: tuple[Loser, ...]
    relaxations: tuple[Relaxation, ...]
    candidates: int
    """Ways that were weighed: offers × machines × markets."""
    layouts: int
    offers: int
    notes: tuple[str, ...]
    prices_from: str
    prices_until: str
    store: tuple[str, str] | None = None
    """Provider and region of the store, where that is known."""
    surer: tuple[Surer, ...] = ()
    """What certainty costs: by the chance of keeping deadline and budget; empty where there is
    neither."""
