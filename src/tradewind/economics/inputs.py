"""What an answer stands on: named inputs with a range, a unit, a source and a date.

An input is a triangle: as low, as likely and as high as it may be. Where facts give no range, the
range is an assumption of ours, and says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tradewind.base.errors import InvalidValue
from tradewind.economics.facts import Fact

ASSUMED = "assumption"


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    words: str
    unit: str
    low: float
    typical: float
    high: float
    source: str
    as_of: str = ""
    doubt: str = ""
    least: float = 0.0
    """What it cannot be below, and beyond what it cannot be."""
    most: float = math.inf

    def __post_init__(self) -> None:
        for value in (self.low, self.typical, self.high):
            if not math.isfinite(value) or not self.least <= value <= self.most:
                legal = f"{self.least:g} to {self.most:g}" if self.most < math.inf else (
                    f"{self.least:g} or more"
                )  # fmt: skip
                raise InvalidValue(
                    f"{self.name} cannot be {value:g} {self.unit}", hint=f"legal: {legal}"
                )
        if not self.low <= self.typical <= self.high:
            raise InvalidValue(
                f"{self.name}: {self.low:g}, {self.typical:g}, {self.high:g} do not ascend",
                hint=f"--set {self.name}=LOW:TYPICAL:HIGH",
            )


Inputs = Mapping[str, Input]


def of_fact(
    name: str, words: str, fact: Fact, *, unit: str = "", scale: float = 1.0, spread: float = 0.0,
    most: float = math.inf,
) -> Input:  # fmt: skip
    """From the low, typical and high of a fact. One that is missing is the next one beside it, or,
    with `spread`, so much below and above the typical one, which is then ours."""
    low, typical, high = (fact.number(part) for part in ("low", "typical", "high"))
    if typical is None:
        ends = [value for value in (low, high) if value is not None]
        typical = sum(ends) / len(ends)
    doubt = fact["doubt"]
    if low is None and high is None and spread:
        low, high = typical * (1 - spread), typical * (1 + spread)
        doubt = "; ".join(filter(None, (doubt, f"range of ±{spread:.0%} assumed")))
    low = typical if low is None else low
    high = typical if high is None else high
    return Input(
        name, words, unit or fact["unit"], low * scale, typical * scale, high * scale,
        fact["source"], fact["as_of"], doubt, most=most,
    )  # fmt: skip


def assumed(
    name: str, words: str, unit: str, low: float, typical: float, high: float, *, why: str = "",
    least: float = 0.0, most: float = math.inf,
) -> Input:  # fmt: skip
    return Input(
        name, words, unit, low, typical, high, why or ASSUMED, doubt="assumed", least=least,
        most=most,
    )  # fmt: skip


def overridden(inputs: Inputs, settings: Iterable[str]) -> dict[str, Input]:
    """With each `NAME=VALUE` or `NAME=LOW:TYPICAL:HIGH` in place of what was known."""
    found = dict(inputs)
    for text in settings:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or name not in found:
            from difflib import get_close_matches

            close = get_close_matches(name, found, n=1)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(found)}"
            raise InvalidValue(f"--set {text!r}: there is no input {name!r}", hint=hint)
        old = found[name]
        parts = [number(name, part, old.unit) for part in value.split(":")]
        if len(parts) not in (1, 3):
            raise InvalidValue(
                f"--set {text!r} is neither one figure nor three",
                hint=f"{name}=VALUE, or {name}=LOW:TYPICAL:HIGH",
            )
        low, typical, high = parts if len(parts) == 3 else parts * 3
        found[name] = replace(
            old, low=low, typical=typical, high=high, source="yours", as_of="", doubt=""
        )
    return found


_OTHER_MONEY = re.compile(r"[€£¥₹]|\b(?:eur|gbp|chf|jpy|cny|inr|cad|aud)\b", re.IGNORECASE)


def number(name: str, text: str, unit: str) -> float:
    if _OTHER_MONEY.search(text):
        raise InvalidValue(
            f"{name}: {text.strip()!r} is not in US dollars, and all other figures are",
            hint="convert it first; currencies are not mixed",
        )
    plain = text.strip().lstrip("$").replace(",", "")
    share = plain.endswith("%")
    thousands = 1000.0 if plain[-1:] in ("k", "K") else 1.0
    try:
        value = float(plain.rstrip("%kK")) * thousands
    except ValueError:
        raise InvalidValue(
            f"{name}: {text.strip()!r} is not a number", hint=f"it is in {unit or 'plain numbers'}"
        ) from None
    return value / 100 if share else value


def typical(inputs: Inputs) -> dict[str, float]:
    return {name: one.typical for name, one in inputs.items()}


def moved(inputs: Inputs, name: str, value: float) -> dict[str, float]:
    """All as is typical, but one."""
    return typical(inputs) | {name: value}


def document(inputs: Sequence[Input]) -> list[dict[str, object]]:
    """For JSON."""
    return [
        {
            "name": one.name,
            "words": one.words,
            "unit": one.unit,
            "low": one.low,
            "typical": one.typical,
            "high": one.high,
            "source": one.source,
            "as_of": one.as_of or None,
            "doubt": one.doubt or None,
        }
        for one in inputs
    ]
