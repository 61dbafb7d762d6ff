"""What machines of one's own cost over years, and what renting the same hours costs: the model.

Dollars of today (each month discounted), as arrays: one entry for each drawing of the inputs, or
numbers. The page of `tradewind own` has the same model in JavaScript (web/assets/own.js), and a
test holds the two together: a change here is a change there.

    buying      machines, fabric between them, spares; again when their life is over; less what they
                fetch at the end. Or a lease: the same price in months, with interest, and no end.
    running     support, colocation by kW, energy by load and PUE, people
    renting     what own machines do not cover, in each level of use; its price moves with the years
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.economics.use import MONTH_H, YEAR_H, Use

RESIDUALS = ((0.0, 1.0), (0.5, 0.8), (1.0, 0.65), (1.5, 0.525), (2.0, 0.375), (3.0, 0.275),
             (4.5, 0.15), (7.0, 0.0))  # fmt: skip
"""Share of the price by age: the typical column of the facts (`residual`, accelerator server), and
0 at seven years, which is assumed. A test compares."""
STAFF_EXPONENT = math.log(2.5) / math.log(4)
"""One full-time person for 4 machines, 2.5 for 16: the two points of the facts."""
PARTS = ("machines", "residual", "support", "space", "energy", "people", "rented")

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked, beside the inputs."""

    years: int
    each: int
    """Accelerators in a machine."""
    growth: float = 0.0
    """Of use, a year."""
    lease: bool = False


@dataclass(frozen=True)
class Cost:
    """Dollars of today, and hours over all years."""

    parts: Mapping[str, Any]
    owned_hours: Any
    rented_hours: Any

    @property
    def total(self) -> Any:
        return sum(self.parts[name] for name in PARTS)


def people(machines: float) -> float:
    """Full-time equivalents."""
    return float((machines / 4) ** STAFF_EXPONENT) if machines else 0.0


def months(values: Values, year: int) -> tuple[Any, Any]:
    """The year's length in years of today's dollars, and the same for a price that moves."""
    import numpy as np

    d, t = np.asarray(values["discount"], float), np.asarray(values["rent_trend"], float)
    at = year + (np.arange(12) + 0.5) / 12
    worth = (1 + d[..., None]) ** -at
    return worth.sum(-1) / 12, (worth * (1 + t[..., None]) ** at).sum(-1) / 12


def covered(use: Use, machines_able: Any, factor: Any) -> tuple[Any, Any]:
    """Accelerator-hours of a year that so many accelerators cover, and all of them."""
    import numpy as np

    levels, shares = np.array(use.levels), np.array(use.shares)
    wanted = levels * np.asarray(factor, float)[..., None]
    able = np.asarray(machines_able, float)[..., None]
    return (
        YEAR_H * (np.minimum(wanted, able) * shares).sum(-1),
        YEAR_H * (wanted * shares).sum(-1),
    )


def cost(
    values: Values, use: Use, machines: int, terms: Terms, *, rent: str = "rent_usd_hour",
    queued: bool = False,
) -> Cost:  # fmt: skip
    """`machines` owned, and what they do not cover rented at the input that `rent` names. `queued`:
    nothing is rented, work waits until it can be done."""
    import numpy as np

    n, able = machines, machines * terms.each * values["availability"]
    price = values["server_usd"] * (
        1 + values["spares_share"] + (values["fabric_share"] if n > 1 else 0.0)
    )
    parts = dict.fromkeys(PARTS, np.zeros(np.shape(values["server_usd"])))
    owned = rented = np.zeros(np.shape(values["server_usd"]))
    for year in range(terms.years):
        worth, moved = months(values, year)
        factor = values["use_factor"] * (1 + terms.growth) ** year
        done, wanted = covered(use, able, factor)
        if queued:
            done = np.minimum(wanted, able * YEAR_H)
        load = done / (YEAR_H * n * terms.each) if n else 0.0
        drawn = values["idle_draw"] + (1 - values["idle_draw"]) * load
        kilowatts = n * values["watts"] / 1000
        yearly = {
            "support": n * values["server_usd"] * values["support_share"],
            "space": 12 * kilowatts * values["colo_usd_kw_month"],
            "energy": YEAR_H * kilowatts * drawn * values["pue"] * values["usd_per_kwh"],
            "people": people(n) * values["staff_factor"] * values["staff_usd_year"],
        }
        if terms.lease:
            yearly["machines"] = n * price * 12 * instalment(values)
        for name, dollars in yearly.items():
            parts[name] = parts[name] + worth * dollars
        rate = worth if rent.startswith("reserved") else moved
        parts["rented"] = parts["rented"] + rate * (wanted - done) * values[rent]
        owned, rented = owned + done, rented + (wanted - done)
    if not terms.lease:
        parts |= _bought(values, n * price, n * values["server_usd"], terms.years)
    return Cost(parts, owned, rented)


