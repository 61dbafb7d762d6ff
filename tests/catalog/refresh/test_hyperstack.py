"""Hyperstack's flavors and price book, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.hyperstack import SOURCE

FLAVORS, PRICES = "/v1/core/flavors", "/v1/pricebook"
ENV = {"HYPERSTACK_API_KEY": "key-1"}


def flavor(name: str = "n3-A100x8", gpu: Any = "A100-80G-PCIe", **more: Any) -> dict[str, Any]:
    return {
        "id": 3287,
        "name": name,
        "display_name": None,
        "region_name": "CANADA-1",
        "cpu": 252,
        "ram": 1440,
        "disk": 100,
        "ephemeral": 6500,
        "gpu": gpu,
        "gpu_count": 8,
        "stock_available": True,
        "labels": [],
        "features": {},
    } | more


def price(name: str = "A100-80G-PCIe", value: Any = 1.35, **more: Any) -> dict[str, Any]:
    return {
        "id": 10,
        "name": name,
        "value": value,
        "original_value": value,
        "discount_applied": False,
        "start_time": None,
        "end_time": None,
    } | more


BOOK = [
    price(),
    price("A100-80G-PCIe-spot", "1.08"),
    price("vCPU (cpu-only-flavors)", 0.01),
    price("RAM", 0),
]


def serve(server: LocalHttp, *flavors: Any, book: Any = None) -> None:
    groups = [{"gpu": "any", "region_name": "CANADA-1", "flavors": list(flavors)}]
    server.on(FLAVORS, {"status": True, "message": "Get flavors", "data": groups})
    server.on(PRICES, BOOK if book is None else book)


def test_a_machine_costs_its_gpus(server: LocalHttp) -> None:
    serve(server, flavor(), flavor("n3-A100x1", gpu_count=1, stock_available=False))
    listings, skipped = ask(SOURCE, server, ENV)
    assert listings[0] == Listing(
        region="CANADA-1",
        instance_type="n3-A100x8",
        accelerator="A100-80GB-PCIe",
        accelerator_count=8,
        vcpus=252,
        memory_gb=1440,
        local_nvme_gb=6500,
        on_demand=10_800_000,  # type: ignore[arg-type]
        in_stock=True,
    )
    assert (listings[1].on_demand, listings[1].in_stock) == (1_350_000, False)
    assert not skipped
    assert {request.headers["api_key"] for request in server.requests} == {"key-1"}


def test_a_spot_flavor_is_the_spot_price_of_the_plain_one(server: LocalHttp) -> None:
    serve(server, flavor(), flavor("n3-A100x8-spot", "A100-80G-PCIe-spot", stock_available=False))
    listings, _ = ask(SOURCE, server, ENV)
    plain, spot = listings
    assert plain.instance_type == spot.instance_type == "n3-A100x8"
    assert (spot.on_demand, spot.spot, spot.stock_market) == (None, 8_640_000, "spot")
    assert (plain.in_stock, spot.in_stock) == (True, False)


def test_the_list_price_not_the_accounts_own(server: LocalHttp) -> None:
    serve(server, flavor(), book=[price(value=0.9, original_value=1.35, discount_applied=True)])
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.on_demand == 10_800_000


@pytest.mark.parametrize(
    ("gpu", "accelerator"),
    [
        ("A100-80G-SXM4", "A100-80GB"),
        ("A100-80G-PCIe-NVLink", "A100-80GB-PCIe"),
        ("H100-80G-SXM5", "H100-SXM"),
        ("H200-141G-SXM5", "H200"),
        ("B200-SXM", "B200"),
        ("B300-SXM", "B300"),
        ("RTX-PRO6000-SE", "RTX-PRO-6000"),
        ("L40", "L40"),
    ],
)
def test_a_flavor_that_is_new(server: LocalHttp, gpu: str, accelerator: str) -> None:
    serve(server, flavor("n9-new", gpu), book=[price(gpu, 2)])
    (listing,), _ = ask(SOURCE, server, ENV)
    assert (listing.accelerator, listing.on_demand) == (accelerator, 16_000_000)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (flavor("n1-cpu-small", "", gpu_count=0), "CPU-only flavor"),
        (flavor("odd", "H200-141G-SXM5"), "no price for 'H200-141G-SXM5'"),
        (flavor("odd", "Grayskull"), "no price for 'Grayskull'"),
        (flavor("odd", "Wormhole"), "unknown accelerator 'Wormhole'"),
        (flavor("odd", gpu_count="8"), "malformed entry"),
        (flavor("odd", region_name=None), "malformed entry"),
        (flavor("odd", region_name=""), "malformed entry"),
        (flavor("odd", stock_available="yes"), "malformed entry"),
        (None, "malformed entry"),
    ],
)
def test_one_odd_flavor_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    free = price("Grayskull", 0)
    serve(server, odd, flavor(), book=[*BOOK, free, price("Wormhole", 1)])
    (listing,), skipped = ask(SOURCE, server, ENV)
    assert listing.instance_type == "n3-A100x8"
    assert skipped == {reason: 1}


def test_a_price_that_is_none_costs_only_its_gpu(server: LocalHttp) -> None:
    serve(server, flavor(), book=[price("L40", "soon"), *BOOK])
    listings, skipped = ask(SOURCE, server, ENV)
    assert len(listings) == 1
    assert skipped == {"malformed price": 1}


@pytest.mark.parametrize(
    ("flavors", "book", "says"),
    [
        (Reply({"data": []}, cut=5), BOOK, FLAVORS),
        ("<html>", BOOK, "not JSON"),
        ({"flavors": []}, BOOK, "flavors.data: expected list, got None"),
        ({"data": [{"gpu": "L40"}]}, BOOK, "flavors: expected list, got None"),
        ({"data": [{"flavors": [flavor(gpu_count=None)]}]}, BOOK, "n3-A100x8.gpu_count: expected"),
        ({"data": []}, BOOK, "listed nothing that we know"),
        ({"data": []}, {"prices": []}, "pricebook: expected list"),
        ({"data": []}, [{"value": 1}], "name: expected str, got None"),
        ({"data": []}, [price(value=0)], "no price"),
    ],
)
def test_an_answer_that_cannot_be_used(
    server: LocalHttp, flavors: Any, book: Any, says: str
) -> None:
    server.on(FLAVORS, flavors)
    server.on(PRICES, book)
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server, ENV)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    serve(server, flavor())
    server.on(PRICES, Reply(status=503), BOOK)
    assert ask(SOURCE, server, ENV)[0]


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    server.on(PRICES, Reply({"status": False, "message": "unauthorized"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*HYPERSTACK_API_KEY"):
        ask(SOURCE, server, ENV)
