"""How near the estimates of speed come to measured training runs, and how fast they are made."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from tradewind import clock
from tradewind.bench.measured import finders, rows_of, scores, unsupported
from tradewind.estimate import calibrate, left_out, measurements
from tradewind.estimate.band import half_width, kinds, widths
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import memory_use
from tradewind.estimate.time import step_time


def measure(path: Path, *, leave_out: str | None = None) -> dict[str, Any]:
    """All figures in percent; errors are |predicted/measured − 1| of tokens/s for each device.

    `leave_out`: each row by constants fitted without its source (`sources`), or model (`models`).
    """
    import numpy as np

    measured = measurements.read(rows_of(path, "tokens_per_s_per_gpu"), *finders())
    constants = fitted()
    if leave_out:
        leave = left_out.by_source if leave_out == "sources" else left_out.by_model
        left = leave(measured, calibrate.fit(measured))
        off, band = left.residuals, widths(kinds(measured.cases), left.familiarity)
    else:
        off, band = calibrate.residuals(measured, constants), half_width(measured.cases)
    errors = 100 * np.abs(np.exp(off) - 1)
    inside = np.abs(off) <= band
    return {
        "rows": measured.rows,
        "scored": len(errors),
        **unsupported(measured.unsupported),
        **scores(errors, measured.sources),
        "band80_coverage": round(100 * float(inside.mean()), 1),
    }


def speed(batch: int = 20_000, repeats: int = 15) -> dict[str, float]:
    """Estimates of time and memory a second, on one core."""
    import numpy as np

    spread = np.arange(batch)
    cases = Cases.of(
        {
            "layers": 32, "d_model": 4096, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
            "d_ff": 14336, "gated": 1, "vocab": 128_256, "sequence": 8192,
            "dp": 2.0 ** (spread % 8), "tp": 2.0 ** (spread % 4), "pp": 2.0 ** (spread % 3),
            "zero": spread % 4, "shard": 2.0 ** (spread % 8), "micro_batch": 1 + spread % 8,
            "recompute": spread % 3, "peak": 989e12, "peak16": 989e12, "bandwidth": 3.35e12,
            "link": 450e9, "network": 50e9, "memory_gb": 80, "generation": "hopper",
        }
    )  # fmt: skip
    constants = fitted()
    taken = []
    for _ in range(repeats):
        start = clock.stopwatch()
        step_time(cases, constants)
        memory_use(cases, constants)
        taken.append(clock.stopwatch() - start)
    return {"batch": batch, "per_second": round(batch / median(taken))}
