"""What a live price source is, and what it hands back.

A source is one module in this folder with a `SOURCE` of type `Source`. Its `fetch(context)` yields
`Listing`s: what the provider says it sells now. It never touches the catalog; `merge.py` does that.
Anything a source sees and cannot use is counted with `context.skip(reason)`, never passed over in
silence. Trouble with the source is `SourceFailed`; the provider then keeps its old rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tradewind.errors import SourceFailed
from tradewind.model import InstanceType, Market
from tradewind.units import Micros

if TYPE_CHECKING:
    from datetime import date

    from tradewind.catalog.names import Names
    from tradewind.catalog.refresh.http import Http


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One thing sold now. `region="any"` and `zone=""` stand for every one that we know of.

    A price that the source does not speak of is `None` and leaves the old one as it was.
    Hardware fields that the source does not tell stay `None` and are filled from what we know.
    """

    region: str
    instance_type: str
    accelerator: str  # canonical name; "" for a CPU-only machine
    accelerator_count: float
    zone: str = ""
    accelerator_memory_gb: float | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    local_nvme_gb: float | None = None
    network_gbps: float | None = None
    on_demand: Micros | None = None
    spot: Micros | None = None
    reserved_1y: Micros | None = None
    reserved_3y: Micros | None = None
    only_known: bool = False  # priced also where it is not sold: renew rows, never add one
    in_stock: bool | None = None  # seen by the source just now; becomes an observation
    stock_market: Market = "on_demand"


@dataclass(frozen=True, slots=True)
class Source:
    """Facts about a source. `complete`: what it does not list, its provider sells no more."""

    provider: str
    url: str  # default address; $TRADEWIND_<PROVIDER>_URL puts a mirror in its place
    fetch: Callable[[Context], Iterator[Listing]]
    describes: str  # what the price is from, written into every row's `source`
    markets: tuple[Market, ...]  # which prices it can renew
    credentials: tuple[str, ...] = ()  # environment variables without which it cannot be asked
    complete: bool = False


@dataclass(slots=True)
class Context:
    """What a source may use: everything outside comes through here."""

    http: Http
    url: str
    today: date
    env: Mapping[str, str]
    names: Names
    known: Mapping[str, InstanceType]  # this provider's types, by name
    progress: Callable[[int, int | None], None] = lambda done, total: None
    skipped: Counter[str] = field(default_factory=Counter)

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1


def need(value: Any, kind: type | tuple[type, ...], where: str) -> Any:
    """`value` if it is of `kind`; else the source has changed its shape, and we say where."""
    if isinstance(value, bool) and kind in (int, float, (int, float)):
        raise SourceFailed(f"{where}: expected a number, got {value!r}")
    if not isinstance(value, kind):
        names = kind.__name__ if isinstance(kind, type) else "/".join(k.__name__ for k in kind)
        shown = repr(value)
        raise SourceFailed(
            f"{where}: expected {names}, got {shown[:60]}",
            hint="the source may have changed its format; the old prices stay in place",
        )
    return value
