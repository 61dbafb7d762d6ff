"""A plan of serving as values: pools of machines by hour, what they cost, what else there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import prod
from typing import TYPE_CHECKING

from tradewind.base.units import Micros

if TYPE_CHECKING:
    from tradewind.model.workload import Workload


@dataclass(frozen=True, slots=True)
class Hour:
    rate: float  # requests a second of this pool
    needed: int  # machines that must be up for the targets
    on_demand: int
    spot: int
    chance: float  # that enough are up


@dataclass(frozen=True, slots=True)
class Users:
    place: str
    share: float  # of all requests
    round_trip_ms: float
    measured: bool  # else by distance


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPool:
    sizes: str  # which requests; empty: all
    provider: str
    region: str
    instance_type: str
    accelerator: str
    accelerator_count: int
    own: bool
    tp: int
    engine: str
    weights: str
    caveat: str  # of the format; empty where it is the one asked for
    replicas: int  # on a machine
    rate_per_machine: float  # requests a second within the targets
    price_hour: dict[str, Micros]  # by market, and `committed`
    committed: int  # machines of a new commitment, in all hours; beside those of `hours`
    term: str  # of it: `1y`, `3y`
    had: float  # the chance that the machines of the fullest hour are there
    users: tuple[Users, ...]  # who is served here, where places of users are given
    hours: tuple[Hour, ...]
    cost: Micros  # a month
    chance: float  # of the worst hour
    headroom: float  # of the fullest hour: how much more would still be within the targets
    latency_ms: dict[str, float | None]  # at the fullest hour, by target
    margin: dict[str, float]  # times the middle of the estimate: first tokens, and steps
    band: str  # why the margin is as wide as it is
    price_as_of: str
    price_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    pools: tuple[ServingPool, ...]
    cost: Micros  # a month
    starting: Micros  # of that, for machines that start and do not serve yet
    usd_per_million: float  # tokens in and out
    usd_per_million_out: float

    @property
    def chance(self) -> float:
        return prod(pool.chance for pool in self.pools)

    @property
    def had(self) -> float:
        """The chance that all machines of the fullest hours are there when they are asked for."""
        return prod(pool.had for pool in self.pools)


@dataclass(frozen=True, slots=True)
class TargetCost:
    target: str
    seconds: float | None  # None: without that target
    instead_of: float
    cost: Micros | None  # None: nothing meets it
    more: Micros | None  # than the plan; negative: less


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    kind: str  # `serverless` or `api`
    provider: str
    what: str
    cost: Micros  # a month
    usd_per_million: float
    crossover: float | None
    """Requests a second above which the plan is cheaper; None: not up to 100 times the traffic."""
    note: str
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class OneSite:
    """One place for all users, where the plan has several."""

    where: str  # empty: no place is near enough to everybody
    cost: Micros | None
    more: Micros | None  # than the plan


@dataclass(frozen=True, slots=True)
class Changed:
    """What a plan would cost with other traffic and other targets; both in times of those asked."""

    traffic: float
    targets: dict[str, float]
    cost: Micros | None  # None: nothing meets them
    machines: str


@dataclass(frozen=True, slots=True)
class NotChosen:
    accelerator: str
    reason: str
    cost: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """Where nothing meets the targets."""

    accelerator: str
    tp: int
    weights: str
    reached_ms: dict[str, float]  # for requests that are alone, by target
    would_do: tuple[str, ...]  # changes with which there is a plan


@dataclass(frozen=True, slots=True)
class Growth:
    months: int
    rate: float  # mean, requests a second
    cost: Micros | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlans:
    workload: Workload
    made_at: datetime
    requests_per_s: float  # mean
    peak_requests_per_s: float
    input: float  # tokens, mean
    output: float
    cv: float
    hours: int  # of the cycle
    targets: dict[str, tuple[float, float]]  # seconds, share of requests
    best: ServingPlan | None
    single: ServingPlan | None = None  # the best with one pool, where the best has two
    one_site: OneSite | None = None
    targets_cost: tuple[TargetCost, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    losers: tuple[NotChosen, ...] = ()
    nearest: Nearest | None = None
    growth: tuple[Growth, ...] = ()
    changed: tuple[Changed, ...] = ()  # for the page's sliders
    offers: int = 0
    layouts: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)
