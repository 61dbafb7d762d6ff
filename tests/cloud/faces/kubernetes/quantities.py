"""Quantities ("500m", "16Gi", "8") as exact numbers, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(m|[kMGTPE]i?|Ki|n|u|[eE][+-]?\d+)?")
_SCALES = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6)}
_SCALES |= {"m": Fraction(1, 1000), "k": Fraction(1000)}
_SCALES |= {name: Fraction(1000 ** (at + 2)) for at, name in enumerate("MGTPE")}
_SCALES |= {f"{name}i": Fraction(1024 ** (at + 1)) for at, name in enumerate("KMGTPE")}
Amounts = dict[str, Fraction]


@lru_cache(4096)
def _read(text: str) -> Fraction:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(
            "quantities must match the regular expression "
            r"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number, unit = Fraction(found[1]), found[2] or ""
    if unit[:1] in ("e", "E") and len(unit) > 1:
        return number * Fraction(10) ** int(unit[1:])
    return number * _SCALES[unit]


def amount(value: Any) -> Fraction:
    return _read(str(value))


def amounts(table: Mapping[str, Any] | None) -> Amounts:
    return {name: amount(value) for name, value in (table or {}).items()}


def written(value: Fraction) -> str:
    if value.denominator != 1:
        return f"{-(-value * 1000 // 1)}m"
    number = value.numerator
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        size = _SCALES[unit].numerator
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def add(to: Amounts, more: Mapping[str, Fraction], sign: int = 1) -> None:
    for name, value in more.items():
        to[name] = to.get(name, Fraction(0)) + sign * value


def asked(spec: Mapping[str, Any], of: str = "requests") -> Amounts:
    """What a pod asks for: the sum of its containers, or the largest init container's."""
    total: Amounts = {}
    for each in spec.get("containers") or ():
        add(total, amounts((each.get("resources") or {}).get(of)))
    for each in spec.get("initContainers") or ():
        for name, value in amounts((each.get("resources") or {}).get(of)).items():
            total[name] = max(total.get(name, Fraction(0)), value)
    add(total, amounts(spec.get("overhead")))
    return total
