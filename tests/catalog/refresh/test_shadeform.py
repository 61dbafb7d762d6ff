"""Shadeform's instance types, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.shadeform import SOURCE

PATH = "/v1/instances/types"
ENV = {"SHADEFORM_API_KEY": "key-1"}


def place(region: str = "montreal-canada-2", available: Any = True, **more: Any) -> dict[str, Any]:
    shown = {"display_name": "Montreal, Canada", "rental_type": "on_demand"}
    return {"region": region, "available": available} | shown | more


def entry(
    shade: Any = "A100_80Gx2",
    cents: Any = 270,
    places: Any = None,
    *,
    cloud: Any = "hyperstack",
    **machine: Any,
) -> dict[str, Any]:
    return {
        "cloud": cloud,
        "shade_instance_type": shade,
        "cloud_instance_type": "n3-A100x2",
        "deployment_type": "vm",
        "hourly_price": cents,
        "configuration": {
            "gpu_type": "A100_80G",
            "num_gpus": 2,
            "interconnect": "pcie",
            "nvlink": False,
            "vram_per_gpu_in_gb": 80,
            "vcpus": 60,
            "memory_in_gb": 240,
            "storage_in_gb": 1500,
            "gpu_manufacturer": "nvidia",
            "os_options": ["ubuntu22.04_cuda12.2_shade_os"],
        }
        | machine,
        "availability": [place()] if places is None else places,
    }


def types(*entries: Any) -> dict[str, Any]:
    return {"instance_types": list(entries)}


def test_cents_by_region_with_stock(server: LocalHttp) -> None:
    server.on(PATH, types(entry(places=[place(), place("oslo-norway-3", False)])))
    listings, skipped = ask(SOURCE, server, ENV)
    assert listings[0] == Listing(
        region="montreal-canada-2",
        instance_type="hyperstack_A100-80GBx2",
        accelerator="A100-80GB-PCIe",
        accelerator_count=2,
        vcpus=60,
        memory_gb=240,
        local_nvme_gb=1500,
        on_demand=2_700_000,  # type: ignore[arg-type]
        in_stock=True,
    )
    assert (listings[1].region, listings[1].in_stock) == ("oslo-norway-3", False)
    assert listings[1].on_demand == 2_700_000
    assert not skipped
    assert server.requests[0].headers["x-api-key"] == "key-1"
    assert not server.requests[0].query


def test_spot_is_an_entry_of_its_own_in_dollars(server: LocalHttp) -> None:
    spot = place(available=False, rental_type="spot", hourly_price="1.50")
    server.on(PATH, types(entry(places=[place(), spot])))
    (plain, cheap), _ = ask(SOURCE, server, ENV)
    assert (plain.on_demand, plain.spot, plain.stock_market) == (2_700_000, None, "on_demand")
    assert (cheap.on_demand, cheap.spot, cheap.stock_market) == (None, 1_500_000, "spot")
    assert (plain.in_stock, cheap.in_stock) == (True, False)


def test_an_answer_from_before_spot(server: LocalHttp) -> None:
    server.on(PATH, types(entry(places=[{"region": "canada-1", "available": True}])))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert (listing.on_demand, listing.stock_market) == (2_700_000, "on_demand")


@pytest.mark.parametrize(
    ("shade", "name"),
    [
        ("A100_sxm4_80Gx8", "denvr_A100-sxm4-80GBx8"),
        ("A100_sxm4_80G_DGX", "denvr_A100-sxm4-80GB-DGX"),
        ("V100_32G", "denvr_V100-32GB"),
        ("GH200", "denvr_GH200"),
        ("RTXPro6000x2", "denvr_RTXPro6000x2"),
    ],
)
def test_names_as_the_catalog_has_them(server: LocalHttp, shade: str, name: str) -> None:
    server.on(PATH, types(entry(shade, cloud="denvr")))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.instance_type == name


@pytest.mark.parametrize(
    ("machine", "accelerator"),
    [
        ({"gpu_type": "H100", "interconnect": "sxm5"}, "H100-SXM"),
        ({"gpu_type": "H100", "interconnect": "pcie"}, "H100-PCIe"),
        ({"gpu_type": "A6000", "vram_per_gpu_in_gb": 48}, "RTX-A6000"),
        ({"gpu_type": "RTXPro6000", "vram_per_gpu_in_gb": 96}, "RTX-PRO-6000"),
        ({"gpu_type": "B200", "interconnect": "sxm6", "vram_per_gpu_in_gb": 180}, "B200"),
        ({"gpu_type": "GAUDI2", "interconnect": None, "vram_per_gpu_in_gb": 96}, "Gaudi2"),
    ],
)
def test_a_type_that_is_new(server: LocalHttp, machine: dict[str, Any], accelerator: str) -> None:
    server.on(PATH, types(entry("new", **machine)))
    (listing,), _ = ask(SOURCE, server, ENV)
    assert listing.accelerator == accelerator


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (entry("odd", 0), "no price"),
        (entry("odd", num_gpus=0, gpu_type=None), "CPU-only type"),
        (entry("odd", gpu_type="Imaginary"), "unknown accelerator 'Imaginary'"),
        (entry("odd", places=[]), "no region"),
        (entry("odd", 2.7), "malformed entry"),
        (entry(None), "malformed entry"),
        (entry("odd", num_gpus="2"), "malformed entry"),
        (entry("odd", num_gpus=2000), "malformed entry"),
        (entry("odd", places=[{"available": True}]), "malformed entry"),
        (entry("odd", places=[place(available="yes")]), "malformed entry"),
        (entry("odd", places=[place(rental_type="spot")]), "malformed entry"),
        (7, "malformed entry"),
    ],
)
def test_one_odd_entry_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    server.on(PATH, types(odd, entry()))
    (listing,), skipped = ask(SOURCE, server, ENV)
    assert listing.instance_type == "hyperstack_A100-80GBx2"
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (place(rental_type="commitment"), "rental type 'commitment'"),
        (place(rental_type="spot", hourly_price="2.70"), "spot no cheaper than on-demand"),
        (place(rental_type="spot", hourly_price="0"), "spot no cheaper than on-demand"),
    ],
)
def test_a_region_that_offers_nothing_more(server: LocalHttp, other: Any, reason: str) -> None:
    server.on(PATH, types(entry(places=[place(), other])))
    (listing,), skipped = ask(SOURCE, server, ENV)
    assert listing.spot is None
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply(types(entry()), cut=40), PATH),
        ("<html>", "not JSON"),
        ([], "answer: expected dict"),
        ({"types": []}, "answer.instance_types: expected list, got None"),
        (types(entry(cents="2.70")), "hourly_price: expected int, got '2.70'"),
        (types(), "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server, ENV)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), types(entry()))
    assert ask(SOURCE, server, ENV)[0]


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    server.on(PATH, Reply({"error": "Unauthorized"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*SHADEFORM_API_KEY"):
        ask(SOURCE, server, ENV)
