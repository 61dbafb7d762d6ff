"""Vast: the asks of a marketplace, gathered into one row per chip, count and place.

`POST /api/v0/bundles/` with a query as JSON, no key needed (VAST_API_KEY is sent along if set) →
`{"offers": [{"gpu_name", "num_gpus", "gpu_ram" (MB of one GPU), "cpu_cores",
"cpu_cores_effective", "cpu_ram" (MB of the host), "dph_total", "min_bid", "geolocation": "Georgia,
US"}]}`. Asked for a few GPU names at a time, because an answer has a limit (64 unless told) and no
pages. Only machines that Vast has verified and that can be rented now; the answer does not repeat
`verified`, so the filter is what we rely on.

An ask is one host's price for one machine, gone when it is rented: neither a type nor a name that
lasts. Our row is the lower median ask, a price that somebody really asks, and is called so:
`8x-H100-SXM (median ask)`. The number of asks is not part of the name, or every refresh would make
new types. The CPU and memory told are the least among those asks, so any of them has that much. An
ask that is not there any more is not for sale, hence `complete`.

`dph_total` is dollars per hour of the whole machine with a little disk; `min_bid`, the lowest bid
that would run now, is the spot price. Traffic is charged apart. Places are written as the catalog
has them, with the continent: `Georgia/US/NA`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_low
from types import NoneType
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import (
    NUMBER,
    Context,
    Listing,
    Source,
    as_amount,
    as_gpu_count,
    as_price,
    each,
    need,
)

# Vast's own vocabulary, as many names at a time as keep an answer well below its limit.
_GPUS = (
    ("B300", "B200", "H200 NVL", "H200", "H100 NVL", "H100 SXM", "H100 PCIE"),
    ("A100 SXM4", "A100 PCIE", "L40S", "L40", "L4", "A40", "A10"),
    ("RTX PRO 6000 WS", "RTX PRO 6000 S", "RTX PRO 5000", "RTX PRO 4500", "RTX PRO 4000"),
    ("RTX 6000Ada", "RTX 5880Ada", "RTX 4000Ada", "RTX A6000", "RTX A5000", "RTX A4500"),
    ("RTX 5090", "RTX 5070"),
    ("RTX 4090", "RTX 4070", "RTX 4060", "RTX A4000"),
    ("RTX 3090", "RTX 3070", "RTX 3060", "Q RTX 6000"),
    ("Tesla V100", "Tesla T4", "Tesla P100", "Tesla P40", "Tesla P4"),
)
_MEANT = {"RTX PRO 6000 S": "RTX PRO 6000 SE"}
_LIMIT = 3000
_MB_PER_GB = 1024
_COUNTRIES = {
    "NA": "AG BB BS BZ CA CR CU DM DO GD GT HN HT JM KN KY LC MX NI PA PR SV TT US VC",
    "SA": "AR BO BR CL CO EC GY PE PY SR UY VE",
    "EU": "AD AL AT BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GI GR HR HU IE IM IS IT JE LI "
    "LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SK SM UA VA XK",
    "AS": "AE AF AM AZ BD BH BN BT CN GE HK ID IL IN IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM "
    "MN MO MV MY NP OM PH PK QA SA SG SY TH TJ TL TM TR TW UZ VN YE",
    "OC": "AU FJ FM GU KI MH NC NR NZ PF PG PW SB TO TV VU WS",
    "AF": "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG ER ET GA GH GM GN GQ GW KE KM LR LS LY MA "
    "MG ML MR MU MW MZ NA NE NG RE RW SC SD SL SN SO SS ST SZ TD TG TN TZ UG ZA ZM ZW",
}
_CONTINENTS = {code: continent for continent, all_ in _COUNTRIES.items() for code in all_.split()}


@dataclass(frozen=True, slots=True)
class _Ask:
    accelerator: str
    count: int
    region: str
    on_demand: Micros
    bid: Micros | None
    vcpus: float | None
    memory_gb: float | None


def fetch(context: Context) -> Iterator[Listing]:
    alike: defaultdict[tuple[str, int, str], list[_Ask]] = defaultdict(list)
    for ask in each(context, _offers(context), lambda it: _asks(context, it), called="ask"):
        alike[ask.accelerator, ask.count, ask.region].append(ask)
    for _, asks in sorted(alike.items()):
        yield _listing(context, asks)


def _offers(context: Context) -> Iterator[Any]:
    for number, gpus in enumerate(_GPUS, start=1):
        yield from _search(context, gpus)
        context.progress(number, len(_GPUS))


def _search(context: Context, gpus: tuple[str, ...]) -> list[Any]:
    wanted = {
        "gpu_name": {"in": gpus},
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        "type": "on-demand",
        "order": [["score", "desc"]],
        "limit": _LIMIT,
    }
    answer = context.http.post_json(
        f"{context.url}/api/v0/bundles/", wanted, headers=context.bearer("VAST_API_KEY")
    )
    if need(answer, dict, "answer").get("success") is False:
        raise SourceFailed(f"Vast refuses the search: {str(answer.get('msg'))[:200]}")
    offers: list[Any] = need(answer.get("offers"), list, "answer.offers")
    if len(offers) >= _LIMIT:
        context.skip(f"asks beyond the first {_LIMIT}, from {gpus[0]!r} on")
    return offers


def _asks(context: Context, offer: Any) -> Iterator[_Ask]:
    """The ask in this offer, if it is one that we can use."""
    vendor = need(need(offer, dict, "offers[]").get("gpu_name"), str, "offers[].gpu_name")
    count = as_gpu_count(offer.get("num_gpus"), "offers[].num_gpus")
    memory_mb = as_amount(need(offer.get("gpu_ram"), NUMBER, "offers[].gpu_ram"))
    price, bid = (
        as_price(offer.get(field), f"offers[].{field}", kind=(*NUMBER, NoneType))
        for field in ("dph_total", "min_bid")
    )
    accelerator = context.names.canonical(
        _MEANT.get(vendor, vendor), memory_mb / _MB_PER_GB if memory_mb else None
    )
    region = _region(offer.get("geolocation"))
    if accelerator is None:
        context.skip(f"unknown accelerator {vendor!r}")
    elif price is None:
        context.skip("no price")
    elif not count:
        context.skip("0 GPUs")
    elif region is None:
        context.skip("unknown place")
    else:
        vcpus, cores, host_mb = (
            as_amount(offer.get(field)) for field in ("cpu_cores_effective", "cpu_cores", "cpu_ram")
        )
        # The renter of a part of a host gets that part of its memory too.
        memory = host_mb / _MB_PER_GB * vcpus / cores if vcpus and cores and host_mb else None
        yield _Ask(accelerator, count, region, price, bid, vcpus, memory)


def _listing(context: Context, asks: list[_Ask]) -> Listing:
    """`asks` are of one chip, count and place."""
    first = asks[0]
    on_demand = median_low(ask.on_demand for ask in asks)
    bids = [ask.bid for ask in asks if ask.bid and ask.bid < ask.on_demand]
    spot = median_low(bids or [on_demand])
    if spot >= on_demand:
        context.skip("spot no cheaper than on-demand")
    return Listing(
        region=first.region,
        instance_type=f"{first.count}x-{first.accelerator} (median ask)",
        accelerator=first.accelerator,
        accelerator_count=first.count,
        vcpus=min((ask.vcpus for ask in asks if ask.vcpus), default=None),
        memory_gb=min((ask.memory_gb for ask in asks if ask.memory_gb), default=None),
        on_demand=on_demand,
        spot=spot if spot < on_demand else None,
        in_stock=True,
    )


def _region(geolocation: Any) -> str | None:
    """`Georgia, US` → `Georgia/US/NA`; a country alone, `US` or `, US` → `US/NA`."""
    parts = [p.strip() for p in geolocation.split(",")] if isinstance(geolocation, str) else []
    parts = [part for part in parts if part]
    continent = _CONTINENTS.get(parts[-1].upper()) if parts else None
    return "/".join([*parts[:-1], parts[-1].upper(), continent]) if continent else None


SOURCE = Source(
    provider="vast",
    url="https://console.vast.ai",
    fetch=fetch,
    describes="Vast search API, lower median of verified asks",
    markets=("on_demand", "spot"),
    optional_keys=("VAST_API_KEY",),
    complete=True,
)
