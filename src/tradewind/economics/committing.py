"""Which reservations and savings plans cost least for given hours: exactly, not by rule of thumb.

A **reservation** is a machine of one type in one place, paid in every hour. A **savings plan** is
so many dollars in every hour, for which machines of several types run at lower rates; what an
hour does not use is lost. Hours are what they are: the same machine-hours spread otherwise want
other commitments.

Without savings plans each type is by itself, and the n-th machine is reserved where the hours that
want n machines on demand cost more than all hours reserved. With them it is a mixed-integer program
over the distinct hours, which HiGHS solves (scipy). Both are exact; tests compare them with trying
everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra, SourceFailed

YEAR_H = 8760
_MOST_DISTINCT = 20_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of machine in one place."""

    name: str
    on_demand: float
    """Dollars an hour."""

    def __post_init__(self) -> None:
        if not 0 < self.on_demand < 1e6:
            raise InvalidValue(f"{self.name}: a price of {self.on_demand:g} USD an hour cannot be")


@dataclass(frozen=True, slots=True)
class Commitment:
    """`rates`: dollars an hour of each type that it covers. A reservation covers one type."""

    name: str
    term: str
    rates: Mapping[str, float]
    plan: bool = False
    source: str = ""
    as_of: str = ""

    def __post_init__(self) -> None:
        if not self.rates or (not self.plan and len(self.rates) != 1):
            raise InvalidValue(f"{self.name}: a reservation covers one type, a plan some")
        for kind, rate in self.rates.items():
            if not 0 < rate < 1e6:
                raise InvalidValue(f"{self.name}: {rate:g} USD an hour for {kind} cannot be")


@dataclass(frozen=True, slots=True)
class Bought:
    """So many machines, or, of a plan, dollars an hour."""

    commitment: Commitment
    amount: float

    @property
    def usd_hour(self) -> float:
        if self.commitment.plan:
            return self.amount
        return self.amount * next(iter(self.commitment.rates.values()))


@dataclass(frozen=True)
class Hours:
    """Machines wanted of each kind, and how many hours want that: `weights` add up to 1."""

    kinds: tuple[Kind, ...]
    wanted: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    def scaled(self, factor: float) -> Hours:
        made = tuple(tuple(factor * n for n in row) for row in self.wanted)
        return Hours(self.kinds, made, self.weights)


@dataclass(frozen=True)
class Chosen:
    bought: tuple[Bought, ...]
    usd_hour: float
    """On average, with what is on demand beside it."""
    on_demand_usd_hour: float
    """If nothing were committed."""
    by_use: tuple[tuple[float, float, float], ...] = field(default=())
    """Use against what was thought, the cost an hour with the commitments, and without."""

    @property
    def saved(self) -> float:
        return 1 - self.usd_hour / self.on_demand_usd_hour if self.on_demand_usd_hour else 0.0

    @property
    def break_even(self) -> float | None:
        """Below that use the commitments lose money; None where they hardly can."""
        return _break_even(self)


def hours_of(kinds: Sequence[Kind], wanted: Mapping[str, Sequence[float]]) -> Hours:
    """From a series for each kind, all of one length."""
    lengths = {len(series) for series in wanted.values()}
    if len(lengths) != 1 or lengths == {0} or set(wanted) != {kind.name for kind in kinds}:
        raise InvalidValue("each kind of machine needs a figure for every hour")
    rows = Counter(zip(*(wanted[kind.name] for kind in kinds), strict=True))
    for row in rows:
        for kind, number in zip(kinds, row, strict=True):
            if not 0 <= number < 1e6:
                raise InvalidValue(
                    f"{kind.name}: {number:g} machines in an hour cannot be",
                    hint="legal: 0 or more",
                )
    total = sum(rows.values())
    if not any(any(row) for row in rows):
        raise InvalidValue("nothing is used in any hour: there is nothing to commit to")
    return Hours(
        tuple(kinds), tuple(tuple(map(float, row)) for row in rows),
        tuple(n / total for n in rows.values()),
    )  # fmt: skip


