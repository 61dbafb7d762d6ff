"""How often the estimator is right about what fits, and how near its peaks are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tradewind.bench.measured import finders, rows_of, unsupported
from tradewind.estimate import outcomes
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import fits, memory_use


def measure(path: Path) -> dict[str, Any]:
    """All figures in percent: rows judged rightly, failures foreseen, working rows accepted."""
    import numpy as np

    found = outcomes.read(rows_of(path, "outcome"), *finders())
    constants = fitted()
    use = memory_use(found.cases, constants)
    said = fits(found.cases, use, constants)
    ran = found.ran > 0
    told = found.peak_gb > 0
    errors = 100 * np.abs(found.as_published(constants)[told] / found.peak_gb[told] - 1)
    sources = np.array(found.sources)

    def share(mask: Any) -> float | None:
        return round(100 * float(mask.mean()), 2) if mask.size else None

    return {
        "rows": found.rows,
        "scored": len(ran),
        **unsupported(found.unsupported),
        "fit_accuracy": share(said == ran),
        "oom_caught": share(~said[~ran]),
        "ok_kept": share(said[ran]),
        "peak_median_ape": round(float(np.median(errors)), 2) if errors.size else None,
        "by_source": {
            str(name): {
                "n": int((sources == name).sum()),
                "fit_accuracy": share((said == ran)[sources == name]),
            }
            for name in sorted(set(found.sources))
        },
    }
