"""How often the estimator is right about what fits, and how near its peaks are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.bench.measured import finders, rows_of, unsupported
from tradewind.estimate import calibrate_memory, judges, outcomes
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import possible
from tradewind.estimate.outcomes import Outcomes

if TYPE_CHECKING:
    from tradewind.estimate.calibrate_memory import Vector


def measure(path: Path, *, leave_out: str | None = None) -> dict[str, Any]:
    """All figures in percent: rows judged rightly, failures foreseen, working rows accepted, and
    how far published peaks lie from estimated ones.

    `leave_out`: each row by constants fitted without its source (`sources`), or without its source
    on its generation of accelerators (`blocks`, see `estimate/judges.py`).
    """
    import numpy as np

    found = outcomes.read(rows_of(path, "outcome"), *finders())
    off, room = _judged(found, leave_out)
    said = (room <= 0) & possible(found.cases)
    ran = found.ran > 0
    errors = 100 * np.abs(np.exp(off[np.isfinite(off)]) - 1)
    sources = np.array(found.sources)

    def share(mask: Any) -> float | None:
        return round(100 * float(mask.mean()), 2) if mask.size else None

    def quantile(part: float) -> float | None:
        return round(float(np.quantile(errors, part)), 2) if errors.size else None

    return {
        "rows": found.rows,
        "scored": len(ran),
        **unsupported(found.unsupported),
        "fit_accuracy": share(said == ran),
        "oom_caught": share(~said[~ran]),
        "ok_kept": share(said[ran]),
        "peaks": len(errors),
        "peak_median_ape": quantile(0.5),
        "peak_p90_ape": quantile(0.9),
        "by_source": {
            str(name): {
                "n": int((sources == name).sum()),
                "fit_accuracy": share((said == ran)[sources == name]),
            }
            for name in sorted(set(found.sources))
        },
    }


def _judged(found: Outcomes, leave_out: str | None) -> tuple[Vector, Vector]:
    if leave_out == "sources":
        return calibrate_memory.left_out(found, found.sources)
    if leave_out == "blocks":
        return calibrate_memory.of_blocks(found, judges.generations(found))
    return calibrate_memory.compared(found, fitted())