def choose(
    hours: Hours, offered: Sequence[Commitment], *, less: float = 0.0, chance: float = 0.0
) -> Chosen:
    """The cheapest commitments; with a `chance` that use is `less`, on average over both."""
    for name, value in (("less", less), ("chance", chance)):
        if not 0 <= value <= 1:
            raise InvalidValue(f"{name} cannot be {value:g}", hint="legal: 0 to 1, or 0% to 100%")
    thought = _mixed(hours, less, chance)
    known = {kind.name for kind in hours.kinds}
    usable = [
        replace(c, rates={kind: rate for kind, rate in c.rates.items() if kind in known})
        for c in offered
        if known & set(c.rates)
    ]
    optimum = _program if any(c.plan for c in usable) else _layers
    bought = optimum(thought, usable)
    factors = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25)
    return Chosen(
        tuple(bought),
        cost(thought, bought),
        cost(thought, ()),
        tuple((f, cost(hours.scaled(f), bought), cost(hours.scaled(f), ())) for f in factors),
    )


def cost(hours: Hours, bought: Sequence[Bought]) -> float:
    """Dollars an hour on average; each plan's dollars go where they save most."""
    fixed = sum(one.usd_hour for one in bought)
    plans = [one for one in bought if one.commitment.plan and one.amount > 0]
    total = 0.0
    for row, weight in zip(hours.wanted, hours.weights, strict=True):
        left = dict(zip((kind.name for kind in hours.kinds), row, strict=True))
        for one in bought:
            if not one.commitment.plan:
                name = next(iter(one.commitment.rates))
                left[name] = max(left[name] - one.amount, 0.0)
        total += weight * _rest(hours.kinds, left, plans)
    return fixed + total


def _rest(kinds: Sequence[Kind], left: dict[str, float], plans: Sequence[Bought]) -> float:
    """On demand after the plans; of several, as they stand (`_program` buys none twice)."""
    price = {kind.name: kind.on_demand for kind in kinds}
    if len(plans) > 1:
        return _rest_of_many(price, left, plans)
    for one in plans:
        money, rates = one.amount, one.commitment.rates
        for name in sorted(rates, key=lambda name: rates[name] / price[name]):
            machines = min(left[name], money / rates[name])
            left[name] -= machines
            money -= machines * rates[name]
    return sum(price[name] * number for name, number in left.items())


def _rest_of_many(
    price: Mapping[str, float], left: Mapping[str, float], plans: Sequence[Bought]
) -> float:
    """Which plan covers which machine is a linear program of its own."""
    import numpy as np

    optimize = _scipy()
    names = list(left)
    pairs = [(p, k) for p, one in enumerate(plans) for k in one.commitment.rates]
    saving = np.array([-price[k] for _, k in pairs])
    rows, most = [], []
    for p, one in enumerate(plans):
        rows.append([plans[q].commitment.rates[k] if q == p else 0.0 for q, k in pairs])
        most.append(one.amount)
    for name in names:
        rows.append([1.0 if k == name else 0.0 for _, k in pairs])
        most.append(left[name])
    found = optimize.linprog(saving, A_ub=np.array(rows), b_ub=np.array(most), method="highs")
    return sum(price[n] * left[n] for n in names) + float(found.fun)


def _mixed(hours: Hours, less: float, chance: float) -> Hours:
    if not less or not chance:
        return hours
    small = hours.scaled(1 - less)
    return Hours(
        hours.kinds,
        hours.wanted + small.wanted,
        tuple(w * (1 - chance) for w in hours.weights) + tuple(w * chance for w in hours.weights),
    )


