"""Oracle Cloud: the public price list behind its cost estimator, one item for each part.

`GET /pls/apex/cetools/api/v1/products/?currencyCode=USD`, no key, one page → `{"items":
[{"partNumber", "displayName", "metricName", "serviceCategory", "currencyCodeLocalizations":
[{"currencyCode", "prices": [{"model": "PAY_AS_YOU_GO", "value"}]}]}]}`.

No shape has a price of its own. A GPU part is a price per GPU and hour with the host included; a
flexible CPU shape is the sum of an OCPU part and a memory part. Prices are the same in every
commercial region. Parts are told by number: names are uneven ("OCI- Compute - GPU - MI355X") or say
only a generation ("GPU - E3" is the A100 of 40 GB), and look-alikes share metric and category, such
as "NVIDIA AI Enterprise - H100", a licence, or Cloud@Customer, hardware at the customer's. A number
whose name no longer holds the word we expect has been given to something else, and is left out.

Preemptible machines cost half, where a shape can be preemptible at all. Not `complete`: a shape
whose part is missing from the table below is not thereby sold no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, need
from tradewind.model import InstanceType

_PER_GPU = "GPU Per Hour"
# Part → the word in its name that shows it is still the same, and the shapes it prices.
_GPU_PARTS = {
    "B88517": ("X7", ("BM.GPU2.2",)),
    "B88518": ("X7", ("VM.GPU2.1",)),
    "B89734": ("V2", ("VM.GPU3.1", "VM.GPU3.2", "VM.GPU3.4", "BM.GPU3.8")),
    "B92740": ("E3", ("BM.GPU4.8",)),
    "B95907": ("A100", ("BM.GPU.A100-v2.8",)),
    "B95909": ("A10", ("VM.GPU.A10.1", "VM.GPU.A10.2", "BM.GPU.A10.4")),
    "B98415": ("H100", ("BM.GPU.H100.8",)),
    "B109479": ("L40S", ("BM.GPU.L40S.4",)),
    "B109485": ("MI300X", ("BM.GPU.MI300X.8",)),
    "B110519": ("H200", ("BM.GPU.H200.8",)),
    "B110978": ("B200", ("BM.GPU.B200.8",)),
    "B110979": ("GB200", ("BM.GPU.GB200.4",)),
    "B111758": ("MI355X", ("BM.GPU.MI355X.8",)),
    "B112140": ("GB300", ("BM.GPU.GB300.4",)),
    "B112237": ("B300", ("BM.GPU.B300.8",)),
}
# Flexible shape → its parts for an OCPU (two vCPUs on x86) and for a gigabyte of memory.
_FLEXIBLE = {"VM.Standard.E4.Flex": ("B93113", "B93114")}
_FLEXIBLE_NAME = re.compile(r"(.+)\$_(\d+)_(\d+)")  # our types: shape$_vcpus_memory


def fetch(context: Context) -> Iterator[Listing]:
    answer = context.http.get_json(
        f"{context.url}/pls/apex/cetools/api/v1/products/", query={"currencyCode": "USD"}
    )
    items = need(need(answer, dict, "answer").get("items"), list, "answer.items")
    prices = dict(_prices(context, items))
    yield from _gpu_shapes(context, prices)
    yield from _flexible_shapes(context, prices)


def _prices(context: Context, items: list[Any]) -> Iterator[tuple[str, Micros]]:
    """Pay-as-you-go price of every part that we have a use for."""
    wanted = {"OCPU Per Hour": set(), "Gigabyte Per Hour": set(), _PER_GPU: set(_GPU_PARTS)}
    for ocpu, memory in _FLEXIBLE.values():
        wanted["OCPU Per Hour"].add(ocpu)
        wanted["Gigabyte Per Hour"].add(memory)
    for number, entry in enumerate(items):
        item = need(entry, dict, f"items[{number}]")
        part, name, metric = (
            str(item.get(key)) for key in ("partNumber", "displayName", "metricName")
        )
        if part not in wanted.get(metric, ()):
            if metric == _PER_GPU:
                context.skip(f"no shape of ours: {part} {name}")
            continue
        word = _GPU_PARTS[part][0] if metric == _PER_GPU else ""
        if word and not re.search(rf"(?<!\w){word}(?!\w)", name):
            context.skip(f"{part} is now called {name!r}")
            continue
        price = _pay_as_you_go(item, f"items[{number}]")
        if price is None:
            context.skip("no price in USD")
        else:
            yield part, price


def _pay_as_you_go(item: dict[str, Any], where: str) -> Micros | None:
    where = f"{where}.currencyCodeLocalizations"
    for local in need(item.get("currencyCodeLocalizations"), list, where):
        if need(local, dict, f"{where}[]").get("currencyCode") != "USD":
            continue
        for price in need(local.get("prices"), list, f"{where}[].prices"):
            if need(price, dict, f"{where}[].prices[]").get("model") == "PAY_AS_YOU_GO":
                return as_price(price.get("value"), f"{where}[].prices[].value")
    return None


def _gpu_shapes(context: Context, prices: Mapping[str, Micros]) -> Iterator[Listing]:
    for part, (_, shapes) in _GPU_PARTS.items():
        for shape in shapes if part in prices else ():
            known = context.known.get(shape)
            if known:
                yield _listing(known, round(prices[part] * known.accelerator_count))
            else:
                context.skip(f"unknown shape {shape}")


def _flexible_shapes(context: Context, prices: Mapping[str, Micros]) -> Iterator[Listing]:
    for name, known in context.known.items():
        found = _FLEXIBLE_NAME.fullmatch(name)
        parts = _FLEXIBLE.get(found[1]) if found else None
        if not found or not parts:
            continue
        if any(part not in prices for part in parts):
            context.skip(f"a part of {found[1]} has no price")
            continue
        per_ocpu, per_gigabyte = (prices[part] for part in parts)
        yield _listing(known, per_ocpu * int(found[2]) // 2 + per_gigabyte * int(found[3]))


def _listing(known: InstanceType, micros: int) -> Listing:
    return Listing(
        region="any",
        instance_type=known.name,
        accelerator=known.accelerator,
        accelerator_count=known.accelerator_count,
        on_demand=Micros(micros),
        spot=Micros(micros // 2) if known.spot_possible else None,
    )


SOURCE = Source(
    provider="oci",
    url="https://apexapps.oracle.com",
    fetch=fetch,
    describes="Oracle price-list API",
    markets=("on_demand", "spot"),
)
