"""Verda (once DataCrunch): one public call lists every type with its on-demand and spot price.

`GET /v1/instance-types?currency=usd`, no key → `[{"instance_type": "8H100.80S.176V", "name",
"model", "price_per_hour": "31.92", "spot_price": "15.96", "currency": "usd", "gpu": {"description",
"number_of_gpus"}, "gpu_memory": {"size_in_gigabytes"}, "cpu": {"number_of_cores"}, "memory":
{"size_in_gigabytes"}}]`. Prices are strings, of the whole machine and the same everywhere; the GPU
memory is that of all GPUs together.

Where a type can be started now is asked only with VERDA_CLIENT_ID and VERDA_CLIENT_SECRET set:
`POST /v1/oauth2/token` → `{"access_token"}`, then `GET /v1/instance-availability?is_spot=…` →
`[{"location_code": "FIN-03", "availabilities": ["1A100.22V"]}]`. CPU-only types are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import (
    NUMBER,
    Context,
    Listing,
    Source,
    as_price,
    as_size,
    each,
    need,
)
from tradewind.model import Market

# type → (where there is some now, on which market)
Stock = dict[str, list[tuple[str, Market]]]


def fetch(context: Context) -> Iterator[Listing]:
    address = f"{context.url}/v1/instance-types"
    types = need(context.http.get_json(address, query={"currency": "usd"}), list, "answer")
    stock = _stock(context)
    yield from each(context, types, lambda entry: _listings(context, entry, stock))


def _listings(context: Context, entry: Any, stock: Stock | None) -> list[Listing]:
    name = need(need(entry, dict, "answer[]").get("instance_type"), str, "answer[].instance_type")
    gpus = _part(entry, "gpu", "number_of_gpus", name)
    if not gpus:
        context.skip("CPU-only type")
        return []
    currency = need(entry.get("currency", "usd"), str, f"{name}.currency").lower()
    if currency != "usd":
        context.skip(f"price in {currency.upper()}")
        return []
    on_demand, spot = (
        as_price(entry.get(field), f"{name}.{field}", kind=(str, *NUMBER, NoneType))
        for field in ("price_per_hour", "spot_price")
    )
    if on_demand is None:
        context.skip("no price")
        return []
    if spot and spot >= on_demand:
        context.skip("spot no cheaper than on-demand")
        spot = None
    accelerator = _accelerator(context, name, entry, gpus)
    if not accelerator:
        context.skip(f"unknown accelerator {entry.get('model')!r}")
        return []

    places = (stock or {}).get(name, [])

    def listing(region: str, in_stock: bool | None, market: Market = "on_demand") -> Listing:
        return Listing(
            region=region,
            instance_type=name,
            accelerator=accelerator,
            accelerator_count=gpus,
            vcpus=_part(entry, "cpu", "number_of_cores", name) or None,
            memory_gb=_part(entry, "memory", "size_in_gigabytes", name) or None,
            on_demand=on_demand,
            spot=spot,
            only_known=bool(places) and region == "any",
            in_stock=in_stock,
            stock_market=market,
        )

    # Nowhere at all is a fact about every region; where there is some, the others stay unknown.
    everywhere = listing("any", False if stock is not None and not places else None)
    return [*(listing(place, True, market) for place, market in places), everywhere]


def _accelerator(context: Context, name: str, entry: dict[str, Any], gpus: float) -> str | None:
    known = context.known.get(name)
    if known:
        return known.accelerator
    memory_gb = _part(entry, "gpu_memory", "size_in_gigabytes", name) / gpus
    for field in ("name", "model"):
        found = context.names.canonical(str(entry.get(field)), memory_gb)
        if found:
            return found
    return None


def _stock(context: Context) -> Stock | None:
    """What can be started now, or None where that is not known: prices do not depend on it."""
    client, secret = context.key("VERDA_CLIENT_ID"), context.key("VERDA_CLIENT_SECRET")
    if not client or not secret:
        return None
    try:
        return _startable(context, client, secret)
    except SourceFailed as error:
        if error.status is not None and 400 <= error.status < 410:
            raise  # a key that is wrong should be told, not pass for a fault of theirs
        context.skip("stock not readable")
        return None


def _startable(context: Context, client: str, secret: str) -> Stock:
    asked = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    answer = context.http.post_json(f"{context.url}/v1/oauth2/token", asked)
    token = need(need(answer, dict, "token").get("access_token"), str, "token.access_token")
    stock: Stock = {}
    markets: tuple[Market, ...] = ("on_demand", "spot")
    for market in markets:
        places = context.http.get_json(
            f"{context.url}/v1/instance-availability",
            query={"is_spot": "true" if market == "spot" else "false"},
            headers={"authorization": f"Bearer {token}"},
        )
        for place in need(places, list, "availability"):
            code = need(need(place, dict, "availability").get("location_code"), str, "location")
            for name in need(place.get("availabilities"), list, f"{code}.availabilities"):
                if code:
                    stock.setdefault(need(name, str, code), []).append((code, market))
    return stock


def _part(entry: dict[str, Any], part: str, field: str, name: str) -> float:
    where = f"{name}.{part}"
    return as_size(need(entry.get(part) or {}, dict, where).get(field, 0), f"{where}.{field}")


SOURCE = Source(
    provider="verda",
    url="https://api.verda.com",
    fetch=fetch,
    describes="Verda API v1 instance-types",
    markets=("on_demand", "spot"),
    optional_keys=("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"),
    refusals=(400, 401, 403),  # 400 is what the token's address says of an unknown client
    complete=True,
)
