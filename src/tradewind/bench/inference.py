"""How near the estimates of serving come to published measurements, and how fast they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tradewind import catalog
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.bench.measured import rows_of, scores
from tradewind.estimate.serving import band, calibrate, chips, left_out, others, rows, served
from tradewind.estimate.serving.constants import calibration, fitted
from tradewind.estimate.serving.modes import predict
from tradewind.model import Accelerator

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column


def finder() -> rows.FindChip:
    """Accelerators by the names that measurements use."""
    known = catalog.load(account=False)

    def chip(name: str) -> Accelerator:
        if name in chips.extra():
            return chips.extra()[name]
        if name in known.accelerators:
            return known.accelerators[name]
        usual = chips.USUAL.get(name.strip().lower())
        exact = usual or known.names.canonical(name, None)
        if exact is not None:
            return known.accelerators[exact]
        found = chips.nearest(name)
        if found is None:
            raise NotFound(f"no accelerator is called {name!r}")
        return found

    return chip


def models(path: Path | None) -> rows.FindModel:
    table = served.read_table(path) if path else None
    return partial(served.find, more=table)


def read(path: Path, table: Path | None = None) -> tuple[rows.Measurements, others.Requests]:
    """Language models' rows, and those of other tasks."""
    found = rows_of(path, "quality")
    chip = finder()
    return rows.read(found, chip, models(table)), others.read(found, chip)


def measure(
    path: Path, table: Path | None = None, *, leave_out: str | None = None
) -> dict[str, Any]:
    """All figures in percent; errors are |predicted/measured − 1|.

    `leave_out`: each row by constants fitted without its source, model, accelerator or engine.
    """
    import numpy as np

    language, requests = read(path, table)
    if leave_out:
        judged = left_out.by(language, leave_out)
        off, familiar = judged.residuals, judged.familiarity
        other = np.full(len(requests.places), np.nan)
        if leave_out == "sources":
            other = _others_left_out(requests)
    else:
        off = calibrate.residuals(language, fitted())
        familiar = band.published().familiarity(language.cases)
        other = others.residuals(requests, calibration()["others"]["parts"])
    reasons: Counter[str] = language.unsupported + requests.unsupported
    found: dict[str, Any] = {
        "rows": language.rows + requests.rows,
        "scored": len(language.cases) + len(requests.places),
        "unsupported": sum(reasons.values()),
        "without_a_rate": requests.silent,
        "unsupported_reasons": dict(reasons.most_common(10)),
    }
    by_source: dict[str, dict[str, Any]] = {}
    for name in rows.MEASURES:
        residual, sources = off[name], list(language.sources)
        width = band.half_width(language.cases, name, familiar) if familiar else np.zeros(0)
        if name == "throughput":
            residual = np.concatenate([residual, other])
            sources += requests.sources
            wide = np.full(len(other), float(calibration()["others"]["band"]))
            width = np.concatenate([width, wide])
        found[name] = _figures(residual, width, sources, name, by_source)
    return found | {"by_source": by_source}


def _figures(
    residual: Column,
    width: Column,
    sources: Sequence[str],
    name: str,
    by_source: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    import numpy as np

    there = ~np.isnan(residual)
    if not there.any():
        return {"n": 0}
    off = residual[there]
    named = [source for source, has in zip(sources, there, strict=True) if has]
    figures = scores(100 * np.abs(np.exp(off) - 1), named)
    for source, own in figures.pop("by_source").items():
        by_source.setdefault(source, {})[name] = own
    inside = float((np.abs(off) <= width[there]).mean())
    return {"n": int(there.sum()), **figures, "band80_coverage": round(100 * inside, 1)}


def _others_left_out(requests: others.Requests) -> Column:
    import numpy as np

    off = np.full(len(requests.places), np.nan)
    for source in sorted(set(requests.sources)):
        out = np.array([each == source for each in requests.sources])
        if out.all():
            continue
        parts = others.fit(others.part(requests, ~out))
        off[out] = others.residuals(others.part(requests, out), parts)
    return off


def speed(batch: int = 20_000, repeats: int = 15) -> dict[str, float]:
    """Estimates of serving a second, on one core: constants looked up, throughput and latencies."""
    import numpy as np

    chip = finder()("H100-SXM")
    model = served.find("llama-3.1-8b")
    from tradewind.estimate.serving.cases import Cases

    spread = np.arange(batch)
    cases = Cases.of(
        {
            **model.columns(), **chips.columns(chip, "fp8", 8.0), "weight_bytes": 1.0,
            "kv_bytes": 1.0, "precision": "8", "engine": "vllm", "software": "vllm",
            "model": model.name, "group": 2.0 ** (spread % 4), "input": 128.0 + spread % 4000,
            "output": 64.0 + spread % 1000, "concurrency": 1.0 + spread % 300, "mode": "closed",
        }
    )  # fmt: skip
    taken = []
    for _ in range(repeats):
        start = clock.stopwatch()
        predict(cases, fitted().terms(cases))
        taken.append(clock.stopwatch() - start)
    return {"batch": batch, "per_second": round(batch / median(taken))}


def document(path: Path, table: Path | None = None) -> Mapping[str, Any]:
    """A calibration: constants, bands and evidence, from a file of measurements."""
    language, requests = read(path, table)
    if not len(language.cases):
        raise InvalidValue(f"{path} has no row of a language model that can be used")
    constants = calibrate.fit(language)
    parts = [left_out.by(language, kind) for kind in ("sources", "models", "accelerators")]
    near = calibrate.residuals(language, constants)
    sources = Counter(language.sources) + Counter(requests.sources)
    return {
        "format": 1,
        "made_at": clock.now().replace(microsecond=0).isoformat(),
        "rows": len(language.cases) + len(requests.places),
        "sources": dict(sorted(sources.items())),
        "bands": left_out.bands(language, near, parts),
        "measured": band.Evidence.of(language.cases).kinds,
        "others": {"band": others.width(requests), "parts": others.fit(requests)}
        if requests.places
        else {"band": 0.5, "parts": {}},
        "constants": {
            name: float(f"{value:.4g}")
            for name, value in constants.parts.items()
            if abs(value) >= 1e-4
        },
    }
