"""Where the estimator's benches find accelerators and shapes for the rows of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tradewind import catalog
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.estimate import columns, measurements, registry, samples
from tradewind.model import Accelerator
from tradewind.model.shape import Work

# Measured, and the same chip as one that the catalog knows: only the memory differs.
_SAME_CHIP = {"Quadro RTX 8000": "Quadro-RTX6000"}


def rows_of(path: Path, column: str) -> list[dict[str, str]]:
    """The rows of a file of measurements, which must have that column."""
    rows = measurements.rows_of(path)
    if not rows:
        raise BadFile(f"{path} has no rows", hint="see docs/measurements.md")
    if column not in rows[0]:
        raise BadFile(f"{path} has no column {column}", hint="see docs/measurements.md")
    return rows


def unsupported(reasons: Counter[str]) -> dict[str, Any]:
    """How many rows could not be taken, and the most frequent reasons."""
    return {
        "unsupported": sum(reasons.values()),
        "unsupported_reasons": dict(reasons.most_common(10)),
    }


def scores(errors: Any, sources: Sequence[str]) -> dict[str, Any]:
    """Errors in percent: over all rows, over sources, and by source."""
    import numpy as np

    def of(part: Any) -> dict[str, Any]:
        return {
            "median_ape": round(float(np.median(part)), 2),
            "p90_ape": round(float(np.quantile(part, 0.9)), 2),
        }

    owner = np.array(sources)
    by_source = {}
    for name in sorted(set(sources)):
        mine = errors[owner == name]
        by_source[str(name)] = {"n": len(mine), **of(mine)}
    medians = [figures["median_ape"] for figures in by_source.values()]
    return {
        **of(errors),
        "macro_median_ape": round(sum(medians) / len(medians), 2),
        "by_source": by_source,
    }


def work(name: str, length: float | None) -> Work | None:
    """What a sample of a model costs, `length` being that of a sequence."""
    try:
        found = registry.find(name)
    except (NotFound, InvalidValue):
        return None
    return found if isinstance(found, Work) else samples.as_work(found, length)


def finders() -> tuple[
    Callable[[str, float | None], Accelerator], Callable[[str], Mapping[str, float] | None]
]:
    known = catalog.load(account=False)

    def accelerator(name: str, memory_gb: float | None) -> Accelerator:
        name = _SAME_CHIP.get(name, name)
        exact = known.names.canonical(name, memory_gb)
        return known.accelerators[exact or known.names.variant(name)[0].names[0]]

    def shape(name: str) -> Mapping[str, float] | None:
        try:
            return columns.of_shape(registry.find(name.replace("_", "-")))
        except (NotFound, InvalidValue):
            return None

    return accelerator, shape
