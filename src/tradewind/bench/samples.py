"""How near the estimates come for models that are no transformers with a shape."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tradewind.bench.measured import finders, scores, work
from tradewind.errors import BadFile
from tradewind.estimate import measurements, samples
from tradewind.estimate.constants import calibration


def measure(path: Path) -> dict[str, Any]:
    """Errors of samples/s for each device, in percent."""
    import numpy as np

    rows = measurements.rows_of(path)
    if not rows or "throughput_per_gpu" not in rows[0]:
        raise BadFile(f"{path} has no column throughput_per_gpu", hint="see docs/measurements.md")
    found = samples.read(rows, finders()[0])
    predicted = samples.predict(found, calibration()["samples"], work)
    errors = 100 * np.abs(predicted * found.seconds - 1)
    known = np.isfinite(errors)
    unsupported = Counter(found.unsupported)
    for name, fine in zip(found.models, known, strict=True):
        if not fine:
            unsupported[f"nothing is known of {name}"] += 1
    if not known.any():
        raise BadFile(f"{path}: no row can be used")
    sources = [source for source, fine in zip(found.sources, known, strict=True) if fine]
    return {
        "rows": found.rows,
        "scored": int(known.sum()),
        "unsupported": sum(unsupported.values()),
        "unsupported_reasons": dict(unsupported.most_common(10)),
        **scores(errors[known], sources),
    }
