"""Buy or rent: what a team's use costs either way, when owning pays, and which inputs decide that.

`inputs_for` finds the figures, `answer` is a function of them. Owning all means that work waits in
a queue that is short enough; the hybrid owns what is always wanted and rents the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.economics import inputs, owning, waiting
from tradewind.economics.inputs import Inputs
from tradewind.economics.owning import Cost, Terms
from tradewind.economics.use import MONTH_H, YEAR_H, Use

if TYPE_CHECKING:
    pass

DRAWS = 2000
MOST_MACHINES = 5000


@dataclass(frozen=True, kw_only=True)
class Question:
    use: Use
    accelerator: str
    terms: Terms
    inputs: Inputs
    wait_h: float = 4.0
    """Jobs on own machines shall not wait longer on average."""
    machines: int | None = None
    """Own exactly so many."""
    seed: int = 1
    markets: tuple[str, ...] = ("on_demand", "spot", "reserved")
    """What is rented where all is; what own machines do not cover is rented on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to have the hours. Dollars of today, over all years."""

    name: str
    words: str
    machines: int
    total: float
    parts: dict[str, float]
    owned_hours: float
    rented_hours: float
    wait_h: float | None = None
    wait_replayed_h: float | None = None

    @property
    def usd_hour(self) -> float:
        """For an accelerator-hour that is used."""
        hours = self.owned_hours + self.rented_hours
        return self.total / hours if hours else 0.0


@dataclass(frozen=True, slots=True)
class Swing:
    """What one input does to the difference of the best way that owns and the best that rents."""

    name: str
    at_low: float
    at_high: float
    decides: bool
    """Within its range, the other way becomes the cheaper one."""

    @property
    def size(self) -> float:
        return abs(self.at_high - self.at_low)


@dataclass(frozen=True, kw_only=True)
class Answer:
    question: Question
    options: tuple[Option, ...]
    """The cheapest first."""
    curve: tuple[tuple[int, float], ...]
    """Total by how many machines are owned, the rest rented on demand."""
    swings: tuple[Swing, ...]
    """The greatest first."""
    chance: float
    """That owning is cheaper, over all draws of the inputs."""
    spread: tuple[float, float, float]
    """Own less rent: the 10th, 50th and 90th percentile of the draws."""
    break_even_share: float | None
    break_even_month: float | None
    by_month: tuple[tuple[float, float], ...]
    """Money spent by the end of each year: owning, renting."""
    notes: tuple[str, ...]

    @property
    def best(self) -> Option:
        return self.options[0]

    @property
    def owning(self) -> Option:
        return next(o for o in self.options if o.machines and not o.name.startswith("reserve"))

    @property
    def renting(self) -> Option:
        return next(o for o in self.options if not o.machines or o.name.startswith("reserve"))

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that decide it, or the one that moves it most."""
        found = tuple(s.name for s in self.swings if s.decides)
        return found or tuple(s.name for s in self.swings[:1])


# -- the answer ----------------------------------------------------------------------------------


def answer(question: Question) -> Answer:
    values = inputs.typical(question.inputs)
    use, terms = question.use, question.terms
    _check(question, values)
    options = [_rent_all(question, values), *_other_rents(question, values)]
    curve = _curve(question, values)
    if question.machines is not None:
        hybrid = question.machines
    else:
        owned = [pair for pair in curve if pair[0] > 0]
        hybrid = min(owned, key=lambda pair: pair[1])[0]
    options.append(_owned(question, values, hybrid))
    alone = _enough(question, values)
    notes = []
    if alone is not None and (question.machines is None or question.machines >= alone):
        number = question.machines or alone
        options.append(_owned(question, values, number, queued=True))
    else:
        notes.append(_why_not_alone(question, values))
    options.sort(key=lambda option: option.total)
    draws = _draws(question)
    found = Answer(
        question=question, options=tuple(options), curve=tuple(curve), swings=(), chance=0.0,
        spread=(0.0, 0.0, 0.0), break_even_share=None, break_even_month=None, by_month=(),
        notes=tuple(notes + _notes(question)),
    )  # fmt: skip
    difference = _difference(question, draws, found.owning, found.renting)
    low, middle, high = (float(x) for x in _percentiles(difference))
    machines = found.owning.machines
    return replace(
        found,
        swings=tuple(_swings(question, values, found)),
        chance=float((difference < 0).mean()),
        spread=(low, middle, high),
        break_even_share=owning.break_even_share(values, machines, terms),
        break_even_month=owning.paid_back(values, use, machines, terms),
        by_month=tuple(_spent(question, values, found)),
    )


