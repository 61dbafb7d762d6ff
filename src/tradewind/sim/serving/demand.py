"""Traces as load by second.

    t_s,input_tokens,output_tokens     a request a row
    t_s,req_per_s[,cv_interarrival]    rates of windows, with a file of lengths beside it:
                                       NAME_rates.csv.gz, NAME_lengths.csv.gz

A trace is scaled so that its busiest ten minutes need as many replicas as is said. Rates are joined
by straight lines between the middles of their windows, and requests arrive in each second as
bursty as the window says (a negative binomial with the same mean and variance as such gaps give).
Of requests, copies are made within half a minute of each, or some are left out, by a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base import csvfile
from tradewind.base.csvfile import number
from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.estimate.serving.mix import Mix
from tradewind.model.lengths import Lengths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

BUSIEST_S = 600
_NEAR_S = 30.0
_REQUESTS = ("t_s", "input_tokens", "output_tokens")
_RATES = ("t_s", "req_per_s")
_QUANTILES = {
    "p5": 0.15,
    "p25": 0.225,
    "p50": 0.25,
    "p75": 0.2,
    "p90": 0.1,
    "p95": 0.045,
    "p99": 0.03,
}
"""How many requests each stands for."""

Work = Callable[[Mix], float]
"""Replica-seconds that a request of a mix takes, on average."""


@dataclass(frozen=True, slots=True)
class Demand:
    load: Column
    """By second, in replicas."""
    requests: Column
    mix: Mix
    """Of the hours whose requests take most."""
    answer: float
    """Tokens of the longest answers."""


def read(path: Path, work: Work, peak: float, seed: int) -> Demand:
    rows = list(csvfile.rows(path))
    if not rows:
        raise BadFile(f"{path} is empty", hint=f"columns {', '.join(_REQUESTS)}")
    columns = rows[0][1]
    if all(name in columns for name in _REQUESTS):
        return _of_requests(_numbers(path, rows, _REQUESTS), work, peak, seed)
    if all(name in columns for name in _RATES):
        rates = _numbers(path, rows, _RATES)
        cvs = [number(row, "cv_interarrival") or 1.0 for _, row in rows]
        return _of_rates(rates, cvs, _lengths(path), work, peak, seed)
    raise BadFile(
        f"{path} is no trace: its columns are {', '.join(columns)}",
        hint=f"either {', '.join(_REQUESTS)}, or {', '.join(_RATES)}",
    )


def _numbers(
    path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], names: Sequence[str]
) -> list[list[float]]:
    found = []
    for line, row in rows:
        try:
            values = [number(row, name) for name in names]
        except InvalidValue as error:
            raise BadFile(f"{path}:{line}: {error.message}") from None
        if any(value is None or value < 0 for value in values):
            raise BadFile(f"{path}:{line}: a number is missing or below 0", hint=", ".join(names))
        found.append([value or 0.0 for value in values])
    if len(found) < 2:
        raise BadFile(f"{path} has one row", hint="a trace has several")
    return sorted(found)


def _lengths(path: Path) -> list[tuple[float, Mix, float]]:
    """From when on, which mix, and the longest of its answers."""
    if "_rates" not in path.name:
        raise BadFile(
            f"{path} has rates, and no lengths beside them",
            hint="call it NAME_rates.csv and put NAME_lengths.csv beside it",
        )
    beside = path.with_name(path.name.replace("_rates", "_lengths"))
    try:
        rows = list(csvfile.rows(beside))
    except NoAccess as error:
        raise NoAccess(error.message, hint=f"{path.name} has rates; lengths belong there") from None
    found = []
    for line, row in rows:
        try:
            mix = Mix.of(_distribution(row, "in"), _distribution(row, "out"))
            found.append((number(row, "t_s") or 0.0, mix, number(row, "out_p99") or 1.0))
        except InvalidValue as error:
            raise BadFile(f"{beside}:{line}: {error.message}") from None
    if not found:
        raise BadFile(f"{beside} is empty")
    return sorted(found, key=lambda each: each[0])


def _distribution(row: Mapping[str, str], side: str) -> Lengths:
    """Of quantiles, stretched to the mean that is told."""
    points: dict[float, float] = {}
    for name, share in _QUANTILES.items():
        at = max(number(row, f"{side}_{name}") or 1.0, 1.0)
        points[at] = points.get(at, 0.0) + share
    mean = sum(at * share for at, share in points.items())
    factor = (number(row, f"{side}_mean") or mean) / mean
    stretched: dict[float, float] = {}
    for at, share in points.items():
        size = max(round(at * factor, 1), 1.0)
        stretched[size] = stretched.get(size, 0.0) + share
    return Lengths.shares(stretched)


def _of_rates(
    rates: list[list[float]],
    cvs: list[float],
    lengths: list[tuple[float, Mix, float]],
    work: Work,
    peak: float,
    seed: int,
) -> Demand:
    import numpy as np

    times, values = np.array(rates).T
    window = float(np.median(np.diff(times)))
    if window < 1:
        raise BadFile("windows of rates are shorter than a second")
    second = np.arange(int(times[-1] - times[0] + window))
    middles = times - times[0] + window / 2
    rate = np.interp(second, middles, values)
    burst = np.maximum(np.interp(second, middles, cvs) ** 2, 1.0001)
    begins = np.array([begin - times[0] for begin, _, _ in lengths])
    which = np.clip(np.searchsorted(begins, second, side="right") - 1, 0, len(lengths) - 1)
    each = np.array([work(mix) for _, mix, _ in lengths])[which]
    rate = rate * peak / _busiest(rate * each)
    # Counts of a second, of a process whose gaps vary so: mean m, variance burst × m.
    share = 1 / burst
    found = np.random.default_rng(seed).negative_binomial(
        np.maximum(rate * share / (1 - share), 1e-9), share
    )
    heaviest = max((mix for _, mix, _ in lengths), key=work)
    longest = max(longest for *_, longest in lengths)
    return Demand(found * each, found.astype(float), heaviest, longest)


def _of_requests(requests: list[list[float]], work: Work, peak: float, seed: int) -> Demand:
    import numpy as np

    at, inputs, outputs = np.array(requests).T
    at, inputs, outputs = at - at[0], np.maximum(inputs, 1.0), np.maximum(outputs, 1.0)
    mix = Mix.of_requests(list(zip(inputs.tolist(), outputs.tolist(), strict=True)))
    each = _shared_out(inputs, outputs, work, mix)
    span = int(at[-1]) + 1
    factor = peak / _busiest(np.bincount(at.astype(int), weights=each, minlength=span))
    random = np.random.default_rng(seed)
    copies = np.floor(factor + random.random(len(at))).astype(int)
    moved = np.repeat(at, copies)
    first = np.concatenate([[True], np.diff(np.repeat(np.arange(len(at)), copies)) > 0])
    moved = np.where(first, moved, moved + random.uniform(-_NEAR_S, _NEAR_S, len(moved)))
    second = np.clip(moved, 0, span - 1).astype(int)
    return Demand(
        np.bincount(second, weights=np.repeat(each, copies), minlength=span),
        np.bincount(second, minlength=span).astype(float),
        mix,
        float(np.quantile(outputs, 0.99)),
    )


def _shared_out(inputs: Column, outputs: Column, work: Work, mix: Mix) -> Column:
    """The work of each request: that of the mix, by how longer prompts and answers add to it."""
    import numpy as np

    here, i, o = work(mix), mix.input, mix.output
    by_input = (work(Mix((2 * i,), (o,), (1.0,))) - work(Mix((i,), (o,), (1.0,)))) / i
    by_output = (work(Mix((i,), (2 * o,), (1.0,))) - work(Mix((i,), (o,), (1.0,)))) / o
    found: Column = np.maximum(
        here + by_input * (inputs - i) + by_output * (outputs - o), here / 100
    )
    found *= here / found.mean()
    return found


def _busiest(load: Column) -> float:
    import numpy as np

    window = min(BUSIEST_S, len(load))
    total = np.concatenate([[0.0], np.cumsum(load)])
    most = float((total[window:] - total[:-window]).max()) / window
    if most <= 0:
        raise BadFile("nothing is asked for in this trace")
    return most
