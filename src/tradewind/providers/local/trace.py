"""Availability of spot machines over time, from a table of measured series.

A CSV table, one row a series; of its columns `trace_id`, `zone`, `nodes` (how many machines were
tried), `gap_seconds` (one tick) and `rle` are read: `VALUExCOUNT VALUExCOUNT …`, where a tick's
value is how many could be had. `n_ticks`, where it is given, must agree. After its end a trace
begins again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path

from msgspec import Struct

from tradewind.base import csvfile, traces
from tradewind.base.errors import BadFile, InvalidValue, NotFound


class Trace(Struct, frozen=True):
    trace_id: str
    zone: str
    nodes: int
    counts: tuple[int, ...]
    ends_s: tuple[float, ...]
    """Where each count ends, from the beginning of the trace."""

    def __post_init__(self) -> None:
        """It may come from a store. A trace that ends has a count for each stretch, and an end."""
        ends = (0.0, *self.ends_s)
        if not self.counts or len(self.counts) != len(self.ends_s) or self.nodes < 1:
            raise InvalidValue(f"{self.trace_id} is no trace: it has not as many ends as counts")
        if not all(0 <= count <= 10**6 for count in self.counts) or self.nodes > 10**6:
            raise InvalidValue(f"{self.trace_id} counts machines that cannot be")
        if not all(one <= other for one, other in pairwise(ends)) or not 1 <= ends[-1] <= 1e11:
            raise InvalidValue(f"{self.trace_id} is no trace: its times are not in order")

    @property
    def length_s(self) -> float:
        return self.ends_s[-1]

    def count(self, at_s: float) -> int:
        """How many machines there are at this time of the trace."""
        return self.counts[bisect_right(self.ends_s, at_s % self.length_s)]

    def until_below(self, wanted: int, at_s: float) -> float | None:
        """In how many seconds there will be fewer than wanted; 0: there are; None: never."""
        within = at_s % self.length_s
        first, number = bisect_right(self.ends_s, within), len(self.counts)
        waited = 0.0
        for index in range(first, first + number + 1):
            if self.counts[index % number] < wanted:
                return waited
            round_s = self.length_s if index >= number else 0.0
            waited = round_s + self.ends_s[index % number] - within
        return None


def read_all(path: Path) -> Iterator[Trace]:
    """Every trace of the table, in its order."""
    for line, cells in csvfile.rows(path):
        with _at(path, line):
            trace = parse(cells)
        yield trace


def read(path: Path, name: str) -> Trace:
    """The trace of this id, or of this zone if it has but one."""
    found, zones = [], []
    for line, cells in csvfile.rows(path):
        with _at(path, line):
            if name == traces.text(cells, "trace_id"):
                return parse(cells)
            zones.append(traces.text(cells, "zone"))
            if name == zones[-1]:
                found.append(parse(cells))
    if not found:
        choices = sorted(set(zones))
        raise NotFound(
            f"{path} has no trace and no zone {name!r}",
            hint=f"its zones are {', '.join(choices)}" if choices else None,
            choices=choices,
        )
    if len(found) > 1:
        ids = [trace.trace_id for trace in found]
        raise InvalidValue(
            f"{path} has {len(found)} traces of zone {name}", hint=f"name one: {', '.join(ids)}"
        )
    return found[0]


@contextmanager
def _at(path: Path, line: int) -> Iterator[None]:
    try:
        yield
    except InvalidValue as error:
        raise BadFile(f"{path}, line {line}: {error.message}") from None


def parse(cells: Mapping[str, str]) -> Trace:
    """InvalidValue: the row is no trace."""
    trace_id = traces.text(cells, "trace_id")
    gap_s, nodes = traces.gap_s(cells, trace_id), csvfile.number(cells, "nodes")
    if not nodes or nodes != int(nodes):
        raise InvalidValue(f"nodes of {trace_id} is not a number of machines")
    runs = traces.counts(cells, trace_id, nodes)
    return Trace(
        trace_id=trace_id,
        zone=traces.text(cells, "zone"),
        nodes=int(nodes),
        counts=tuple(count for count, _ in runs),
        ends_s=tuple(gap_s * ended for ended in accumulate(ticks for _, ticks in runs)),
    )
