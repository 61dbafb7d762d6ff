"""How often spot machines are taken, by provider, size and hour: where there is data. Pure, but for
reading its table.

The policy's model of spot (`policy/regimes.py`) was learned from all series together. Here is how a
type differs from them, as a factor on the hazard: losses an hour of that provider's machines with
as many accelerators (`data/hazards.csv`; between the sizes by a power) over those of all series.
Whoever has no line of its own has AWS's as a prior. What runs saw of a type in a place
(`observations.py`) is worked in: × (2 + losses) / (2 + losses to be expected in the hours held).

By the hour of the day the series differ by no more than chance would make them: the table shows it,
and the hour changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue

if TYPE_CHECKING:
    from tradewind.model import Observation

TABLE = Path(__file__).parent / "data" / "hazards.csv"
PRIOR = "aws"
_NOTICES = {"aws": 120.0, "gcp": 30.0, "azure": 30.0, "ibm": 120.0, "oci": 120.0}  # seconds
_STRENGTH = 2.0
"""Losses that the prior is worth."""


class Hazard(NamedTuple):
    factor: float
    words: str


class _Line(NamedTuple):
    accelerators: float
    losses: float
    held_hours: float


def hazard(provider: str, accelerators: float, seen: Iterable[Observation] = ()) -> Hazard:
    """Of a machine with so many accelerators, by the series and by what was seen of late: machines
    that were held for a while and taken, or given back."""
    table = _lines()
    known = table.get(provider)
    rate = _rate(known or table[PRIOR], accelerators)
    factor = rate / _pooled()
    words = f"measured series of {provider}, by size of machine"
    if known is None:
        words = f"AWS's measured series as a prior: there are none of {provider}"
    held = [one for one in seen if one.market == "spot" and one.held_h > 0]
    if held:
        losses = sum(not one.available for one in held)
        hours = sum(one.held_h for one in held)
        factor *= (_STRENGTH + losses) / (_STRENGTH + hours * rate)
        words = f"taken {losses} times in {hours:.0f} h of your own runs, and {words}"
    return Hazard(factor, words)


def notice_s(provider: str) -> float:
    """How long before it takes a machine it says so."""
    return _NOTICES.get(provider, 0.0)


def _rate(lines: list[_Line], accelerators: float) -> float:
    """Losses an hour held; between and beyond the sizes that were measured, by a power."""
    rates = [(log(line.accelerators), log(line.losses / line.held_hours)) for line in lines]
    if len(rates) == 1:
        return exp(rates[0][1])
    (low, first), (high, last) = rates[0], rates[-1]
    at = min(max(log(max(accelerators, 1)), low), high)
    return exp(first + (last - first) * (at - low) / (high - low))


@cache
def _pooled() -> float:
    lines = _lines()[PRIOR]
    return sum(line.losses for line in lines) / sum(line.held_hours for line in lines)


@cache
def _lines() -> dict[str, list[_Line]]:
    """Those of the whole day, by provider, the smallest machine first."""
    found: dict[str, list[_Line]] = {}
    for number, cells in csvfile.rows(TABLE):
        try:
            values = [csvfile.number(cells, name) for name in ("accelerators", "losses")]
            hours = csvfile.number(cells, "held_hours")
        except InvalidValue as error:
            raise BadFile(f"{TABLE} line {number}: {error.message}") from None
        if not all(values) or not hours:
            raise BadFile(f"{TABLE} line {number}: accelerators, losses and held_hours are above 0")
        if cells["hours_utc"] == "any":
            line = _Line(float(values[0] or 0), float(values[1] or 0), hours)
            found.setdefault(cells["provider"], []).append(line)
    return {name: sorted(lines) for name, lines in found.items()}
