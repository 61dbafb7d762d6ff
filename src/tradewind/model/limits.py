"""What a plan must keep to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tradewind.model import checks
from tradewind.model.areas import countries
from tradewind.model.checks import Fault
from tradewind.model.offer import MARKETS

if TYPE_CHECKING:
    from tradewind.base.units import Micros
    from tradewind.model.offer import Market

COMMITMENTS = ("1y", "3y")
IN_TIME = 0.9
AS_FAST = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a plan must keep to. None means no limit; names take globs, and capitals do not matter.

    A region is `eu-*` of any provider or `aws/eu-west-1` of one; `EU`, `US`, `Asia` and `DE` are
    all regions in those countries (`areas.py`). What `exclude` matches (a provider or a region,
    written as in `regions`) is out, whatever else is allowed.
    """

    deadline: datetime | None = None
    """A moment with a zone; or `within_s`, from whenever the work is started."""
    within_s: int | None = None
    budget: Micros | None = None
    confidence: float | None = None
    """The chance that is wanted of meeting the deadline, and of staying within the budget; of what
    is served, of machines as fast as planned."""
    hard: bool = False
    """Past the deadline the work is worth nothing: stop."""
    late: Micros | None = None
    """What an hour past the deadline costs its user. None: once the deadline is lost, time has no
    worth."""
    providers: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    markets: tuple[Market, ...] | None = None
    accelerators: tuple[str, ...] | None = None
    max_nodes: int | None = None
    max_accelerators: int | None = None
    """Of all machines together."""
    commit: str | None = None
    """`1y` or `3y`: prices that ask for a new commitment of that length compete too."""
    assume_capacity: tuple[str, ...] | None = None
    """How likely machines are to be had, instead of what we believe: `90%` of all, `aws=90%`,
    `aws/us-east-1=50%` or `p5.48xlarge=50%` of some; the last that fits counts."""

    carbon: str | None = None
    """`50kg`: no plan that emits more CO2e. `$100/t`: what a tonne costs, when plans are ranked."""

    def __post_init__(self) -> None:
        checks.raise_any("limits", self.faults(checks.fields_of(self)))

    def deadline_at(self, now: datetime) -> datetime | None:
        """The moment by which work started `now` must be done."""
        if self.within_s is not None:
            return now + timedelta(seconds=self.within_s)
        return self.deadline

    @property
    def sure(self) -> float:
        """The chance that is wanted of keeping the deadline, and the budget: 90 % unless another is
        said."""
        return IN_TIME if self.confidence is None else self.confidence

    @property
    def margin(self) -> float:
        """The chance that is wanted of machines which serve as fast as planned."""
        return AS_FAST if self.confidence is None else self.confidence

    @property
    def carbon_kg(self) -> float | None:
        """The most that may be emitted."""
        return _carbon(self.carbon)[0] if self.carbon else None

    @property
    def carbon_micros_kg(self) -> float:
        """What a kilogram costs in the ranking."""
        return _carbon(self.carbon)[1] if self.carbon else 0.0

    def allows(self, provider: str, region: str, country: str = "") -> bool:
        """`country` by its two letters. Where it is not known, a region is in no area that is
        wanted, and may be in one that is excluded."""
        if self.exclude and (
            _fits(provider, self.exclude)
            or _in_place(provider, region, country, self.exclude, unknown=True)
        ):
            return False
        if self.providers is not None and not _fits(provider, self.providers):
            return False
        return self.regions is None or _in_place(provider, region, country, self.regions)

    def allows_market(self, market: str) -> bool:
        return self.markets is None or market in self.markets

    def assumed(self, provider: str, region: str, instance_type: str) -> float | None:
        """The chance to have it that the user takes for given; None where that is left to us."""
        names = (provider, f"{provider}/{region}", f"{provider}/{instance_type}", instance_type)
        found = None
        for text in self.assume_capacity or ():
            glob, share = _assumption(text)
            if any(_fits(name, (glob,)) for name in names):
                found = share
        return found

    def allows_accelerator(self, name: str) -> bool:
        return self.accelerators is None or _fits(name, self.accelerators)

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        deadline = values.get("deadline")
        if deadline is not None and not isinstance(deadline, datetime):
            yield Fault("deadline", f"{checks.shown(deadline)} is no moment")
        elif deadline is not None and deadline.utcoffset() is None:
            yield Fault("deadline", "it has no time zone", "2026-12-01T08:00+01:00")
        if deadline is not None and values.get("within_s") is not None:
            yield Fault("deadline", "it is both a moment and a length of time")
        # A hundred years: beyond it a moment cannot be reckoned, and nobody waits.
        yield from checks.whole(values, "within_s", field="deadline")
        within = values.get("within_s")
        if isinstance(within, int) and within > 100 * 366 * 86_400:
            yield Fault("deadline", "it is more than a hundred years away")
        yield from checks.whole(values, "budget")
        yield from checks.flag(values, "hard")
        dated = values.get("within_s") is not None or deadline is not None or "deadline" in wrong
        if values.get("hard") and not dated:
            yield Fault("hard", "what is hard? deadline is missing", "deadline: 48h")
        yield from checks.whole(values, "late")
        if values.get("late") is not None and not dated:
            yield Fault("late", "late for what? deadline is missing", "deadline: 48h")
        elif values.get("late") is not None and values.get("hard"):
            yield Fault("late", "with hard: true the run stops at its deadline, and is never late")
        confidence = values.get("confidence")
        if confidence is not None and not (isinstance(confidence, float) and 0 < confidence < 1):
            yield Fault("confidence", f"{checks.shown(confidence)} is not between 0 % and 100 %")
        yield from checks.listed(
            values, "providers", "exclude", "regions", "markets", "accelerators"
        )
        yield from checks.whole(values, "max_nodes", "max_accelerators")
        for market in values.get("markets") or ():
            if market not in MARKETS:
                yield Fault("markets", f"{market!r} is none of {', '.join(MARKETS)}")
        yield from checks.choice(values, "commit", COMMITMENTS)
        yield from checks.listed(values, "assume_capacity")
        for text in values.get("assume_capacity") or ():
            if isinstance(text, str) and _assumption(text) is _NO_ASSUMPTION:
                yield Fault(
                    "assume_capacity",
                    f"{text!r} is no share above 0 % and up to 100 %",
                    "90%, or aws=90%, or p5.48xlarge=50%",
                )
        carbon = values.get("carbon")
        if carbon is not None and not (isinstance(carbon, str) and any(_carbon(carbon))):
            yield Fault(
                "carbon", f"{checks.shown(carbon)} is neither a mass nor a price of CO2e",
                "50kg, 2t, or $100/t",
            )  # fmt: skip
        providers, exclude = values.get("providers"), values.get("exclude")
        if providers and exclude and all(_fits(name, exclude) for name in providers):
            yield Fault("exclude", "every provider that is allowed is excluded too")


