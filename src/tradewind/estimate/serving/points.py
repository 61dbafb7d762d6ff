"""Which of a user's own points speak of a question, and what they make of its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving import band, sharpen
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.rows import MEASURES, Measurements

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

_SAME = ("model", "weight_bytes", "kv_bytes", "group", "stages")


class Told(NamedTuple):
    """Terms as the points move them, and by measure what is added to the logarithm of answers."""

    terms: dict[str, Column]
    corrections: dict[str, Column]
    widths: dict[str, float]  # half of the 80 % band, in the logarithm
    reason: str


@dataclass(frozen=True, slots=True)
class Points:
    measured: Measurements
    name: str  # of the file

    def speaks_of(self, cases: Cases) -> bool:
        """Whether any point is of the engine and the accelerator of one question."""
        own = self.measured.cases
        return bool(((own.engine == cases.engine[0]) & (own.chip == cases.chip[0])).any())

    def told(self, cases: Cases) -> Told:
        """Of one question. InvalidValue where no point is of its engine and accelerator."""
        import numpy as np

        own = self.measured.cases
        here = (own.engine == cases.engine[0]) & (own.chip == cases.chip[0])
        if not here.any():
            pairs = zip(own.engine.tolist(), own.chip.tolist(), strict=True)
            had = sorted({f"{engine} on {chip}" for engine, chip in pairs})
            raise InvalidValue(
                f"{self.name} has no point of {cases.engine[0]} on {cases.chip[0]}",
                hint=f"it has {', '.join(had)}" if had else "measure some: tradewind measure",
            )
        same = here.copy()
        for column in _SAME:
            same &= getattr(own, column) == getattr(cases, column)[0]
        chosen = self.measured.take(same if same.any() else here)
        strange = band.published().familiarity(cases)[0] == "strange"
        learned = sharpen.sharpen(chosen, fitted().terms(chosen.cases), strange=strange)
        wider = 1.0
        if not same.any():  # of another model or layout: what is left at its loads is not ours
            learned = replace(
                learned, pulls={name: np.zeros_like(learned.pulls[name]) for name in MEASURES}
            )
            wider = 1.5
        number = len(chosen.cases)
        what = "of this set-up" if same.any() else "of the engine and the accelerator"
        return Told(
            learned.terms(fitted().terms(cases)),
            learned.corrections(cases),
            {name: wider * sharpen.WIDTH[name] for name in MEASURES},
            f"sharpened by {number} {'point' if number == 1 else 'points'} {what}",
        )
