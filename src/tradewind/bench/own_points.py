"""What a few points of a user's own stack are worth: given some of its rows, how near the others.

A stack is a model on an accelerator, in one layout, by one engine, in one mode; its rows differ in
lengths and in how many requests there are at once. Points are taken from the lightest load to the
heaviest, as somebody would measure them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.bench.inference import read
from tradewind.bench.measured import scores
from tradewind.estimate.serving import band, calibrate, left_out, rows, sharpen
from tradewind.estimate.serving.constants import fitted

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

JUDGED = 2  # rows of a stack that must be left to judge by
LIMIT = 15.0  # percent


def measure(
    path: Path, table: Path | None, points: int, *, leave_out: str | None = None
) -> dict[str, Any]:
    """In percent, `before` without the points. `leave_out`: the published fit is made without the
    stacks that are judged, or without their sources, models …"""
    import numpy as np

    language, _ = read(path, table)
    groups: dict[Any, list[int]] = defaultdict(list)
    for row, name_of in enumerate(sharpen.stacks(language)):
        groups[name_of].append(row)
    chosen = [each for each in groups.values() if len(each) >= points + JUDGED]
    if not chosen:
        raise InvalidValue(
            f"{path} has no stack with {points + JUDGED} rows: {points} to be given, and "
            f"{JUDGED} to judge by",
            hint="measure more lengths or rates of one stack",
        )
    terms, familiar = _foundations(language, leave_out)
    off: dict[str, list[float]] = defaultdict(list)
    before: dict[str, list[float]] = defaultdict(list)
    sources: dict[str, list[str]] = defaultdict(list)
    medians: dict[str, list[float]] = defaultdict(list)
    for members in chosen:
        mask = np.zeros(len(language.cases), dtype=bool)
        mask[members] = True
        stack = language.take(mask)
        own = {name: column[mask] for name, column in terms.items()}
        given = sharpen.spread_out(stack, points)
        told, asked = stack.take(given), stack.take(~given)
        learned = sharpen.sharpen(
            told,
            {name: column[given] for name, column in own.items()},
            strange=familiar[members[0]] == "strange",
        )
        rest = {name: column[~given] for name, column in own.items()}
        plain = _plain(asked, rest)
        for name, residual in sharpen.residuals(asked, rest, learned).items():
            there = ~np.isnan(residual)
            errors = residual[there].tolist()
            off[name] += errors
            before[name] += plain[name][there].tolist()
            sources[name] += [stack.sources[0]] * len(errors)
            if errors:
                medians[name].append(median(_percent(errors)))
    found: dict[str, Any] = {"points": points, "stacks": len(chosen)}
    for name in rows.MEASURES:
        found[name] = {"n": len(off[name])}
        if off[name]:
            figures = scores(np.array(_percent(off[name])), sources[name])
            inside = np.abs(off[name]) <= sharpen.WIDTH[name]
            found[name] |= {
                **{key: value for key, value in figures.items() if key != "by_source"},
                "band80_coverage": round(100 * float(np.mean(inside)), 1),
                "stacks_under_15": round(100 * float(np.mean(np.array(medians[name]) < LIMIT)), 1),
                "before_median_ape": round(median(_percent(before[name])), 2),
                "by_source": figures["by_source"],
            }
    return found


def _percent(residuals: list[float]) -> list[float]:
    import numpy as np

    found: list[float] = (100 * np.abs(np.expm1(residuals))).tolist()
    return found


def _plain(measured: rows.Measurements, terms: dict[str, Column]) -> dict[str, Column]:
    import numpy as np

    found = calibrate.answers(measured.cases, terms, measured.per_token)
    parts = np.split(found, len(rows.MEASURES))
    return {
        name: part - np.log(measured.measured[name])
        for name, part in zip(rows.MEASURES, parts, strict=True)
    }


def _foundations(
    measured: rows.Measurements, leave_out: str | None
) -> tuple[dict[str, Column], list[str]]:
    """Terms of every row before any point is given, and how familiar each row is."""
    import numpy as np

    if leave_out is None:
        familiar = band.published().familiarity(measured.cases)
        return fitted().terms(measured.cases), familiar
    terms = fitted().terms(measured.cases)
    familiar = ["strange"] * len(measured.cases)
    for out, constants in left_out.refits(measured, leave_out):
        mine = measured.take(out)
        for name, column in constants.terms(mine.cases).items():
            terms[name][out] = column
        known = band.Evidence.of(measured.take(~out).cases).familiarity(mine.cases)
        for place, row in enumerate(np.flatnonzero(out)):
            familiar[row] = known[place]
    return terms, familiar
