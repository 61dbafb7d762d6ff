"""How near the estimates come for models that are no transformers with a shape."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tradewind.bench.measured import finders, rows_of, scores, unsupported, work
from tradewind.estimate import samples
from tradewind.estimate.constants import calibration
from tradewind.estimate.measurements import none_usable


def measure(path: Path) -> dict[str, Any]:
    """Errors of samples/s for each device, in percent."""
    import numpy as np

    found = samples.read(rows_of(path, "throughput_per_gpu"), finders()[0])
    predicted = samples.predict(found, calibration()["samples"], work)
    errors = 100 * np.abs(predicted * found.seconds - 1)
    known = np.isfinite(errors)
    reasons = Counter(found.unsupported)
    for name, fine in zip(found.models, known, strict=True):
        if not fine:
            reasons[f"nothing is known of {name}"] += 1
    if not known.any():
        raise none_usable(reasons)
    sources = [source for source, fine in zip(found.sources, known, strict=True) if fine]
    return {
        "rows": found.rows,
        "scored": int(known.sum()),
        **unsupported(reasons),
        **scores(errors[known], sources),
    }
