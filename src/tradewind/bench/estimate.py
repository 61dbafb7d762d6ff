"""How near the estimates of speed come to measured training runs, and how fast they are made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.bench.measured import finders, rows_of, scores, unsupported
from tradewind.estimate import calibrate, judges, left_out, measurements
from tradewind.estimate.band import half_width, kinds, widths
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.left_out import LeftOut
from tradewind.estimate.measurements import Measurements
from tradewind.estimate.memory import memory_use
from tradewind.estimate.time import step_time


def measure(paths: Sequence[Path], *, leave_out: str | None = None) -> dict[str, Any]:
    """All figures in percent; errors are |predicted/measured − 1| of tokens/s for each device.

    `leave_out`: each row by constants fitted without its source (`sources`), its model (`models`),
    or by each of the strict judges (`blocks`).
    """
    import numpy as np

    rows = [row for path in paths for row in rows_of(path, "tokens_per_s_per_gpu")]
    measured = measurements.read(rows, *finders())
    counted = {
        "rows": measured.rows,
        "scored": len(measured.cases),
        **unsupported(measured.unsupported),
    }
    if leave_out == "blocks":
        parts = {
            name: left_out.of_blocks(measured, blocks(measured))
            for name, blocks in judges.JUDGES.items()
        }
        figures = {
            name: _judged(measured, [part]) for name, part in parts.items() if len(part.rows)
        }
        for judged in figures.values():
            del judged["by_source"]
        return {
            **counted,
            "by_judge": figures,
            **_judged(measured, list(parts.values())),
        }
    if leave_out:
        leave = left_out.by_source if leave_out == "sources" else left_out.by_model
        return {**counted, **_judged(measured, [leave(measured)])}
    off = calibrate.residuals(measured, fitted())
    inside = np.abs(off) <= half_width(measured.cases)
    return {
        **counted,
        **scores(100 * np.abs(np.exp(off) - 1), measured.sources),
        "band80_coverage": round(100 * float(inside.mean()), 1),
    }


def _judged(measured: Measurements, parts: Sequence[LeftOut]) -> dict[str, Any]:
    import numpy as np

    rows = np.concatenate([part.rows for part in parts])
    off = np.concatenate([part.residuals for part in parts])
    familiarity = [known for part in parts for known in part.familiarity]
    speaks = kinds(measured.cases)
    inside = np.abs(off) <= widths([speaks[i] for i in rows], familiarity)
    return {
        "judged": len(rows),
        **scores(100 * np.abs(np.exp(off) - 1), [measured.sources[i] for i in rows]),
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
