"""Lambda's instance types, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.lambda_cloud import SOURCE

PATH = "/api/v1/instance-types"
ENV = {"LAMBDA_API_KEY": "secret_key\n"}  # a key read from a file often ends in a new line


def entry(
    name: str = "gpu_8x_h100_sxm5",
    cents: Any = 3192,
    gpus: Any = 8,
    gpu: str = "H100 (80 GB SXM5)",
    regions: Any = ("us-west-1",),
    **specs: Any,
) -> dict[str, Any]:
    return {
        "instance_type": {
            "name": name,
            "description": f"{gpus}x {gpu}",
            "gpu_description": gpu,
            "price_cents_per_hour": cents,
            "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": gpus} | specs,
        },
        "regions_with_capacity_available": [
            {"name": region, "description": "California, USA"} for region in regions
        ]
        if isinstance(regions, tuple)
        else regions,
    }


def types(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"data": {it["instance_type"]["name"]: it for it in entries}}


def test_price_everywhere_and_stock_where_there_is_some(server: LocalHttp) -> None:
    server.on(PATH, types(entry(regions=("us-west-1", "us-south-2"))))
    listings, skipped = ask(SOURCE, server, ENV)
    assert listings[0] == Listing(
        region="us-west-1",
        instance_type="gpu_8x_h100_sxm5",
        accelerator="H100-SXM",
        accelerator_count=8,
        vcpus=208,
        memory_gb=1800,
        local_nvme_gb=22528,
        on_demand=31_920_000,  # type: ignore[arg-type]
        in_stock=True,
    )
    assert [(it.region, it.in_stock, it.only_known) for it in listings] == [
        ("us-west-1", True, False),
        ("us-south-2", True, False),
        ("any", None, True),
    ]
    assert not skipped
    assert server.requests[0].headers["authorization"] == "Bearer secret_key"


def test_no_region_named_is_no_stock_anywhere(server: LocalHttp) -> None:
    server.on(PATH, types(entry(regions=())))
    listings, _ = ask(SOURCE, server, ENV)
    assert [(it.region, it.in_stock, it.only_known) for it in listings] == [("any", False, False)]


@pytest.mark.parametrize(
    ("gpu", "accelerator"),
    [
        ("H200 (141 GB SXM5)", "H200"),
        ("A100 (80 GB PCIe)", "A100-80GB-PCIe"),
        ("Tesla V100 (32 GB)", "V100-32GB"),
        ("L4 (24 GB PCIe)", "L4"),
        ("RTX 6000 (24 GB)", "Quadro-RTX6000"),
    ],
)
def test_a_type_that_is_new(server: LocalHttp, gpu: str, accelerator: str) -> None:
    server.on(PATH, types(entry("gpu_2x_new", gpus=2, gpu=gpu)))
    listings, _ = ask(SOURCE, server, ENV)
    assert listings[0].accelerator == accelerator


def test_a_machine_without_a_gpu_is_renewed_not_collected(server: LocalHttp) -> None:
    ours, other = (
        entry(name, 20, 0, "N/A", vcpus=4, memory_gib=16) for name in ("cpu_4x_general", "cpu_9x")
    )
    server.on(PATH, types(ours, other))
    (listing, everywhere), skipped = ask(SOURCE, server, ENV)
    assert (listing.accelerator, listing.accelerator_count, listing.on_demand) == ("", 0, 200_000)
    assert listing.instance_type == everywhere.instance_type == "cpu_4x_general"
    assert skipped == {"CPU-only type": 1}


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (entry("odd", 0), "no price"),
        (entry("odd", -5), "no price"),
        (entry("odd", "3192"), "malformed entry"),
        (entry("odd", True), "malformed entry"),
        (entry("odd", gpus=None), "malformed entry"),
        (entry("odd", gpus=-1), "malformed entry"),
        ({"instance_type": {"name": "odd"}}, "malformed entry"),
        ({"instance_type": {"name": "odd", "specs": []}}, "malformed entry"),
        (entry("odd", gpu="Imaginary RTX 9999"), "unknown accelerator 'Imaginary RTX 9999'"),
    ],
)
def test_one_odd_entry_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    server.on(PATH, types(odd, entry()))
    listings, skipped = ask(SOURCE, server, ENV)
    assert {it.instance_type for it in listings} == {"gpu_8x_h100_sxm5"}
    assert skipped == {reason: 1}


@pytest.mark.parametrize("regions", [None, "us-west-1", [None], [{"description": "Utah"}]])
def test_a_price_holds_without_stock(server: LocalHttp, regions: Any) -> None:
    server.on(PATH, types(entry(regions=regions)))
    listings, skipped = ask(SOURCE, server, ENV)
    assert [(it.region, it.in_stock) for it in listings] == [("any", None)]
    assert skipped == {"stock not readable": 1}


def test_hardware_that_is_no_number_is_not_told(server: LocalHttp) -> None:
    server.on(PATH, types(entry(vcpus="208", memory_gib=None, storage_gib=True)))
    (listing, _), _ = ask(SOURCE, server, ENV)
    assert (listing.vcpus, listing.memory_gb, listing.local_nvme_gb) == (None, None, None)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply(types(entry()), cut=40), "instance-types"),
        ("<html>", "not JSON"),
        ([], "answer: expected dict"),
        ({"types": {}}, "answer.data: expected dict, got None"),
        ({"data": {"gpu_1x_a10": []}}, "data.gpu_1x_a10: expected dict"),
        (types(entry(cents=None)), "price_cents_per_hour: expected int, got None"),
        ({"data": {}}, "listed nothing that we know"),
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
    error = {"error": {"code": "global/invalid-api-key", "message": "API key was invalid."}}
    server.on(PATH, Reply(error, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*LAMBDA_API_KEY") as caught:
        ask(SOURCE, server, ENV)
    assert "secret_key" not in str(caught.value)
