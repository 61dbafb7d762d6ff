"""Vultr's plans, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.vultr import SOURCE

CLOUD, METAL = "/v2/plans", "/v2/plans-metal"


def plan(name: str, price: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "ram": 184_320,
        "disk": 1200,
        "disk_count": 1,
        "bandwidth": 10_240,
        "monthly_cost": 1219.0,
        "hourly_cost": price,
        "monthly_cost_preemptible": 1219.0,
        "hourly_cost_preemptible": price,
        "deploy_ondemand": True,
        "deploy_preemptible": False,
        "type": "vcg",
        "locations": ["ewr"],
        "location_cost": [],
    } | changes


def cloud(name: str, price: Any, chip: str, memory: int, **changes: Any) -> dict[str, Any]:
    shown = {"vcpu_count": 16, "gpu_type": chip, "gpu_vram_gb": memory, "gpu_brand": "nvidia"}
    return plan(name, price, **(shown | changes))


L40S = cloud("vcg-l40s-16c-180g-48vram", 1.671, "NVIDIA_L40S", 48)
MI300X = plan(
    "vbm-256c-2048gb-8-mi300x-gpu",
    17.52,
    type="NVMe",
    cpu_threads=256,
    ram=2_321_924,
    disk=3576,
    disk_count=8,
    locations=["ord"],
)


def plans(*listed: Any, key: str = "plans", cursor: str = "") -> dict[str, Any]:
    return {
        key: list(listed),
        "meta": {"total": 99, "links": {"next": cursor, "prev": ""}},
    }


def serve(server: LocalHttp, *listed: Any, metal: tuple[Any, ...] = ()) -> None:
    server.on(CLOUD, plans(*listed))
    server.on(METAL, plans(*metal, key="plans_metal"))


def test_cloud_and_metal_plans_are_listed_by_place(server: LocalHttp) -> None:
    cpu = plan("vc2-1c-1gb", 0.007, type="vc2", vcpu_count=1)
    server.on(CLOUD, plans(cpu, L40S | {"locations": ["ewr", "lax"]}, cursor="bmV4dA=="), plans())
    server.on(METAL, plans(MI300X, key="plans_metal"))
    listings, skipped = ask(SOURCE, server)
    assert listings == [
        Listing(
            region=region,
            instance_type="vcg-l40s-16c-180g-48vram",
            accelerator="L40S",
            accelerator_count=1,
            vcpus=16,
            memory_gb=180,
            local_nvme_gb=1200,
            on_demand=1_671_000,  # type: ignore[arg-type]
        )
        for region in ("ewr", "lax")
    ] + [
        Listing(
            region="ord",
            instance_type="vbm-256c-2048gb-8-mi300x-gpu",
            accelerator="MI300X",
            accelerator_count=8,
            vcpus=256,
            memory_gb=2_321_924 / 1024,
            local_nvme_gb=28_608,
            on_demand=17_520_000,  # type: ignore[arg-type]
        )
    ]
    assert not skipped
    assert [(r.path, r.query.get("type"), r.query.get("cursor")) for r in server.requests] == [
        (CLOUD, "all", None),
        (CLOUD, "all", "bmV4dA=="),
        (METAL, None, None),
    ]


@pytest.mark.parametrize(
    ("listed", "accelerator", "count"),
    [
        (cloud("vcg-a16-2c-16g-4vram", 0.1, "NVIDIA_A16", 4), "A16", 0.25),
        (cloud("vcg-a40-1c-5g-2vram", 0.1, "NVIDIA_A40", 2, gpu_count="1/24"), "A40", 1 / 24),
        (cloud("vcg-a40-96c-480g-192vram", 7.0, "NVIDIA_A40", 192), "A40", 4),
        (cloud("vcg-l40s-x", 13.4, "NVIDIA_L40S", 48, gpu_count=8), "L40S", 8),
        (cloud("vcg-a100-x", 2.4, "NVIDIA_A100_PCIE", 80), "A100-80GB-PCIe", 1),
        (plan("vcg-h100-216c-1914gb-640vram", 23.92, type="vdm"), "H100-SXM", 8),
        (plan("vcg-b200-248c-2826g-1536vram", 30.0, type="vdm"), "B200", 8),
        (plan("vbm-72c-480gb-gh200-gpu", 1.99), "GH200", 1),
        (plan("vbm-64c-2048gb-8-l40-gpu", 13.3), "L40S", 8),
    ],
)
def test_gpus_and_slices_of_them_are_counted(
    server: LocalHttp, listed: Any, accelerator: str, count: float
) -> None:
    serve(server, listed)
    ((listing,), skipped) = ask(SOURCE, server)
    assert listing.accelerator == accelerator
    assert listing.accelerator_count == pytest.approx(count)
    assert not skipped


def test_a_preemptible_price_counts_only_where_it_is_sold(server: LocalHttp) -> None:
    sold = MI300X | {"hourly_cost_preemptible": 14.72, "deploy_preemptible": True}
    serve(
        server, L40S, metal=(sold, sold | {"id": "vbm-1c-1gb-b200-gpu", "deploy_ondemand": False})
    )
    listings, _ = ask(SOURCE, server)
    assert [(it.on_demand, it.spot) for it in listings] == [
        (1_671_000, None),
        (17_520_000, 14_720_000),
        (None, 14_720_000),
    ]


def test_a_place_may_have_its_own_price(server: LocalHttp) -> None:
    costs = {"sao": {"hourly_cost": 2.5, "hourly_cost_preemptible": 2.0}}
    serve(server, L40S | {"locations": ["ewr", "sao"], "location_cost": costs})
    listings, _ = ask(SOURCE, server)
    assert {it.region: it.on_demand for it in listings} == {"ewr": 1_671_000, "sao": 2_500_000}


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (cloud("vcg-z9", 1.0, "ACME_Z9", 8), "unknown accelerator 'Z9'"),
        # Vultr has A100 both as PCIe and as SXM; a plan that does not say which is not guessed.
        (cloud("vcg-a100-12c-120g-80vram", 2.397, "NVIDIA_A100", 80), "unknown accelerator 'A100'"),
        (
            plan("vcg-mi325x-252c-2872g-1536vram", 30.0, type="vdm"),
            "unknown number of GPUs in vcg-mi325x-252c-2872g-1536vram",
        ),
        (L40S | {"hourly_cost": 0}, "price of zero"),
        (L40S | {"hourly_cost": -1}, "price of zero"),
        (L40S | {"locations": [""]}, "a location without a name"),
        (L40S | {"deploy_ondemand": False}, "closed to new machines"),
        (L40S | {"locations": []}, "sold nowhere now"),
    ],
)
def test_what_cannot_be_used_is_left_out(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, odd, metal=(MI300X,))
    listings, skipped = ask(SOURCE, server)
    assert [it.accelerator for it in listings] == ["MI300X"]
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"servers": []}, "answer.plans: expected list"),
        ([], "answer: expected dict"),
        (plans("x"), r"answer.plans\[\]: expected dict"),
        (plans(L40S | {"id": 7}), "id: expected str"),
        (plans(L40S | {"hourly_cost": "1.67"}), "hourly_cost: expected int/float"),
        (plans(L40S | {"hourly_cost": None}), "hourly_cost: expected int/float, got None"),
        (plans(L40S | {"hourly_cost": float("nan")}), "nan is not a price"),
        (plans(L40S | {"locations": None}), "locations: expected list"),
        (plans(L40S | {"disk": "1 TB"}), "disk: expected int/float"),
        (plans(L40S | {"ram": float("inf")}), "ram: inf cannot be"),
        (plans(L40S | {"locations": [["ewr"]]}), "locations.*expected str"),
        (plans(L40S, cursor="again"), "do not end"),
        (plans() | {"meta": "x"}, "answer.meta: expected dict"),
        (plans(), "listed nothing that we know"),
        ("<html>", "not JSON"),
        (Reply(plans(L40S), cut=40), "127.0.0.1"),
    ],
)
def test_trouble_is_told(server: LocalHttp, answer: Any, message: str) -> None:
    serve(server)
    server.on(CLOUD, answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    serve(server)
    server.on(CLOUD, Reply(status=503), plans(L40S))
    listings, _ = ask(SOURCE, server)
    assert len(listings) == 1
