"""Scaleway's instance types, over HTTP, with a central bank to make dollars of its euros."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.catalog.refresh.test_ecb import BANK, rates
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.scaleway import SOURCE

ZONES = [f"{region}-{n}" for region in ("fr-par", "nl-ams", "pl-waw") for n in (1, 2, 3)]
GIB = 2**30


def server_type(euros: Any, gpus: int | None, chip: str = "", **changes: Any) -> dict[str, Any]:
    info = {"gpu_manufacturer": "NVIDIA", "gpu_name": chip, "gpu_memory": 80 * GIB}
    return {
        "monthly_price": 2000.0,
        "hourly_price": euros,
        "ncpus": 24,
        "ram": 240 * GIB,
        "arch": "x86_64",
        "baremetal": False,
        "gpu": gpus,
        "gpu_info": info if chip else None,
        "mig_profile": None,
        "end_of_service": False,
    } | changes


CPU = server_type(0.01, None)
H100 = server_type(2.8665, 1, "H100-PCIe")
SXM = server_type(6.6198, 2, "H100-SXM")


def products(zone: str) -> str:
    return f"/instance/v1/zones/{zone}/products/servers"


def serve(server: LocalHttp, **zones: dict[str, Any]) -> None:
    """`fr_par_1={name: type}` and so on; other zones have CPU-only types. Stock is as named."""
    server.on(BANK, rates("1.1699"))
    for zone in ZONES:
        types = zones.get(zone.replace("-", "_"), {"DEV1-S": CPU})
        stock = {
            name: {"availability": spec.get("stock", "available")} for name, spec in types.items()
        }
        server.on(products(zone), {"servers": types})
        server.on(f"{products(zone)}/availability", {"servers": stock})


def asked(server: LocalHttp) -> tuple[list[Listing], Counter[str]]:
    return ask(SOURCE, server, {"TRADEWIND_ECB_URL": f"{server.url}{BANK}"})


def test_euros_become_dollars_at_the_banks_rate(server: LocalHttp) -> None:
    serve(server, fr_par_2={"H100-1-80G": H100, "H100-SXM-2-80G": SXM, "PRO2-S": CPU})
    listings, skipped = asked(server)
    assert listings[0] == Listing(
        region="fr-par",
        instance_type="H100-1-80G",
        accelerator="H100-PCIe",
        accelerator_count=1,
        vcpus=24,
        memory_gb=240,
        on_demand=3_353_518,  # type: ignore[arg-type]  # 2.8665 EUR x 1.1699
        in_stock=True,
    )
    assert (listings[1].accelerator, listings[1].on_demand) == ("H100-SXM", 7_744_504)
    assert len(listings) == 2
    assert not skipped


def test_the_zones_of_a_region_are_taken_together(server: LocalHttp) -> None:
    serve(
        server,
        fr_par_1={"H100-1-80G": H100 | {"stock": "shortage"}},
        fr_par_2={"H100-1-80G": H100 | {"stock": "scarce"}},
        pl_waw_1={"H100-1-80G": H100 | {"stock": "shortage"}},
        pl_waw_2={"H100-1-80G": H100 | {"hourly_price": 3.0, "stock": "shortage"}},
        nl_ams_1={"H100-1-80G": H100 | {"stock": ["maintenance"]}},
    )
    listings, skipped = asked(server)
    assert {it.region: (it.on_demand, it.in_stock) for it in listings} == {
        "fr-par": (3_353_518, True),
        "pl-waw": (3_509_700, False),
        "nl-ams": (3_353_518, None),
    }
    assert skipped == {"the zones of pl-waw ask different prices for H100-1-80G": 1}


def test_pages_are_read_until_one_is_short(server: LocalHttp) -> None:
    every = {f"CPU-{n}": CPU for n in range(136)} | {"H100-1-80G": H100}

    def answer(request: Request) -> Any:
        start = (int(request.query["page"]) - 1) * int(request.query["per_page"])
        return {"servers": dict(list(every.items())[start : start + 100])}

    serve(server)
    server.on(products("fr-par-2"), answer)
    listings, _ = asked(server)
    assert [it.instance_type for it in listings] == ["H100-1-80G"]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (server_type(1.0, 1, "Z9"), "unknown accelerator 'Z9'"),
        (server_type(1.0, 1), "unknown accelerator None"),
        (SXM | {"hourly_price": 0.0}, "price of zero"),
        (SXM | {"end_of_service": True}, "end of service"),
        (SXM | {"mig_profile": "1g.10gb"}, "a slice of a GPU"),
    ],
)
def test_what_cannot_be_used_is_left_out(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, fr_par_2={"H100-1-80G": H100, "ODD-1": odd})
    listings, skipped = asked(server)
    assert [it.instance_type for it in listings] == ["H100-1-80G"]
    assert skipped == {reason: 1}


def test_prices_are_worth_having_without_stock(server: LocalHttp) -> None:
    serve(server, fr_par_2={"H100-1-80G": H100})
    server.on(f"{products('fr-par-2')}/availability", {"servers": ["reshaped"]})
    listings, skipped = asked(server)
    assert [it.in_stock for it in listings] == [None]
    assert skipped == {"stock in fr-par-2 not told": 1}


def test_without_a_rate_there_are_no_prices(server: LocalHttp) -> None:
    serve(server, fr_par_2={"H100-1-80G": H100})
    server.on(BANK, rates(day="2026-10-30"))
    with pytest.raises(SourceFailed, match="of 2026-10-30 is not today's rate"):
        asked(server)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"servers": []}, "fr-par-1 products/servers: servers: expected dict"),
        ([], "answer: expected dict"),
        ({"servers": {"H100-1-80G": 7}}, "servers.H100-1-80G: expected dict"),
        ({"servers": {"X": server_type("2.7", 1, "L4")}}, "X.hourly_price: expected int/float"),
        ({"servers": {"X": server_type(float("nan"), 1, "L40S")}}, "nan is not a price"),
        ({"servers": {"X": H100 | {"gpu": "one"}}}, "X.gpu: expected int"),
        ({"servers": {"X": H100 | {"ram": None}}}, "X.ram: expected int"),
        ({"servers": {f"CPU-{n}": CPU for n in range(100)}}, "the pages do not end"),
        ({"servers": {}}, "listed nothing that we know"),
        ("<html>", "not JSON"),
        (Reply({"servers": {"X": H100}}, cut=20), "127.0.0.1"),
    ],
)
def test_trouble_is_told(server: LocalHttp, answer: Any, message: str) -> None:
    serve(server)
    server.on(products("fr-par-1"), answer)
    with pytest.raises(SourceFailed, match=message):
        asked(server)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    serve(server, fr_par_2={"H100-1-80G": H100})
    server.on(BANK, Reply(status=503), rates("1.1699"))
    server.on(products("fr-par-2"), Reply(status=503), {"servers": {"H100-1-80G": H100}})
    listings, _ = asked(server)
    assert len(listings) == 1
