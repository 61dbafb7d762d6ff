"""How near the estimates come for models that are no transformers with a shape."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tradewind.bench.measured import finders, rows_of, scores, unsupported, work
from tradewind.estimate import samples
from tradewind.estimate.constants import calibration
from tradewind.estimate.measurements import none_usable
from tradewind.estimate.samples import Samples


def measure(path: Path, *, leave_out: str | None = None) -> dict[str, Any]:
    """Errors of samples/s for each device, in percent.

    `leave_out`: each row by coefficients fitted without its source (`sources`) or its accelerator
    (`accelerators`); what no other row tells of a model is then taken from the registry.
    """
    import numpy as np

    found = samples.read(rows_of(path, "throughput_per_gpu"), finders()[0])
    if leave_out:
        groups = found.sources if leave_out == "sources" else found.accelerators
        predicted = _left_out(found, np.array(groups))
    else:
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


def _left_out(found: Samples, group: Any) -> Any:
    """Samples a second of each row, by what the other groups show."""
    import numpy as np

    predicted = np.full(len(group), np.nan)
    for name in sorted(set(group.tolist())):
        mine = group == name
        others = samples.fit(found.take(~mine)) if (~mine).any() else {}
        predicted[mine] = samples.predict(found.take(mine), others, work)
    return predicted
