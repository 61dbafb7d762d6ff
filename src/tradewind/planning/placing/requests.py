"""Ways to answer requests whose length on an accelerator is known, by what is for sale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.base.units import parse_money, usd
from tradewind.catalog import ratecard
from tradewind.economics import facts, own_figures
from tradewind.economics.placing import Way
from tradewind.planning.placing import managed, owned
from tradewind.planning.rates import Rates

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.economics.facts import Fact
    from tradewind.model import Market, Offer, Price

EDGE_YEARS = 3
MONTH_H = 730.0


def machines(
    catalog: Catalog, chip: str, memory_gb: float, region: str | None, users: str | None,
    gb: float, data_at: str | None,
) -> list[Way]:  # fmt: skip
    """The cheapest machine on demand and on spot, and the cheapest with a service around it; what
    bringing the data costs is spread over a year."""

    def spread(offer: Offer, month: float) -> float:
        return month + moving(data_at, f"{offer.provider}/{offer.region}", gb) / 12

    def way(kind: str, words: str, offer: Offer, price: Price, times: float, doubt: str) -> Way:
        place = f"{offer.provider}/{offer.region}"
        rtt, far = round_trip(users, place)
        day = price.as_of.isoformat() if price.as_of else ""
        return Way(
            kind=kind, words=words, always_month=times * usd(price.micros_hour) * MONTH_H,
            rtt_s=rtt, memory_gb=memory_gb, once=moving(data_at, place, gb),
            source=f"{price.source}, {day}", doubt="; ".join(filter(None, (far, doubt))),
        )  # fmt: skip

    found = []
    sold: tuple[tuple[Market, str, str], ...] = (
        ("on_demand", "cloud machine", ""),
        ("spot", "spot machine", "reclaimed at times: keep a spare"),
    )
    for market, kind, doubt in sold:
        priced = catalog.offers(chip, count=1, market=(market,), region=region).priced()
        offer, price = min(
            priced, key=lambda each: spread(each[0], usd(each[1].micros_hour) * MONTH_H),
            default=(None, None),
        )  # fmt: skip
        if offer is not None and price is not None:
            words = f"{offer.instance_type} at {offer.provider}/{offer.region}, always on"
            found.append(way(kind, words, offer, price, 1.0, doubt))
    best: tuple[float, Way] | None = None
    for offer, price in catalog.offers(chip, count=1, market="on_demand", region=region).priced():
        more = managed.surcharge(offer.provider, offer.instance_type)
        if more is None:
            continue
        month = spread(offer, more.ratio * usd(price.micros_hour) * MONTH_H)
        if best is None or month < best[0]:
            words = (
                f"{more.service} with {offer.instance_type} at {offer.provider}/{offer.region}, "
                f"{more.ratio:g}× its price"
            )
            best = month, way("managed service", words, offer, price, more.ratio, more.doubt)
    return found if best is None else [*found, best[1]]


def serverless(
    chip: str, memory_gb: float, seconds: float, users: str | None, region: str | None
) -> list[Way]:
    table = facts.table("serverless")
    rows = [
        r
        for r in table.where(kind="price", accelerator=chip, unit="USD/second")
        if r.number("value") and "RETIRED" not in r["doubt"] and "commitment" not in r["item"]
        and (region is None or r["region"] != "any")
    ]  # fmt: skip
    if not rows:
        return []
    # Where a whole instance has a price, its accelerator alone is no price.
    whole = {r["provider"] for r in rows if _is_whole(r)}
    rows = [r for r in rows if r["provider"] not in whole or _is_whole(r)]
    cheapest = min(rows, key=lambda r: r.number("value") or 0)
    cold = table.one(kind="cold_start", item="vLLM start-up, Llama3.2-3B, all six steps")
    limits = table.where(provider=cheapest["provider"], kind="limit")
    windows = [r for r in limits if "scaledown" in r["item"] or "idle timeout" in r["item"]]
    far = "where it runs is not told: no round trip is counted" if users else ""
    window = (windows[0].number("value") if windows else None) or 60.0
    return [
        Way(
            kind="serverless GPU",
            words=f"{cheapest['provider']} {cheapest['service']}, by the second",
            usd_request=seconds * (cheapest.number("value") or 0), memory_gb=memory_gb,
            cold_s=cold.number("value") or 20.0, window_s=window, leaves="any",
            source=cheapest.provenance,
            doubt="; ".join(filter(None, (cheapest["doubt"], far, "cold start of a 3B model"))),
        )
    ]  # fmt: skip


def _is_whole(row: Fact) -> bool:
    return "whole" in row["item"] or "all in" in row["item"]


def own(catalog: Catalog, chip: str, memory_gb: float) -> list[Way]:
    if chip not in owned.SERVERS:
        return []
    each = owned.SERVERS[chip][0]
    return [
        Way(
            kind="own machines", words=f"an accelerator's share of a server with {each}",
            always_month=owned.month(catalog, chip, 1) / each, memory_gb=memory_gb, leaves="own",
            source=f"tradewind own, {owned.YEARS} years",
            doubt="if the rest of the server is used too",
        )
    ]  # fmt: skip


def edge(catalog: Catalog, chip: str, seconds: float) -> list[Way]:
    """Every device: as fast as its memory is, by that of the accelerator."""
    base = catalog.accelerators[chip].memory_bandwidth_gbps or 0.0
    if not base:
        return []
    return [
        Way(
            kind="edge device", words=f"{row['device']} where the users are",
            always_month=month, seconds=seconds * base / speed, memory_gb=0.8 * memory,
            leaves="own", online=False, source=row.provenance,
            doubt="speed by memory bandwidth alone: right for generating, not for training",
        )
        for row, month, memory in devices()
        if (speed := row.number("memory_bandwidth_gbps"))
    ]  # fmt: skip


def devices() -> list[tuple[Fact, float, float]]:
    """Those with a price: dollars a month, and gigabytes."""
    power = own_figures.power_price("USA").typical
    found = []
    for row in facts.table("edge").rows:
        price = row.number("price_usd")
        try:
            memory = float(row["memory_gb"].split("-")[-1])
        except ValueError:
            continue
        if price:
            watts = row.number("power_w_max") or 60.0
            month = price / (12 * EDGE_YEARS) + watts / 1000 * MONTH_H * power
            found.append((row, month, memory))
    return found


def cpu(
    catalog: Catalog, seconds: float | None, region: str | None, users: str | None
) -> list[Way]:
    if seconds is None:
        return []
    if seconds <= 0:
        raise InvalidValue(f"--cpu-seconds cannot be {seconds:g}")
    for offer, price in catalog.offers("none", market="on_demand", region=region).priced():
        if (offer.vcpus or 0) >= 8:
            place = f"{offer.provider}/{offer.region}"
            return [
                Way(
                    kind="CPU", words=f"{offer.instance_type} at {place}",
                    always_month=usd(price.micros_hour) * MONTH_H, seconds=seconds,
                    rtt_s=round_trip(users, place)[0], memory_gb=offer.memory_gb or 0.0,
                    source=price.source,
                )
            ]  # fmt: skip
    return []


def api(price: str | None, latency: float) -> list[Way]:
    if price is None:
        return []
    return [
        Way(
            kind="model API", words="somebody else's model", usd_request=usd(parse_money(price)),
            seconds=latency, leaves="any", source="yours",
        )
    ]  # fmt: skip


def moving(start: str | None, place: str, gb: float) -> float:
    """Dollars to carry so much from one place to another."""
    if start is None or start == place or not gb:
        return 0.0
    one, two = (tuple(text.split("/", 1)) for text in (start, place))
    if len(one) != 2:
        raise InvalidValue(f"--data-at {start!r} is not a place", hint="for example aws/us-east-1")
    return gb * Rates(ratecard.card()).egress(one, two)  # type: ignore[arg-type]


def round_trip(users: str | None, place: str) -> tuple[float, str]:
    """In seconds; 0 with a doubt where nobody measured it."""
    if users is None or users == place:
        return 0.0, ""
    if "/" not in users:
        raise InvalidValue(f"--users {users!r} is not a place", hint="for example aws/eu-central-1")
    for row in facts.table("latency").rows:
        ends = {f"{row['provider_a']}/{row['region_a']}", f"{row['provider_b']}/{row['region_b']}"}
        if ends == {users, place}:
            return (row.number("rtt_ms") or 0.0) / 1000, ""
    return 0.0, f"the round trip from {users} was not measured"
