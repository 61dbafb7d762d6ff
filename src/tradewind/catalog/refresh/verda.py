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
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.model import Market
from tradewind.units import Micros, micros_from_usd

_LARGEST = 1e6  # GB in a machine

# type → (where there is some now, on which market)
Stock = dict[str, list[tuple[str, Market]]]


def fetch(context: Context) -> Iterator[Listing]:
    address = f"{context.url}/v1/instance-types"
    types = need(context.http.get_json(address, query={"currency": "usd"}), list, "answer")
    stock = _stock(context)
    problem, usable = SourceFailed("Verda lists no GPU that we know"), 0
    for number, entry in enumerate(types, start=1):
        context.progress(number, len(types))
        try:
            listings = _listings(context, entry, stock)
        except SourceFailed as error:  # one odd entry does not cost us the rest
            problem = error
            context.skip("malformed entry")
            continue
        usable += bool(listings)
        yield from listings
    if not usable:
        raise problem


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
    on_demand = _micros(entry.get("price_per_hour"), f"{name}.price_per_hour")
    spot = _micros(entry.get("spot_price"), f"{name}.spot_price")
    if on_demand <= 0:
        context.skip("no price")
        return []
    if spot >= on_demand:
        context.skip("spot no cheaper than on-demand")
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
            spot=spot if 0 < spot < on_demand else None,
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
    client, secret = context.env.get("VERDA_CLIENT_ID"), context.env.get("VERDA_CLIENT_SECRET")
    if not client or not secret:
        return None
    try:
        return _startable(context, client, secret)
    except SourceFailed as error:
        if "HTTP 40" in error.message:
            raise SourceFailed(
                error.message,
                hint="check VERDA_CLIENT_ID and VERDA_CLIENT_SECRET, or unset them: "
                "prices need no key",
            ) from None
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
    number: float = need(
        need(entry.get(part) or {}, dict, where).get(field, 0), (int, float), where
    )
    if not 0 <= number < _LARGEST:
        raise SourceFailed(f"{where}.{field}: {str(number)[:20]} is no size")
    return number


def _micros(value: Any, where: str) -> Micros:
    try:
        return micros_from_usd(0 if value is None else value)
    except InvalidValue as error:
        raise SourceFailed(f"{where}: {error.message}") from None


SOURCE = Source(
    provider="verda",
    url="https://api.verda.com",
    fetch=fetch,
    describes="Verda API v1 instance-types",
    markets=("on_demand", "spot"),
    complete=True,
)
