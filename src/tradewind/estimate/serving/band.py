"""How far off an estimate may be, by what was measured of what it speaks of.

    known     the model, and the engine on that accelerator
    model     the engine on that accelerator, but not the model
    chip      the engine on that family of accelerators, but not on this one
    strange   less than that

The widths are those that held four fifths of rows that were left out of the fit (`left_out.py`),
judged by what the rest still had. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import calibration

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

CLASSES = ("known", "model", "chip", "strange")


class Evidence:
    """Which engines, accelerators and models were measured."""

    def __init__(self, kinds: Iterable[tuple[str, str, str, str]]) -> None:
        """Of engine, family, chip, model."""
        self.kinds = sorted(set(kinds))
        self._chips = {(engine, chip) for engine, _, chip, _ in self.kinds}
        self._families = {(engine, family) for engine, family, _, _ in self.kinds}
        self._models = {model for *_, model in self.kinds}

    @classmethod
    def of(cls, cases: Cases) -> Evidence:
        return cls(_kinds(cases))

    def familiarity(self, cases: Cases) -> list[str]:
        return [self._one(*kind) for kind in _kinds(cases)]

    def _one(self, engine: str, family: str, chip: str, model: str) -> str:
        if (engine, chip) in self._chips:
            return "known" if model in self._models else "model"
        return "chip" if (engine, family) in self._families else "strange"


def _kinds(cases: Cases) -> list[tuple[str, str, str, str]]:
    columns = (cases.engine, cases.family, cases.chip, cases.model)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@cache
def published() -> Evidence:
    return Evidence((e, f, c, m) for e, f, c, m in calibration()["measured"])


def half_width(cases: Cases, measure: str, familiarity: list[str] | None = None) -> Column:
    """Half of the 80 % band in the logarithm: right within a factor exp(±that)."""
    import numpy as np

    widths = calibration()["bands"][measure]
    classes = familiarity or published().familiarity(cases)
    found: Column = np.array([widths[name] for name in classes])
    return found


def reason(familiarity: str, engine: str, chip: str, model: str) -> str:
    """Why the band is as wide as it is, in words."""
    return {
        "known": f"{model} and {engine} on {chip} were measured",
        "model": f"{engine} on {chip} was measured, but not {model}",
        "chip": f"{engine} was not measured on {chip}, but on its kin",
        "strange": f"{engine} was not measured on anything like {chip}: taken from its peaks",
    }[familiarity]