def _layers(hours: Hours, offered: Sequence[Commitment]) -> list[Bought]:
    """Each type by itself: the n-th machine of it, as long as the hours that want it pay for it."""
    found = []
    for number, kind in enumerate(hours.kinds):
        mine = [c for c in offered if kind.name in c.rates]
        if not mine:
            continue
        cheapest = min(mine, key=lambda c: c.rates[kind.name])
        rate, n = cheapest.rates[kind.name], 0
        while True:
            # Of what the n+1st machine would do, the parts of it that are wanted.
            wanted = sum(
                weight * min(max(row[number] - n, 0.0), 1.0)
                for row, weight in zip(hours.wanted, hours.weights, strict=True)
            )
            if wanted * kind.on_demand <= rate * (1 + 1e-12):
                break
            n += 1
        if n:
            found.append(Bought(cheapest, n))
    return found


def _scipy() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtra(
            f"savings plans over several types need scipy: {error}",
            hint="pip install 'tradewind[calibrate]'",
        ) from None
    return optimize


def _program(hours: Hours, offered: Sequence[Commitment]) -> list[Bought]:
    """Columns: an amount of each commitment; in each distinct hour, machines of each type on each
    plan, and on demand."""
    import numpy as np
    from scipy import sparse

    optimize = _scipy()
    if len(hours.wanted) > _MOST_DISTINCT:
        raise InvalidValue(f"{len(hours.wanted):,} different hours are too many", hint="fewer days")
    many = len(hours.wanted)
    plans = [n for n, c in enumerate(offered) if c.plan]
    pairs = [
        (p, k) for p in plans for k, kind in enumerate(hours.kinds) if kind.name in offered[p].rates
    ]
    wide, per_hour = len(offered), len(pairs) + len(hours.kinds)
    objective = np.zeros(wide + many * per_hour)
    for n, c in enumerate(offered):
        objective[n] = 1.0 if c.plan else next(iter(c.rates.values()))
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    low: list[float] = []

    def entry(row: int, column: int, value: float) -> None:
        rows.append(row)
        columns.append(column)
        values.append(value)

    for h, (wanted, weight) in enumerate(zip(hours.wanted, hours.weights, strict=True)):
        base = wide + h * per_hour
        for k, kind in enumerate(hours.kinds):
            objective[base + len(pairs) + k] = weight * kind.on_demand
            row = len(low)
            for n, c in enumerate(offered):
                if not c.plan and kind.name in c.rates:
                    entry(row, n, 1.0)
            for at, (_, of) in enumerate(pairs):
                if of == k:
                    entry(row, base + at, 1.0)
            entry(row, base + len(pairs) + k, 1.0)
            low.append(wanted[k])
        for p in plans:
            row = len(low)
            entry(row, p, 1.0)
            for at, (of, k) in enumerate(pairs):
                if of == p:
                    entry(row, base + at, -offered[p].rates[hours.kinds[k].name])
            low.append(0.0)
    matrix = sparse.csr_matrix((values, (rows, columns)), shape=(len(low), len(objective)))
    integral = np.zeros(len(objective))
    integral[:wide] = [0 if c.plan else 1 for c in offered]
    found = optimize.milp(
        objective, integrality=integral,
        constraints=optimize.LinearConstraint(matrix, np.array(low), np.inf),
        options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    if not found.success:
        raise SourceFailed(
            f"the optimum was not found: {found.message}", hint="fewer days, or types"
        )
    amounts = [float(found.x[n]) for n in range(wide)]
    return [
        Bought(c, amount if c.plan else round(amount))
        for c, amount in zip(offered, amounts, strict=True)
        if amount > 1e-7
    ]


def _break_even(chosen: Chosen) -> float | None:
    """Between the factors that were tried, by a straight line."""
    worse = [(f, with_ - without) for f, with_, without in chosen.by_use if with_ > without]
    better = [(f, with_ - without) for f, with_, without in chosen.by_use if with_ <= without]
    if not worse or not better or not chosen.bought:
        return None
    (a, x), (b, y) = max(worse), min(better)
    return a + (b - a) * x / (x - y) if b > a else None
