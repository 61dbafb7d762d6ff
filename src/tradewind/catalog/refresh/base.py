"""What a live price source is, what it hands back, and how it reads what it is answered.

A source is one module in this folder with a `SOURCE` of type `Source`. Its `fetch(context)` yields
`Listing`s: what the provider says it sells now. It never touches the catalog; `merge.py` does that.
Anything a source sees and cannot use is counted with `context.skip(reason)`, never passed over in
silence. Trouble with the source is `SourceFailed`; the provider then keeps its old rows. That
nothing was listed, and which key was refused, is said in one place for all (`refresh.ask`).

Sources read with the functions below, so that the same oddity is judged the same everywhere:

    need          a value of the right kind   else SourceFailed, saying where
    as_price      dollars, more than zero     else None: not offered; SourceFailed if no price
    as_size       a number from 0 up          else SourceFailed
    as_amount     a number above 0            else None: hardware that is not told
    as_gpu_count  the GPUs of one machine     else SourceFailed
    each          what a list has for us      one odd entry is counted and costs nothing else
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from tradewind.base.errors import InvalidValue, SourceFailed
from tradewind.base.units import Micros, micros_from_usd
from tradewind.model import InstanceType, Market

if TYPE_CHECKING:
    from datetime import date

    from tradewind.catalog.names import Names
    from tradewind.catalog.refresh.http import Http

NUMBER = (int, float)
_LARGEST = 1e9  # beyond any size that a machine has, in any unit
_MOST_GPUS = 64  # in one machine

E = TypeVar("E")
T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Facts about a source. `complete`: what it does not list, its provider sells no more."""

    provider: str
    url: str  # default address; $TRADEWIND_<PROVIDER>_URL puts a mirror in its place
    fetch: Callable[[Context], Iterator[Listing]]
    describes: str  # what the price is from, written into every row's `source`
    markets: tuple[Market, ...]  # which prices it can renew
    credentials: tuple[str, ...] = ()  # environment variables without which it cannot be asked
    optional_keys: tuple[str, ...] = ()  # sent along if they are set; prices can be had without
    key_needs: str = ""  # what a key must be allowed, told when one is refused
    refusals: tuple[int, ...] = (401, 403)  # the HTTP statuses that refuse a key
    complete: bool = False


@dataclass(slots=True)
class Context:
    """What a source may use: everything outside comes through here."""

    http: Http
    url: str
    today: date
    env: Mapping[str, str]
    names: Names
    known: Mapping[str, InstanceType]  # this provider's types by name, CPU-only ones among them
    progress: Callable[[int, int | None], None] = lambda done, total: None
    skipped: Counter[str] = field(default_factory=Counter)

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    def key(self, name: str) -> str:
        """Empty if it is not set. A key that was read from a file often ends in a new line."""
        return self.env.get(name, "").strip()

    def bearer(self, name: str) -> dict[str, str]:
        """The header that carries the key, if there is one."""
        key = self.key(name)
        return {"authorization": f"Bearer {key}"} if key else {}


def need(value: Any, kind: type | tuple[type, ...], where: str) -> Any:
    """`value` if it is of `kind`; else the source has changed its shape, and we say where."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    # To Python, True is the number 1; to us it is a shape that has changed.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise SourceFailed(
            f"{where}: expected {'/'.join(k.__name__ for k in kinds)}, got {repr(value)[:60]}",
            hint="the source may have changed its format; the old prices stay in place",
        )
    return value


def as_price(
    value: Any,
    where: str,
    *,
    kind: type | tuple[type, ...] = NUMBER,
    rate: Decimal = Decimal(1),
    hours: int = 1,
) -> Micros | None:
    """The price of one hour; None for zero or less, which is how sources write "not offered".

    `kind` tells how it is written: with `str` as text, with `NoneType` it may be missing, which
    is "not offered" too. `rate` is in dollars, for other currencies; `hours` is what it pays for.
    """
    if need(value, kind, where) is None:
        return None
    try:
        micros = micros_from_usd(Decimal(str(value).strip()) * rate / hours)
    except (InvalidValue, ArithmeticError):
        raise SourceFailed(f"{where}: {repr(value)[:60]} is not a price") from None
    return micros if micros > 0 else None


def as_size(value: Any, where: str) -> float:
    number: float = need(value, NUMBER, where)
    if not 0 <= number < _LARGEST:
        raise SourceFailed(f"{where}: {str(number)[:20]} cannot be")
    return number


def as_amount(value: Any) -> float | None:
    usable = isinstance(value, NUMBER) and not isinstance(value, bool) and 0 < value < _LARGEST
    return float(value) if usable else None


def as_gpu_count(value: Any, where: str) -> int:
    count: int = need(value, int, where)
    if not 0 <= count <= _MOST_GPUS:
        raise SourceFailed(f"{where}: {str(count)[:20]} GPUs cannot be")
    return count


def each(
    context: Context,
    entries: Iterable[E],
    read: Callable[[E], Iterable[T]],
    *,
    called: str = "entry",
) -> Iterator[T]:
    """What `read` makes of every entry. One for which it raises SourceFailed is counted and left
    out; but where there are such and nothing else was of use, the source has failed."""
    usable, problem = False, None
    for entry in entries:
        try:
            made = list(read(entry))
        except SourceFailed as error:
            problem = error
            context.skip(f"malformed {called}")
            continue
        usable = usable or bool(made)
        yield from made
    if problem and not usable:
        raise problem