def _fits(name: str, patterns: Collection[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


_NO_ASSUMPTION = ("", 0.0)


def _assumption(text: str) -> tuple[str, float]:
    """`aws=90%` as a glob and a share; `90%` is of everything."""
    found = re.fullmatch(r"(?:(.+)=)?\s*(\d+(?:\.\d+)?)\s*%", text.strip())
    if not found or not 0 < float(found[2]) <= 100:
        return _NO_ASSUMPTION
    return (found[1] or "*").strip(), float(found[2]) / 100


def _in_place(
    provider: str, region: str, country: str, patterns: Collection[str], unknown: bool = False
) -> bool:
    """Some regions have slashes of their own (`France/FR/EU`), so both spellings are tried.
    `unknown`: what is said where nobody knows the country."""
    for text in patterns:
        lands = countries(text)
        if lands:
            fits = country in lands if country else unknown
        else:
            fits = _fits(region, (text,)) or _fits(f"{provider}/{region}", (text,))
        if fits:
            return True
    return False


def _carbon(text: str) -> tuple[float | None, float]:
    """The most kilograms, or micro-dollars a kilogram; neither where it is none of both."""
    plain = text.strip().replace(" ", "").replace(",", "").lower()
    mass = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(g|kg|t)", plain)
    price = re.fullmatch(r"\$([0-9]+(?:\.[0-9]+)?)/(kg|t)", plain)
    scale = {"g": 0.001, "kg": 1.0, "t": 1000.0}
    if mass and float(mass[1]) > 0:
        return float(mass[1]) * scale[mass[2]], 0.0
    if price and float(price[1]) > 0:
        return None, 1e6 * float(price[1]) / scale[price[2]]
    return None, 0.0
