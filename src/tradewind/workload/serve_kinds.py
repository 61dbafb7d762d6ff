"""Kinds of values that only the section `serve` has: rates, lengths, latencies, curves. Pure."""

from __future__ import annotations

import re

from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.base.yamltree import Node
from tradewind.model.lengths import Lengths
from tradewind.model.serve import CURVES, USUAL_SHARE
from tradewind.workload.kinds import NUMBER, REGION, Context, Faulty, Kind

_PER = {
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hour": 3600.0, "d": 86_400.0, "day": 86_400.0,
}  # fmt: skip
_LETTERS = {"": 1.0, "k": 1e3, "m": 1e6}
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0}
_RATE = r"([0-9]+(?:\.[0-9]+)?)\s*([kKmM]?)\s*(?:(?:/|per)\s*([a-z]+))?"
_LATENCY = r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m)"
_LEVEL = r"[pP]([0-9]{2}(?:\.[0-9]+)?)"


def _rate(node: Node, _: Context) -> float:
    found = re.fullmatch(_RATE, node.text().strip(), re.ASCII)
    if not found or (found[3] or "") not in _PER:
        raise InvalidValue(
            f"{node.text()!r} is not a rate of requests", hint="12, 12/s, 700/min or 2M/day"
        )
    return float(found[1]) * _LETTERS[found[2].lower()] / _PER[found[3] or ""]


def _lengths(node: Node, _: Context) -> Lengths:
    if not isinstance(node.value, dict):
        return Lengths.parse(node.text())
    table = {}
    for name, inner in node.value.items():
        share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", inner.text(), re.ASCII)
        if not name.isdigit() or not share:
            raise InvalidValue(
                f"{name}: {inner.text()} is not a length with its share",
                hint="{500: 60%, 4000: 40%}",
            )
        table[float(name)] = float(share[1]) / 100
    return Lengths.shares(table)


def _latency(node: Node, _: Context) -> tuple[float, float]:
    """Seconds and share: `500ms p99`, either first; without a percentile, the usual one."""
    text = node.text().strip()
    for pattern, first in (
        (rf"{_LATENCY}(?:\s+{_LEVEL})?", True),
        (rf"{_LEVEL}\s+{_LATENCY}", False),
    ):
        found = re.fullmatch(pattern, text, re.ASCII)
        if found:
            number, unit, level = found.groups() if first else (found[2], found[3], found[1])
            share = float(level) / 100 if level else USUAL_SHARE
            return float(number) * _SECONDS[unit], share
    raise InvalidValue(
        f"{text!r} is not a latency", hint="500ms, or with its percentile: 500ms p99"
    )


def _curve(node: Node, context: Context) -> tuple[float, ...] | Faulty:
    found, wrong = [], []
    for item in node.items():
        try:
            text = item.text()
            found.append(0.0 if re.fullmatch(r"0+(\.0+)?", text) else NUMBER.read(item, context))
        except TradewindError as error:
            wrong.append((item, error))
    return Faulty(tuple(wrong)) if wrong else tuple(found)


_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
RATE = Kind(
    "requests, a second or per s, min, h, day",
    _rate,
    {"anyOf": [_POSITIVE, {"type": "string", "pattern": rf"^\s*{_RATE}\s*$"}]},
)
_SHARES = {
    "type": "object",
    "propertyNames": {"pattern": "^[0-9]+$"},
    "additionalProperties": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*%$"},
}
LENGTHS = Kind(
    "tokens: a number, `100 to 2000`, `median 600, p95 3000`, or sizes with shares",
    _lengths,
    {"anyOf": [_POSITIVE, {"type": "string", "pattern": "^[ ]*[0-9mM]"}, _SHARES]},
)
LATENCY = Kind(
    "time, with its percentile",
    _latency,
    {"type": "string",
     "pattern": rf"^\s*({_LATENCY}(\s+{_LEVEL})?|{_LEVEL}\s+{_LATENCY})\s*$"},
)  # fmt: skip
CURVE = Kind(
    f"list of {CURVES[0]} or {CURVES[1]} numbers",
    _curve,
    {
        "type": "array", "minItems": CURVES[0], "maxItems": CURVES[1],
        "items": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
    },
)  # fmt: skip


def _count(node: Node, _: Context) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", node.text()):
        raise InvalidValue(f"{node.text()!r} is not a whole number from 0")
    return int(node.text())


COUNT = Kind(
    "number", _count,
    {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,9}$"}]},
)  # fmt: skip


def _users(node: Node, _: Context) -> tuple[tuple[str, float], ...]:
    if not isinstance(node.value, dict):
        return ((node.text().strip(), 1.0),)
    found = []
    for name, inner in node.value.items():
        share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", inner.text(), re.ASCII)
        if not share:
            raise InvalidValue(
                f"{name}: {inner.text()} is not a place with its share",
                hint="{frankfurt: 60%, new-york: 40%}",
            )
        found.append((name.strip(), float(share[1]) / 100))
    return tuple(found)


def _residency(node: Node, context: Context) -> str:
    """A country, `EU`, or a region as in limits."""
    text = node.text().strip()
    if re.fullmatch(r"[a-zA-Z]{2}", text):
        return text.upper()  # which ones there are, the planner knows
    found: str = REGION.read(node, context)
    return found


USERS = Kind(
    "a city, or cities with shares: `{frankfurt: 60%, new-york: 40%}`",
    _users,
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "additionalProperties": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*%$"},
            },
        ]
    },
)
RESIDENCY = Kind("countries, EU, or regions", _residency, {"type": "string"})
