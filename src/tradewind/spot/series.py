"""Series of capacity, with prices where there are any, as arrays of ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base import csvfile, traces
from tradewind.base.errors import BadFile, InvalidValue, NotFound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SPOT_PRICE = 973_100
ON_DEMAND_PRICE = 3_060_000
"""Micro-dollars an hour, where no price series is given."""


@dataclass(frozen=True)
class Series:
    trace_id: str
    kind: str
    provider: str
    zone: str
    accelerator: str
    """With how many of them, so that one machine is like another."""
    nodes: int
    gap_s: int
    start_s: int
    """Since 1970."""
    counts: NDArray[np.int64]
    prices: NDArray[np.int64]
    """Micro-dollars an hour, for each tick."""
    on_demand: int
    priced: bool

    @property
    def ticks(self) -> int:
        return len(self.counts)

    def up(self, nodes: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.counts >= nodes
        return found


def read(path: Path, prices: Path | None = None, kinds: Sequence[str] = ()) -> list[Series]:
    """All series of these kinds (all, if none is named), in the order of the file."""
    priced = _prices(prices) if prices else {}
    found: list[Series] = []
    names: set[str] = set()
    for line, cells in csvfile.rows(path):
        try:
            kind = (cells.get("kind") or "availability").strip()
            if kinds and kind not in kinds:
                continue
            series = _series(cells, kind, priced)
            if series.trace_id in names:
                raise InvalidValue(f"{series.trace_id} is there twice")
        except InvalidValue as error:
            raise BadFile(f"{path}, line {line}: {error.message}") from None
        names.add(series.trace_id)
        found.append(series)
    if not found:
        what = f" of kind {' or '.join(kinds)}" if kinds else ""
        hint = "its column `kind` says what they are" if kinds else None
        raise NotFound(f"{path} has no series{what}", hint=hint)
    if prices and not any(series.priced for series in found):
        raise NotFound(
            f"{prices} has no prices of any series in {path}",
            hint="trace_id must be the same in both; without --prices, usual ones are taken",
        )
    return found


def _series(
    cells: Mapping[str, str], kind: str, priced: Mapping[str, tuple[int, float, NDArray[np.int64]]]
) -> Series:
    import numpy as np

    trace_id = traces.text(cells, "trace_id")
    gap_s = traces.gap_s(cells, trace_id)
    if gap_s != int(gap_s):
        raise InvalidValue(f"gap_seconds of {trace_id} is {gap_s:g}: whole seconds are needed")
    nodes = csvfile.number(cells, "nodes")
    if not nodes or nodes != int(nodes):
        raise InvalidValue(f"nodes of {trace_id} is not a number of machines")
    runs = traces.counts(cells, trace_id, nodes)
    counts = np.repeat([count for count, _ in runs], [ticks for _, ticks in runs])
    on_demand, price_gap_s, prices = priced.get(
        trace_id, (ON_DEMAND_PRICE, gap_s, np.full(len(counts), SPOT_PRICE))
    )
    if price_gap_s != gap_s or len(prices) != len(counts):
        raise InvalidValue(
            f"{trace_id} has {len(counts)} ticks of {gap_s:g} s, and its prices"
            f" {len(prices)} of {price_gap_s:g} s"
        )
    return Series(
        trace_id=trace_id,
        kind=kind,
        provider=(cells.get("provider") or "").strip(),
        zone=(cells.get("zone") or trace_id).strip(),
        accelerator="×".join(
            part
            for name in ("accelerator", "accel_count")
            if (part := (cells.get(name) or "").strip())
        ),
        nodes=int(nodes),
        gap_s=int(gap_s),
        start_s=_start_s(cells, trace_id),
        counts=counts,
        prices=prices,
        on_demand=on_demand,
        priced=trace_id in priced,
    )


def _start_s(cells: Mapping[str, str], trace_id: str) -> int:
    said = (cells.get("start_utc") or "").strip()
    if not said:
        return 0
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise InvalidValue(f"start_utc of {trace_id} is {said!r}, which is no time") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _prices(path: Path) -> dict[str, tuple[int, float, NDArray[np.int64]]]:
    import numpy as np

    found: dict[str, tuple[int, float, NDArray[np.int64]]] = {}
    for line, cells in csvfile.rows(path):
        try:
            trace_id = traces.text(cells, "trace_id")
            runs = traces.prices(cells, trace_id)
            if trace_id in found:
                raise InvalidValue(f"{trace_id} is there twice")
            on_demand = round(1e6 * (csvfile.number(cells, "on_demand", most=1e6) or 0))
            if not on_demand:
                raise InvalidValue(f"on_demand of {trace_id} is missing or 0")
            prices = np.repeat(
                [round(price * 1e6) for price, _ in runs], [ticks for _, ticks in runs]
            )
            gap_s = traces.gap_s(cells, trace_id)
        except InvalidValue as error:
            raise BadFile(f"{path}, line {line}: {error.message}") from None
        found[trace_id] = (on_demand, gap_s, prices)
    return found
