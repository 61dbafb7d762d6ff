"""What a service has to answer: requests a second by hour, their sizes, their bursts.

One cycle of hours (a day, a week, or as long as a trace is) that repeats.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from tradewind.base import requesttrace
from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate.serving.mix import Mix
from tradewind.model.serve import MOST_CV, Serve

HOURS_A_MONTH = 730.0
_WINDOW_S = 60.0  # gaps are compared with the mean of their own minute: tides are no bursts
_FEWEST = 20  # gaps of a window that say something


@dataclass(frozen=True, slots=True)
class Traffic:
    hours: tuple[float, ...]  # requests a second
    mix: Mix
    cv: float = 1.0

    def scaled(self, factor: float) -> Traffic:
        return replace(self, hours=tuple(rate * factor for rate in self.hours))

    @property
    def mean(self) -> float:
        return sum(self.hours) / len(self.hours)

    @property
    def months(self) -> float:
        """Cycles in a month."""
        return HOURS_A_MONTH / len(self.hours)

    @property
    def requests_a_month(self) -> float:
        return self.mean * 3600 * HOURS_A_MONTH

    @property
    def tokens_a_month(self) -> tuple[float, float]:
        """In and out."""
        return self.requests_a_month * self.mix.input, self.requests_a_month * self.mix.output


def of(serve: Serve) -> Traffic:
    """Reads the trace, where there is one."""
    if serve.trace is not None:
        return _of_trace(serve, Path(serve.trace).expanduser())
    assert serve.input is not None
    assert serve.output is not None
    mix = Mix.of(serve.input, serve.output, serve.cached)
    if serve.curve is None:
        assert serve.rate is not None
        return Traffic((serve.rate,) * 24, mix, serve.cv)
    curve = serve.curve
    if serve.rate is not None:
        mean = sum(curve) / len(curve)
        curve = tuple(rate * serve.rate / mean for rate in curve)
    return Traffic(curve, mix, serve.cv)


def _of_trace(serve: Serve, path: Path) -> Traffic:
    try:
        requests = sorted(requesttrace.read(path))
    except NoAccess as error:
        columns = ", ".join(requesttrace.COLUMNS)
        raise NoAccess(error.message, hint=f"serve.trace names a CSV file with {columns}") from None
    if len(requests) < 2:
        raise BadFile(f"{path} has fewer than two requests", hint="t_s,input_tokens,output_tokens")
    start = requests[0].at
    last = requests[-1].at - start
    hours = _by_hour([one.at - start for one in requests], last)
    if serve.rate is not None:
        mean = sum(hours) / len(hours)
        hours = [rate * serve.rate / mean for rate in hours]
    inputs = sum(one.input for one in requests)
    cached = serve.cached or min(sum(one.cached for one in requests) / max(inputs, 1.0), 0.99)
    mix = Mix.of_requests([(one.input, one.output) for one in requests], cached)
    cv = serve.cv if serve.cv != 1.0 else _cv([one.at for one in requests])
    return Traffic(tuple(hours), mix, cv)


def _by_hour(times: list[float], last: float) -> list[float]:
    """Requests a second; a last piece of an hour counts for as long as it is, if that is much."""
    whole = max(int(last // 3600), 1)
    rest = last - whole * 3600
    counts = [0] * (whole + 1)
    for at in times:
        counts[min(int(at // 3600), whole)] += 1
    if last < 3600:
        return [len(times) / max(last, 1.0)]
    hours = [count / 3600 for count in counts[:whole]]
    return [*hours, counts[whole] / rest] if rest > 1800 else hours


def _cv(times: list[float]) -> float:
    """Of gaps against the mean of their own minute, over minutes that have enough of them."""
    windows: dict[int, list[float]] = {}
    for before, after in itertools.pairwise(times):
        windows.setdefault(int(before // _WINDOW_S), []).append(after - before)
    total = weight = 0.0
    for gaps in windows.values():
        mean = sum(gaps) / len(gaps)
        if len(gaps) < _FEWEST or not mean:
            continue
        total += sum((gap / mean - 1) ** 2 for gap in gaps)
        weight += len(gaps)
    return min(max((total / weight) ** 0.5, 0.5), MOST_CV) if weight else 1.0