def _check(question: Question, values: dict[str, float]) -> None:
    terms, use, number = question.terms, question.use, question.machines
    if not 1 <= terms.years <= 10:
        raise InvalidValue(f"{terms.years} years cannot be", hint="legal: 1 to 10")
    if not -0.9 <= terms.growth <= 3:
        raise InvalidValue(f"growth of {terms.growth:g} a year cannot be", hint="legal: -0.9 to 3")
    if terms.each < 1:
        raise InvalidValue(f"a machine of {terms.each} accelerators cannot be")
    if number is not None and number < 1:
        raise InvalidValue(f"{number} machines cannot be owned", hint="legal: 1 or more")
    if use.peak / terms.each > MOST_MACHINES:
        raise InvalidValue(
            f"the use wants {use.peak:,.0f} accelerators at once: more than {MOST_MACHINES:,} "
            "machines",
            hint="check the figures; larger estates are beyond this model",
        )
    if number is not None and use.jobs:
        largest = max(use.jobs, key=lambda job: job.accelerators)
        if largest.accelerators > number * terms.each:
            raise InvalidValue(
                f"{largest.name} wants {largest.accelerators:g} accelerators; {number} machines "
                f"have {number * terms.each}",
                hint=f"--machines {math.ceil(largest.accelerators / terms.each)} or more",
            )


def _option(name: str, words: str, machines: int, found: Cost, **more: Any) -> Option:
    return Option(
        name=name, words=words, machines=machines, total=float(found.total),
        parts={part: float(value) for part, value in found.parts.items() if float(value)},
        owned_hours=float(found.owned_hours), rented_hours=float(found.rented_hours), **more,
    )  # fmt: skip


def _rent_all(question: Question, values: dict[str, float]) -> Option:
    found = owning.cost(values, question.use, 0, question.terms)
    return _option("rent", "rent all on demand", 0, found)


def _other_rents(question: Question, values: dict[str, float]) -> list[Option]:
    use, terms, found = question.use, question.terms, []
    if "spot_usd_hour" in values and "spot" in question.markets:
        spot = owning.cost(_on_spot(values), use, 0, terms, rent="spot_usd_hour")
        found.append(_option("spot", "rent all on spot, where work resumes", 0, spot))
    for term in ("1y", "3y"):
        name = f"reserved_{term}_usd_hour"
        if (
            name not in values
            or "reserved" not in question.markets
            or (term == "3y" and terms.years < 3)
        ):
            continue
        growth = max((1 + terms.growth) ** (terms.years - 1), 1.0) * values["use_factor"]
        most = math.ceil(use.peak * growth / terms.each)
        totals = [
            (float(owning.reserved(values, use, n, terms, name)), n)
            for n in _some(1, min(most, MOST_MACHINES))
        ]
        total, held = min(totals)
        whole = _rent_all(question, values)
        hours = whole.rented_hours
        found.append(
            Option(
                name=f"reserve-{term}", machines=held, total=total, parts={"rented": total},
                words=f"reserve {held} for {term[0]} year{'s' if term == '3y' else ''} at a time, "
                "the rest on demand", owned_hours=0.0, rented_hours=hours,
            )
        )  # fmt: skip
    return found


def _on_spot(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"spot_usd_hour": values["spot_usd_hour"] * values["spot_overhead"]}


def _some(least: int, most: int) -> list[int]:
    """All of few numbers; of many, ever wider apart."""
    if most - least < 120:
        return list(range(least, most + 1))
    grown = {round(least * (most / least) ** (k / 119)) for k in range(120)}
    return sorted(grown | {most})


def _curve(question: Question, values: dict[str, float]) -> list[tuple[int, float]]:
    use, terms = question.use, question.terms
    growth = max((1 + terms.growth) ** (terms.years - 1), 1.0) * values["use_factor"]
    able = terms.each * values["availability"]
    most = min(math.ceil(use.peak * growth / able), MOST_MACHINES)
    numbers = [0, *_some(1, max(most, question.machines or 1))]
    return [(n, float(owning.cost(values, use, n, terms).total)) for n in numbers]