def instalment(values: Values) -> Any:
    """Share of the price that a lease asks each month."""
    import numpy as np

    monthly = np.maximum(np.asarray(values["lease_rate"], float), 1e-9) / 12
    return monthly / (1 - (1 + monthly) ** (-12 * values["life_years"]))


def _bought(values: Values, price: Any, resold: Any, years: int) -> dict[str, Any]:
    import numpy as np

    life = np.asarray(values["life_years"], float)
    paid, age = np.asarray(price, float), np.full(np.shape(life), float(years))
    for again in range(1, years + 1):
        due = life * again
        paid = paid + np.where(due < years, price * (1 + values["discount"]) ** -due, 0.0)
        age = np.where(due < years, years - due, age)
    ages, shares = zip(*RESIDUALS, strict=True)
    left = np.clip(np.interp(age, ages, shares) * values["residual_factor"], 0, 1)
    return {"machines": paid, "residual": -resold * left * (1 + values["discount"]) ** -years}


def reserved(
    values: Values, use: Use, machines: int, terms: Terms, price: str
) -> Any:  # fmt: skip
    """So many machines reserved for all hours at a price that stays, the rest on demand."""
    import numpy as np

    total = np.zeros(np.shape(values["server_usd"]))
    held = machines * terms.each
    for year in range(terms.years):
        worth, moved = months(values, year)
        factor = values["use_factor"] * (1 + terms.growth) ** year
        done, wanted = covered(use, held, factor)
        total = total + worth * held * YEAR_H * values[price]
        total = total + moved * (wanted - done) * values["rent_usd_hour"]
    return total


def break_even_share(values: Values, machines: int, terms: Terms) -> float | None:
    """The share of all hours, from which on owning costs less than renting the same hours; None
    where it never does, however much is used."""

    def at(load: float, owned: int) -> float:
        level = Use((load * machines * terms.each,), (1.0,))
        return float(cost(dict(values) | {"use_factor": 1.0}, level, owned, flat).total)

    flat = Terms(terms.years, terms.each, 0.0, terms.lease)
    most = float(values["availability"])
    own_0, own_1 = at(0.0, machines), at(most, machines)
    rent_1 = at(most, 0)
    if rent_1 - (own_1 - own_0) <= 0:
        return None
    share = most * own_0 / (rent_1 - (own_1 - own_0))
    return share if share <= 1 else None


def paid_back(values: Values, use: Use, machines: int, terms: Terms) -> float | None:
    """The month in which what was spent on owning, with what it does not cover, falls below what
    renting all would have cost by then: money as it is paid, machines not resold, not discounted.
    None where that does not happen."""
    flat = dict(values) | {"discount": 0.0}
    spent, rent, n = 0.0, 0.0, machines
    price = values["server_usd"] * (
        1 + values["spares_share"] + (values["fabric_share"] if n > 1 else 0.0)
    )
    spent += 0.0 if terms.lease else n * price
    for month in range(12 * terms.years):
        year = Terms(1, terms.each, 0.0, terms.lease)
        factor = values["use_factor"] * (1 + terms.growth) ** (month // 12)
        priced = (1 + values["rent_trend"]) ** ((month + 0.5) / 12)
        now = flat | {
            "use_factor": factor, "rent_trend": 0.0,
            "rent_usd_hour": values["rent_usd_hour"] * priced,
        }  # fmt: skip
        own = cost(now, use, n, year)
        running = float(own.total - (0.0 if terms.lease else own.parts["machines"])) - float(
            0.0 if terms.lease else own.parts["residual"]
        )
        more, other = running / 12, float(cost(now, use, 0, year).total) / 12
        if spent + more <= rent + other:
            gap, closing = spent - rent, other - more
            return month + (gap / closing if closing > 0 else 0.0)
        spent, rent = spent + more, rent + other
        if (
            month
            and not terms.lease
            and month % max(round(12 * float(values["life_years"])), 1) == 0
        ):
            spent += n * price
    return None


__all__ = [
    "MONTH_H", "PARTS", "RESIDUALS", "Cost", "Terms", "break_even_share", "cost", "covered",
    "instalment", "months", "paid_back", "people", "reserved",
]  # fmt: skip
