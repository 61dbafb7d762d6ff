"""The figures that buy or rent stands on: of the machine, the site, renting, people and money.

Each is an input with its range, source and doubt; what facts do not have is assumed, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.economics import facts, inputs
from tradewind.economics.inputs import Input, assumed, of_fact

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.model import Market

SERVERS = {
    "A100-80GB": (8, "8x A100-80GB HGX server", "DGX A100 640GB maximum"),
    "H100-SXM": (8, "8x H100-SXM HGX server", "DGX H100 / H200 maximum"),
    "H200": (8, "8x H200 HGX server", "DGX H100 / H200 maximum"),
    "B200": (8, "DGX B200", "DGX B200 maximum"),
    "B300": (8, "8x B300 HGX server", "8x B300 HGX server"),
    "GB200": (72, "GB200 NVL72 rack", "GB200 NVL72 rack"),
    "GB300": (72, "GB300 NVL72 rack", "GB300 NVL72 rack"),
    "RTX-PRO-6000": (8, "8x RTX-PRO-6000 server", "8x RTX-PRO-6000 server"),
    "MI300X": (8, "8x MI300X server", "8x MI300X server"),
    "MI355X": (8, "8x MI355X server", "8x MI355X server"),
    "L40S": (8, "8x L40S server", "8x L40S server"),
}
"""By accelerator: how many are in the server that the facts price, and its rows of price and power.
Others are owned with --set server_usd and --set watts."""

SITES = ("colo", "room")


def inputs_for(
    catalog: Catalog,
    accelerator: str,
    each: int,
    *,
    place: str = "USA",
    site: str = "colo",
    provider: str | None = None,
    region: str | None = None,
    settings: Sequence[str] = (),
) -> dict[str, Input]:
    """All of them, with `settings` (`NAME=VALUE`) in place of those that are named."""
    given = {text.partition("=")[0].strip() for text in settings}
    found = [
        *_machine(catalog, accelerator, each, given),
        *_site(place, site, given),
        *_rented(catalog, accelerator, each, provider, region, given),
        *_people_and_money(),
    ]
    return inputs.overridden({one.name: one for one in found}, settings)


def _machine(catalog: Catalog, accelerator: str, each: int, given: set[str]) -> list[Input]:
    known = SERVERS.get(accelerator)
    missing = {"server_usd", "watts"} - given
    if known is None and missing:
        raise NotFound(
            f"no price of a server with {accelerator} is known",
            hint=f"--set server_usd=… --set watts=…; known: {', '.join(SERVERS)}",
        )
    own = facts.table("own")
    watts = catalog.accelerators[accelerator].tdp_watts or 0.0
    if known is None:
        price = assumed("server_usd", "a server", "USD", 0, 0, 0, why="yours")
        power = assumed("watts", "its power at full load", "W", watts, watts, watts, why="yours")
    else:
        count, server, power_row = known
        part = each / count
        words = f"a server with {each} {accelerator}"
        price_fact = own.one(category="server_price", item=server)
        power_fact = own.one(category="server_power", item=power_row)
        price = of_fact("server_usd", words, price_fact, unit="USD", scale=part, spread=0.15)
        power = of_fact(
            "watts", "its power at full load", power_fact, unit="W", scale=part, spread=0.1
        )
        if part != 1:
            shared = f"its share of a server with {count}"
            price = replace(price, doubt="; ".join(filter(None, (price.doubt, shared))))
            power = replace(power, doubt="; ".join(filter(None, (power.doubt, shared))))
    return [price, power]


def _site(place: str, site: str, given: set[str]) -> list[Input]:
    own = facts.table("own")
    if site not in SITES:
        raise InvalidValue(f"no site is called {site!r}", hint=f"one of {', '.join(SITES)}")
    if site == "colo":
        fact = own.one(category="colo", item="US retail, tier 1 markets")
        space = of_fact(
            "colo_usd_kw_month", "colocation, by kW of power", fact, unit="USD/kW-month"
        )
        if not place.startswith("US"):
            doubt = "; ".join(filter(None, (space.doubt, f"of the US, not of {place}")))
            space = replace(space, doubt=doubt)
    else:
        watts = [f.number("typical") or 0.0 for f in own.where(category="build_cost")]
        month = sorted(1000 * value / (15 * 12) for value in watts)
        space = Input(
            "colo_usd_kw_month", "a room of one's own: construction over 15 years", "USD/kW-month",
            month[0], month[len(month) // 2], month[-1],
            own.where(category="build_cost")[0]["source"], "2025",
        )  # fmt: skip
    pue = own.one(category="pue", item="enterprise / colo typical")
    idle = own.one(category="server_power", item="idle draw")
    return [
        space,
        of_fact("pue", "power of the site for each watt of machines", pue, unit="ratio"),
        power_price(place, given),
        of_fact("idle_draw", "power when idle", idle, unit="of full load", most=1.0),
    ]


def power_price(place: str, given: set[str] | None = None) -> Input:
    """Of a kWh in a country (ISO code of three letters) or a state of the US (`US-VA`)."""
    words = "electricity, without taxes"
    power = facts.table("electricity")
    rows = power.where(kind="us_state_price_industrial", region=place) or power.where(
        kind="country_price_industrial", iso3=place
    )
    if not rows:
        if given and "usd_per_kwh" in given:
            return assumed("usd_per_kwh", words, "USD/kWh", 0, 0, 0)
        known = sorted(
            {r["iso3"] for r in power.where(kind="country_price_industrial")}
            | {r["region"] for r in power.where(kind="us_state_price_industrial")}
        )
        raise NotFound(
            f"no price of electricity is known in {place!r}",
            hint=f"--set usd_per_kwh=…, or one of {', '.join(known)}",
        )
    fact, value = rows[0], rows[0].number("usd_per_kwh") or 0.0
    doubt = "of large users; -20 % and +60 % are assumed for yours"
    return Input(
        "usd_per_kwh", f"{words}, {fact['place']}", "USD/kWh", 0.8 * value, value, 1.6 * value,
        fact["source"], fact["as_of"], "; ".join(filter(None, (fact["doubt"], doubt))),
    )  # fmt: skip


def _rented(
    catalog: Catalog, accelerator: str, each: int, provider: str | None, region: str | None,
    given: set[str],
) -> list[Input]:  # fmt: skip
    """The cheapest price is what a planner takes; up to the median of all providers' cheapest, it
    may be dearer where the cheapest has none left."""
    found = []
    asked: tuple[tuple[str, Market, str, str], ...] = (
        ("rent_usd_hour", "on_demand", "", "an accelerator-hour on demand"),
        ("spot_usd_hour", "spot", "", "an accelerator-hour on spot"),
        ("reserved_1y_usd_hour", "reserved", "1y", "an accelerator-hour reserved for 1 year"),
        ("reserved_3y_usd_hour", "reserved", "3y", "an accelerator-hour reserved for 3 years"),
    )
    for name, market, term, words in asked:
        selection = catalog.offers(
            f"{accelerator}", provider=provider, region=region, market=market
        )  # fmt: skip
        cheapest: dict[str, tuple[float, str, str]] = {}
        for offer, price in selection.priced():
            if offer.accelerator_count < 1 or (term and price.term != term) or offer.own:
                continue
            if offer.accelerator_count < min(each, 8):
                continue
            dollars = price.micros_hour / 1e6 / offer.accelerator_count
            day = price.as_of.isoformat() if price.as_of else ""
            seller = f"{offer.provider} {offer.region}, {offer.instance_type}: {price.source}"
            if offer.provider not in cheapest or dollars < cheapest[offer.provider][0]:
                cheapest[offer.provider] = (dollars, day, seller)
        if not cheapest:
            if name in given:
                found.append(assumed(name, words, "USD", 0, 0, 0, why="yours"))
            elif name == "rent_usd_hour":
                where = f" at {provider}" if provider else ""
                where += f" in {region}" if region else ""
                raise NotFound(
                    f"no on-demand price of {accelerator} in machines of {min(each, 8)} is known"
                    f"{where}",
                    hint="--set rent_usd_hour=…, another --provider or --region; "
                    f"`tradewind offers {accelerator}` shows what is",
                )
            continue
        ranked = sorted(cheapest.values())
        low, day, seller = ranked[0]
        high = max(ranked[len(ranked) // 2][0], low)
        doubt = "" if len(ranked) > 1 else "only one provider's"
        found.append(Input(name, words, "USD", low, low, high, seller, day, doubt))
    return found


def _people_and_money() -> list[Input]:
    own = facts.table("own")

    def fact(name: str, words: str, category: str, item: str, unit: str, most: float) -> Input:
        return of_fact(name, words, own.one(category=category, item=item), unit=unit, most=most)

    spares = own.one(category="support", item="spares stock")
    return [
        fact("fabric_share", "switches, cables and optics, where there are several machines",
             "network", "fabric share of cluster capex (switches, cables, optics)",
             "of the servers' price", 5.0),
        of_fact("spares_share", "spares, once", spares, unit="of the servers' price", spread=0.5,
                most=1.0),
        fact("support_share", "support, repairs, hands", "support", "support, spares, hands",
             "of the servers' price a year", 1.0),
        assumed("staff_factor", "people: 1 for 4 machines, 2.5 for 16, times this", "factor",
                0.5, 1.0, 1.5, why="the facts' two points; FTE for one AI server estate 0.5 to 1.5",
                most=100.0),
        fact("staff_usd_year", "a full-time person", "staff",
             "loaded cost, GPU platform engineer", "USD a year", 1e7),
        assumed("residual_factor", "resale, by age, times this", "factor", 0.7, 1.0, 1.27,
                why="accelerator server by age, low to high of the facts", most=5.0),
        fact("life_years", "a server's life", "lifetime", "GPU server, planning", "years", 20.0),
        assumed("availability", "time that a machine is not broken", "share", 0.94, 0.97, 0.99,
                least=0.1, most=1.0),
        of_fact("discount", "cost of capital",
                own.one(category="finance", item="cost of capital"), unit="a year", spread=0.4,
                most=1.0),
        assumed("lease_rate", "interest of a lease", "a year", 0.07, 0.1, 0.15, most=1.0),
        assumed("rent_trend", "change of rents", "a year", -0.25, -0.1, 0.1, least=-0.9, most=1.0,
                why="rents fell by two thirds from 2024 to early 2026 and rose up to 29 % since"),
        assumed("spot_overhead", "work that spot does twice", "factor", 1.03, 1.1, 1.3, least=1.0,
                most=10.0),
        assumed("use_factor", "use, against what you told", "factor", 0.7, 1.0, 1.2, most=100.0),
    ]  # fmt: skip
