"""Prime Intellect's offers, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.primeintellect import SOURCE

PATH = "/api/v1/availability/gpus"
ENV = {"PRIME_API_KEY": "pit_1"}


def item(price: Any = 15.77, **more: Any) -> dict[str, Any]:
    unit = {"minCount": None, "maxCount": None, "pricePerUnit": None, "step": None}
    prices = {"onDemand": price, "communityPrice": None, "isVariable": None, "currency": "USD"}
    return {
        "cloudId": "8H100.80S.176V",
        "gpuType": "H100_80GB",
        "socket": "SXM5",
        "provider": "datacrunch",
        "region": "eu_north",
        "dataCenter": "FIN-02",
        "country": "FI",
        "gpuCount": 8,
        "gpuMemory": 640,
        "vcpu": unit | {"defaultCount": 176},
        "memory": unit | {"defaultCount": 1480},
        "disk": unit | {"defaultCount": 100, "pricePerUnit": 0.00014},
        "stockStatus": "Available",
        "security": "secure_cloud",
        "prices": prices | more.pop("prices", {}),
        "images": ["ubuntu_22_cuda_12"],
        "isSpot": None,
        "prepaidTime": None,
    } | more


def serve(server: LocalHttp, *items: Any, total: Any = None) -> None:
    def page(request: Request) -> Any:
        size, number = int(request.query["page_size"]), int(request.query["page"])
        shown = items[(number - 1) * size : number * size]
        return {"items": list(shown), "totalCount": len(items) if total is None else total}

    server.on(PATH, page)


def test_an_offer(server: LocalHttp) -> None:
    serve(server, item())
    listings, skipped = ask(SOURCE, server, ENV)
    assert listings == [
        Listing(
            region="FI",
            zone="FIN-02",
            instance_type="datacrunch__8xH100_80GB__176__1480",
            accelerator="H100-SXM",
            accelerator_count=8,
            vcpus=176,
            memory_gb=1480,
            on_demand=15_770_000,  # type: ignore[arg-type]
            in_stock=True,
        )
    ]
    assert not skipped
    assert server.requests[0].headers["authorization"] == "Bearer pit_1"


def test_all_pages(server: LocalHttp) -> None:
    serve(server, *[item(dataCenter=f"FIN-{n}") for n in range(230)])
    listings, _ = ask(SOURCE, server, ENV)
    assert {it.zone for it in listings} == {f"FIN-{n}" for n in range(230)}
    assert [it.query["page"] for it in server.requests] == ["1", "2", "3"]


def test_pages_that_run_out_early(server: LocalHttp) -> None:
    """Offers are taken while we read: the announced total is then never reached."""
    serve(server, *[item(dataCenter=f"FIN-{n}") for n in range(100)], total=101)
    listings, skipped = ask(SOURCE, server, ENV)
    assert len(listings) == 100
    assert skipped == {"fewer offers than announced": 1}


def test_pages_without_end(server: LocalHttp) -> None:
    server.on(PATH, {"items": [item()], "totalCount": 10**9})
    with pytest.raises(SourceFailed, match="do not end"):
        ask(SOURCE, server, ENV)
    assert len(server.requests) == 50


def test_spot_is_an_offer_of_its_own(server: LocalHttp) -> None:
    serve(server, item(), item(6.84, isSpot=True, stockStatus="Low"))
    (plain, cheap), _ = ask(SOURCE, server, ENV)
    assert plain.instance_type == cheap.instance_type
    assert (cheap.on_demand, cheap.spot, cheap.stock_market) == (None, 6_840_000, "spot")
    assert (plain.on_demand, plain.spot) == (15_770_000, None)


@pytest.mark.parametrize("first", [17.0, 15.0])
def test_of_twins_the_cheaper(server: LocalHttp, first: float) -> None:
    other = 32.0 - first
    serve(server, item(first, stockStatus="Unavailable"), item(other, stockStatus="High"))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert (listing.on_demand, listing.in_stock) == (15_000_000, True)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"cloudId": "n3-A100x8-NVLink"}, "datacrunch__8xH100_80GB__176__1480__NVLINK"),
        (
            {"security": "community_cloud", "prices": {"communityPrice": 9.5}},
            "datacrunch__8xH100_80GB__176__1480__COMMUNITY",
        ),
    ],
)
def test_names_tell_different_machines_apart(
    server: LocalHttp, changes: dict[str, Any], name: str
) -> None:
    serve(server, item(**changes))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.instance_type == name


@pytest.mark.parametrize(
    ("gpu", "socket", "accelerator"),
    [
        ("A100_80GB", "PCIe", "A100-80GB-PCIe"),
        ("A100_40GB", "SXM4", "A100-40GB"),
        ("B300_262GB", "SXM6", "B300"),
        ("RTX6000Ada_48GB", "PCIe", "RTX-6000-Ada"),
        ("A6000_48GB", "PCIe", "RTX-A6000"),
        ("L40S_48GB", "PCIe", "L40S"),
        ("V100_16GB", "SXM2", "V100-16GB"),
    ],
)
def test_the_chip_by_type_and_socket(
    server: LocalHttp, gpu: str, socket: str, accelerator: str
) -> None:
    serve(server, item(provider="new", gpuType=gpu, socket=socket))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.accelerator == accelerator


@pytest.mark.parametrize(
    ("status", "in_stock"),
    [("High", True), ("Low", True), ("Unavailable", False), ("Out of Stock", False), (None, None)],
)
def test_stock(server: LocalHttp, status: Any, in_stock: bool | None) -> None:
    serve(server, item(stockStatus=status))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.in_stock is in_stock


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (item(0), "no price"),
        (item(None), "no price"),
        (item(-1), "no price"),
        (item(prices={"currency": "EUR"}), "price in EUR"),
        (item(prepaidTime=720), "sold ahead only"),
        (item(provider="runpod"), "RunPod resold"),
        (item(gpuType="CPU_NODE"), "CPU-only machine"),
        (item(gpuCount=0), "CPU-only machine"),
        (item(country=None), "no place named"),
        (item(dataCenter=""), "no place named"),
        (item(gpuType="Imaginary_8GB"), "unknown accelerator 'Imaginary_8GB'"),
        (item(gpuType="RTX_PRO_6000B_96GB"), "unknown accelerator 'RTX_PRO_6000B_96GB'"),
        (item("15.77"), "malformed entry"),
        (item(gpuCount="8"), "malformed entry"),
        (item(vcpu=None), "malformed entry"),
        (item(memory={"defaultCount": 0}), "malformed entry"),
        ([], "malformed entry"),
    ],
)
def test_one_odd_offer_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, odd, item(1.97, gpuCount=1))
    (listing,), skipped = ask(SOURCE, server, ENV)
    assert listing.accelerator_count == 1
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply({"items": [item()], "totalCount": 1}, cut=40), PATH),
        ("<html>", "not JSON"),
        ({"H100_80GB": [item()]}, "answer.items: expected list, got None"),
        ({"items": []}, "answer.totalCount: expected int, got None"),
        ({"items": [item("?")], "totalCount": 1}, "datacrunch.8xH100_80GB.prices: expected"),
        ({"items": [], "totalCount": 0}, "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server, ENV)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), {"items": [item()], "totalCount": 1})
    assert ask(SOURCE, server, ENV)[0]


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    server.on(PATH, Reply({"detail": "Authorization failed"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*PRIME_API_KEY"):
        ask(SOURCE, server, ENV)
