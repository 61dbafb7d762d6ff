"""Amounts as Kubernetes writes them: `96`, `7910m`, `1000Gi`, `1e3`."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(n|u|m|k|[MGTPE]|[KMGTPE]i)?")
_DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}
_DECIMAL |= {letter: 1e3**power for power, letter in enumerate("MGTPE", 2)}
_BINARY = {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)}
_FACTORS = _DECIMAL | _BINARY
MEBI = 1 << 20


def amount(text: object) -> float:
    """0 where it cannot be understood: what is not known to be there is not counted on."""
    found = _QUANTITY.fullmatch(str(text).strip())
    return float(found[1]) * _FACTORS[found[2] or ""] if found else 0.0


def mebibytes(size: float) -> str:
    return f"{max(int(size // MEBI), 1)}Mi"


def cores(number: float) -> str:
    """Whole ones where there are some: images that pin threads to cores need whole ones."""
    return str(int(number)) if number >= 1 else f"{max(int(number * 1000), 1)}m"
