"""Azure's price list, over HTTP, with the odd rows it really has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import KNOWN, ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.base.units import micros_from_usd
from tradewind.catalog.refresh.azure import SOURCE
from tradewind.catalog.refresh.base import Listing

PATH = "/api/retail/prices"
SIZE = "Standard_ND96isr_H100_v5"


def row(price: Any = 98.32, **changes: Any) -> dict[str, Any]:
    """A row as the API writes it: H100, eastus, Linux, on demand."""
    spot = " Spot" if changes.pop("spot", False) else ""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "location": "US East",
        "effectiveStartDate": "2023-12-01T00:00:00Z",
        "meterName": f"ND96isr H100 v5{spot}",
        "productName": "Virtual Machines ND H100 v5 Series",
        "skuName": f"ND96isrH100v5{spot}",
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": SIZE,
    } | changes


def page(*rows: Any, next_link: str | None = None) -> dict[str, Any]:
    return {"BillingCurrency": "USD", "Items": list(rows), "NextPageLink": next_link, "Count": 1}


def serve(server: LocalHttp, *answers: Any, plain: Any = None) -> None:
    """`answers`, page by page, to the question for the N series; `plain` to that for the others."""
    pages = list(answers)

    def answer(request: Request) -> Any:
        if "armSkuName eq" in request.query["$filter"]:
            return page() if plain is None else plain
        return pages.pop(0) if len(pages) > 1 else pages[0]

    server.on(PATH, answer)


def only(listings: list[Listing]) -> Listing:
    assert len(listings) == 1
    return listings[0]


def test_the_prices_of_one_size_are_put_together_from_all_pages(server: LocalHttp) -> None:
    # As Azure does, the link names the public host, here one that cannot be reached.
    link = f"https://prices.azure.invalid:443{PATH}?$filter=serviceName%20eq%20%27x%27&$skip="
    serve(
        server,
        page(row(), row(18.1892, spot=True), next_link=f"{link}1000"),
        page(row(551_221.0, type="Reservation", reservationTerm="1 Year"), next_link=f"{link}2000"),
        page(
            row(1_033_539.6, type="Reservation", reservationTerm="3 Years"),
            row(122.9, armRegionName="WestUS3"),
        ),
    )
    listings, skipped = ask(SOURCE, server)
    assert listings[0] == Listing(
        region="eastus",
        instance_type=SIZE,
        accelerator="H100-SXM",
        accelerator_count=8,
        on_demand=micros_from_usd("98.32"),
        spot=micros_from_usd("18.1892"),
        reserved_1y=micros_from_usd("62.924772"),  # 551221 / 8760
        reserved_3y=micros_from_usd("39.327991"),  # 1033539.6 / 26280
    )
    assert (listings[1].region, listings[1].on_demand) == ("westus3", 122_900_000)
    assert len(listings) == 2
    assert not skipped
    assert [r.query.get("$skip") for r in server.requests] == [None, "1000", "2000", None]
    assert all("$filter" in r.query for r in server.requests)


def test_it_asks_for_the_n_series_and_for_the_others_that_we_know(server: LocalHttp) -> None:
    serve(server, page(row()), plain=page(row(0.192, armSkuName="Standard_D4s_v5")))
    listed = {it.instance_type: it for it in ask(SOURCE, server)[0]}
    assert set(listed) == {SIZE, "Standard_D4s_v5"}
    assert listed["Standard_D4s_v5"].on_demand == 192_000
    assert (listed["Standard_D4s_v5"].accelerator, listed[SIZE].accelerator) == ("", "H100-SXM")
    series, others = (request.query["$filter"] for request in server.requests)
    machines = "serviceName eq 'Virtual Machines'"
    assert series == f"{machines} and startswith(armSkuName, 'Standard_N')"
    names = sorted(name for name, kind in KNOWN["azure"].items() if not kind.accelerator)
    assert len(names) == 10
    either = " or ".join(f"armSkuName eq '{name}'" for name in names)
    assert others == f"{machines} and ({either})"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"productName": "Virtual Machines ND H100 v5 Series Windows"}, "Windows"),
        ({"productName": "Virtual Machines NCCadsv5 Srs Win"}, "Windows"),
        ({"productName": "ND H100 v5 Series Cloud Services"}, "Cloud Services"),
        ({"skuName": "ND96isrH100v5 Low Priority"}, "Low Priority"),
        ({"type": "DevTestConsumption"}, "type DevTestConsumption"),
        ({"armSkuName": "Standard_NC6_Promo2"}, "promotion"),
        ({"armSkuName": "Standard_NC6s_v3"}, "retired size"),
        ({"armSkuName": "Standard_NX96_Z9_v9"}, "unknown size Standard_NX96_Z9_v9"),
        ({"armSkuName": None}, "no size or no region"),
        ({"armRegionName": ""}, "no size or no region"),
        ({"currencyCode": "EUR"}, "currency EUR"),
        ({"unitOfMeasure": "1 GB"}, "unit 1 GB"),
        ({"retailPrice": 0.0}, "price of zero"),
        ({"retailPrice": None}, "malformed row"),
        ({"type": "Reservation", "reservationTerm": "5 Years"}, "reserved for 5 Years"),
        ({"effectiveStartDate": "2026-12-01T00:00:00Z"}, "not in force today"),
        ({"effectiveEndDate": "2026-07-31T00:00:00Z"}, "not in force today"),
        (
            {
                "effectiveStartDate": "2026-08-01T00:00:00Z",
                "effectiveEndDate": "2026-07-31T00:00:00Z",
            },
            "not in force today",
        ),
    ],
)
def test_what_is_no_linux_price_of_today_is_left_out_and_counted(
    server: LocalHttp, changes: dict[str, Any], reason: str
) -> None:
    serve(server, page(row(0.01, **changes), row()))
    listings, skipped = ask(SOURCE, server)
    assert only(listings).on_demand == 98_320_000
    assert only(listings).spot is None
    assert skipped == {reason: 1}


def test_of_several_meters_the_primary_one_wins_then_the_newest(server: LocalHttp) -> None:
    server.on(
        PATH,
        page(
            row(1.0, effectiveStartDate="2022-01-01T00:00:00Z"),
            row(2.0, effectiveStartDate="2024-01-01T00:00:00Z"),
            row(3.0, effectiveStartDate="2025-01-01T00:00:00Z", isPrimaryMeterRegion=False),
            row(4.0, armRegionName="westus", isPrimaryMeterRegion=False),
        ),
    )
    listings, _ = ask(SOURCE, server)
    assert {it.region: it.on_demand for it in listings} == {
        "eastus": 2_000_000,
        "westus": 4_000_000,
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"items": []}, "answer.Items: expected list"),
        ([], "answer: expected dict"),
        (page("x"), r"answer.Items\[\]: expected dict"),
        (page(row("98.32")), "retailPrice: expected int/float, got '98.32'"),
        (page(row(float("nan"))), "retailPrice: nan is not a price"),
        (page(), "listed nothing that we know"),
        (page(row(0.0)), "listed nothing that we know"),
        ("<html>down for maintenance</html>", "not JSON"),
        (Reply(page(row()), cut=40), "127.0.0.1"),
        (page(row(), next_link="https://prices.azure.com/api/retail/prices?a=1"), "do not end"),
        (page(row(), next_link=7), "NextPageLink: expected str"),  # type: ignore[arg-type]
    ],
)
def test_trouble_is_told(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), page(row()))
    listings, _ = ask(SOURCE, server)
    assert only(listings).on_demand == 98_320_000