def _owned(
    question: Question, values: dict[str, float], machines: int, *, queued: bool = False
) -> Option:
    found = owning.cost(values, question.use, machines, question.terms, queued=queued)
    plural, rest = ("s", "they do") if machines > 1 else ("", "it does")
    if not queued:
        words = f"own {machines} machine{plural}, rent what {rest} not cover"
        return _option("hybrid", words, machines, found)
    accelerators, use = machines * question.terms.each, question.use
    jobs = [replace(job, per_month=job.per_month * values["use_factor"]) for job in use.jobs]
    wait = waiting.expected(jobs, accelerators, values["availability"])
    as_told = values["use_factor"] == 1.0
    replayed = waiting.replayed(use, accelerators) if as_told else None
    words = f"own {machines} machine{plural}, work waits its turn"
    return _option(
        "own", words, machines, found, wait_h=wait if math.isfinite(wait) else None,
        wait_replayed_h=replayed,
    )  # fmt: skip


def _enough(question: Question, values: dict[str, float]) -> int | None:
    """Machines with which nothing need be rented, in the last year too."""
    use, terms, up = question.use, question.terms, values["availability"]
    growth = max((1 + terms.growth) ** (terms.years - 1), 1.0) * values["use_factor"]
    if not use.jobs:
        return math.ceil(use.peak * growth / (terms.each * up) - 1e-9)
    jobs = [replace(job, per_month=job.per_month * growth) for job in use.jobs]
    number = waiting.enough(jobs, terms.each, question.wait_h, up)
    return number if number <= MOST_MACHINES else None


def _why_not_alone(question: Question, values: dict[str, float]) -> str:
    need = _enough(question, values)
    if need is None:
        return "no number of machines makes the waiting short enough"
    return (
        f"{question.machines} machines alone are too few: it would take {need} to do all of it "
        f"with {question.wait_h:g} h of waiting"
    )


def _draws(question: Question) -> dict[str, Any]:
    """Triangular, independent, and the same for the same seed."""
    import numpy as np

    draw = clock.generator(question.seed)
    found = {}
    for name in sorted(question.inputs):
        one = question.inputs[name]
        found[name] = np.array(
            [draw.triangular(one.low, one.high, one.typical) for _ in range(DRAWS)]
        )
    return found


def _of(question: Question, values: dict[str, Any], option: Option) -> Any:
    """The total of an option with other figures."""
    use, terms = question.use, question.terms
    if option.name == "spot":
        return owning.cost(_on_spot(values), use, 0, terms, rent="spot_usd_hour").total
    if option.name.startswith("reserve"):
        price = f"reserved_{option.name.removeprefix('reserve-')}_usd_hour"
        return owning.reserved(values, use, option.machines, terms, price)
    return owning.cost(values, use, option.machines, terms, queued=option.name == "own").total


def _difference(question: Question, values: dict[str, Any], own: Option, rent: Option) -> Any:
    return _of(question, values, own) - _of(question, values, rent)


def _percentiles(values: Any) -> Any:
    import numpy as np

    return np.percentile(values, [10, 50, 90])


def _swings(question: Question, values: dict[str, float], found: Answer) -> list[Swing]:
    usual = found.owning.total - found.renting.total
    swings = []
    for name, one in question.inputs.items():
        ends = [
            float(
                _difference(
                    question, inputs.moved(question.inputs, name, end), found.owning, found.renting
                )
            )
            for end in (one.low, one.high)
        ]
        if max(ends) - min(ends) > 0:
            flips = any((end < 0) != (usual < 0) for end in ends)
            swings.append(Swing(name, ends[0], ends[1], flips))
    return sorted(swings, key=lambda swing: -swing.size)


def _spent(
    question: Question, values: dict[str, float], found: Answer
) -> list[tuple[float, float]]:
    """By the end of each year, as it is paid: the machines first, and not resold."""
    flat, terms = values | {"discount": 0.0}, question.terms
    pairs = []
    for year in range(1, terms.years + 1):
        shorter = replace(terms, years=year)
        own = owning.cost(
            flat, question.use, found.owning.machines, shorter,
            queued=found.owning.name == "own",
        )  # fmt: skip
        rent = _of(replace(question, terms=shorter), flat, found.renting)
        pairs.append((float(own.total - own.parts["residual"]), float(rent)))
    return pairs


def _notes(question: Question) -> list[str]:
    doubtful = [one.name for one in question.inputs.values() if one.doubt]
    use = question.use
    notes = [
        f"use: {use.origin}; {use.hours_month:,.0f} accelerator-hours a month, {use.mean:,.1f} "
        f"busy on average, {use.peak:,.0f} at most",
        f"{len(doubtful)} of {len(question.inputs)} inputs are in doubt or assumed: --inputs shows "
        "each with its source",
    ]
    if not use.jobs:
        notes.append("no jobs are told of, so nothing is said of waiting")
    return notes


__all__ = ["MONTH_H", "YEAR_H", "Answer", "Option", "Question", "Swing", "answer"]
