"""Oracle's price list, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind import catalog
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.oci import SOURCE

PATH = "/pls/apex/cetools/api/v1/products/"


def item(
    part: str,
    name: str,
    value: Any,
    *,
    metric: str = "GPU Per Hour",
    currency: str = "USD",
    model: str = "PAY_AS_YOU_GO",
) -> dict[str, Any]:
    return {
        "partNumber": part,
        "displayName": name,
        "metricName": metric,
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [
            {"currencyCode": currency, "prices": [{"model": model, "value": value}]}
        ],
    }


H100 = item("B98415", "Oracle Cloud Infrastructure - Compute - GPU - H100", 10)
A10 = item("B95909", "Compute  - GPU - A10", 2)
OCPU = item("B93113", "Compute - Standard - E4 - OCPU", 0.025, metric="OCPU Per Hour")
MEMORY = item("B93114", "Compute - Standard - E4 - Memory", 0.0015, metric="Gigabyte Per Hour")


def products(*items: Any) -> dict[str, Any]:
    return {"lastUpdated": "2026-11-14T09:09:55.872Z", "items": list(items)}


def gpu_shapes(server: LocalHttp, *items: Any) -> tuple[list[Listing], Any]:
    """What is made of `items` beside the parts of the CPU-only shapes."""
    server.on(PATH, products(*items, OCPU, MEMORY))
    listings, skipped = ask(SOURCE, server)
    return [it for it in listings if it.accelerator], skipped


def test_a_shape_costs_its_gpus(server: LocalHttp) -> None:
    listings, skipped = gpu_shapes(
        server,
        H100,
        A10,
        item("B92740", "Compute - GPU - E3", 3.05),
        item("B88517", "Compute - Bare Metal GPU Standard - X7", 1.275),
        item("B88518", "Compute - Virtual Machine GPU Standard - X7", 1.275),
        item("B110979", "OCI - Compute - GPU - GB200", 16),
        item("B111758", "OCI- Compute - GPU - MI355X", 8.6),
        item("B91961", "Storage - Block Volume", 0.0255, metric="Gigabyte Per Month"),
    )
    assert listings[0] == Listing(
        region="any",
        instance_type="BM.GPU2.2",
        accelerator="P100",
        accelerator_count=2,
        on_demand=2_550_000,  # type: ignore[arg-type]
    )
    assert {it.instance_type: it.on_demand for it in listings} == {
        "BM.GPU2.2": 2_550_000,
        "VM.GPU2.1": 1_275_000,
        "BM.GPU4.8": 24_400_000,
        "VM.GPU.A10.1": 2_000_000,
        "VM.GPU.A10.2": 4_000_000,
        "BM.GPU.A10.4": 8_000_000,
        "BM.GPU.H100.8": 80_000_000,
        "BM.GPU.GB200.4": 64_000_000,
        "BM.GPU.MI355X.8": 68_800_000,
    }
    assert not skipped
    assert server.requests[0].query == {"currencyCode": "USD"}


def test_every_gpu_shape_that_we_know_has_a_part(server: LocalHttp) -> None:
    """A shape without one would keep its old price for ever, and nobody would notice."""
    from tradewind.catalog.refresh.oci import _GPU_PARTS

    server.on(PATH, products(*(item(p, f"GPU - {word}", 1) for p, (word, _) in _GPU_PARTS.items())))
    listings, _ = ask(SOURCE, server)
    assert {it.instance_type for it in listings} == {
        name for name, kind in catalog.load().instance_types("oci").items() if kind.accelerator
    }


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (
            item("B111824", "OCI - NVIDIA AI Enterprise - H100", 2.5),
            "no shape of ours: B111824 OCI - NVIDIA AI Enterprise - H100",
        ),
        (
            item("B109480", "OCI - Compute - GPU - H100T", 10.75),
            "no shape of ours: B109480 OCI - Compute - GPU - H100T",
        ),
        (
            item("B95907", "OCI - Compute - GPU - A10000", 1),
            "B95907 is now called 'OCI - Compute - GPU - A10000'",
        ),
        (item("B95909", "Compute - GPU - A10", 0), "no price in USD"),
        (item("B95909", "Compute - GPU - A10", 2, currency="EUR"), "no price in USD"),
        (item("B95909", "Compute - GPU - A10", 2, model="ANNUAL"), "no price in USD"),
        (item("B95909", "VMware - A10", 16, metric="Node Per Hour"), None),
    ],
)
def test_look_alikes_are_left_out(server: LocalHttp, odd: Any, reason: str | None) -> None:
    listings, skipped = gpu_shapes(server, H100, odd)
    assert [(it.instance_type, it.on_demand) for it in listings] == [("BM.GPU.H100.8", 80_000_000)]
    assert skipped == ({reason: 1} if reason else {})


def test_a_flexible_shape_is_its_ocpus_and_its_memory(server: LocalHttp) -> None:
    server.on(PATH, products(OCPU, MEMORY))
    listings, skipped = ask(SOURCE, server)
    assert {it.accelerator for it in listings} == {""}
    assert not skipped
    shape = "VM.Standard.E4.Flex$"
    assert {it.instance_type: (it.on_demand, it.spot) for it in listings} == {
        f"{shape}_4_16": (74_000, 37_000),
        f"{shape}_8_32": (148_000, 74_000),
        f"{shape}_8_64": (196_000, 98_000),  # 4 OCPU at 0.025, 64 GB at 0.0015
        f"{shape}_16_64": (296_000, 148_000),
        f"{shape}_32_128": (592_000, 296_000),
    }
    server.on(PATH, products(OCPU, H100))
    listings, skipped = ask(SOURCE, server)
    assert [it.instance_type for it in listings] == ["BM.GPU.H100.8"]
    assert skipped == {"a part of VM.Standard.E4.Flex has no price": 5}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"products": []}, "answer.items: expected list"),
        ([H100], "answer: expected dict"),
        (products("x"), r"items\[0\]: expected dict"),
        (products(H100 | {"currencyCodeLocalizations": None}), "currencyCodeLocalizations"),
        (products(item("B98415", "GPU - H100", "10")), "expected int/float, got '10'"),
        (products(item("B98415", "GPU - H100", float("inf"))), "inf is not a price"),
        (products(), "listed nothing that we know"),
        (
            products(item("B111824", "NVIDIA AI Enterprise - H100", 2.5)),
            "listed nothing that we know",
        ),
        ("<html>", "not JSON"),
        (Reply(products(H100), cut=40), "127.0.0.1"),
    ],
)
def test_trouble_is_told(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), products(H100))
    listings, _ = ask(SOURCE, server)
    assert len(listings) == 1
