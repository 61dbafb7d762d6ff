"""RunPod's GraphQL API, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind import catalog
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.runpod import SOURCE

# As https://docs.runpod.io/references/gpu-types has them: id, display name, memory.
GPUS = {
    "AMD Instinct MI300X OAM": ("MI300X", 192),
    "NVIDIA A100 80GB PCIe": ("A100 PCIe", 80),
    "NVIDIA A100-SXM4-80GB": ("A100 SXM", 80),
    "NVIDIA A100-SXM4-40GB": ("A100 SXM 40GB", 40),
    "NVIDIA A40": ("A40", 48),
    "NVIDIA B200": ("B200", 180),
    "NVIDIA B300 SXM6 AC": ("B300", 288),
    "NVIDIA GeForce RTX 3090": ("RTX 3090", 24),
    "NVIDIA GeForce RTX 4090": ("RTX 4090", 24),
    "NVIDIA GeForce RTX 5090": ("RTX 5090", 32),
    "NVIDIA H100 80GB HBM3": ("H100 SXM", 80),
    "NVIDIA H100 NVL": ("H100 NVL", 94),
    "NVIDIA H100 PCIe": ("H100 PCIe", 80),
    "NVIDIA H200": ("H200 SXM", 141),
    "NVIDIA L4": ("L4", 24),
    "NVIDIA L40": ("L40", 48),
    "NVIDIA L40S": ("L40S", 48),
    "NVIDIA RTX 2000 Ada Generation": ("RTX 2000 Ada", 16),
    "NVIDIA RTX 4000 Ada Generation": ("RTX 4000 Ada", 20),
    "NVIDIA RTX 6000 Ada Generation": ("RTX 6000 Ada", 48),
    "NVIDIA RTX A4000": ("RTX A4000", 16),
    "NVIDIA RTX A4500": ("RTX A4500", 20),
    "NVIDIA RTX A5000": ("RTX A5000", 24),
    "NVIDIA RTX A6000": ("RTX A6000", 48),
    "NVIDIA RTX PRO 4000 Blackwell": ("RTX PRO 4000", 24),
    "NVIDIA RTX PRO 4500 Blackwell": ("RTX PRO 4500", 32),
    "NVIDIA RTX PRO 4500 Blackwell Server Edition": ("RTX PRO 4500 SE", 32),
    "NVIDIA RTX PRO 5000 Blackwell": ("RTX PRO 5000", 48),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": ("RTX PRO 6000", 96),
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": ("RTX PRO 6000 WK", 96),
    "NVIDIA RTX PRO 6000 MIG 1g.24gb": ("PRO 6000 MIG 24GB", 24),
    "NVIDIA RTX PRO 6000 MIG 2g.48gb": ("PRO 6000 MIG 48GB", 48),
}
H100 = "NVIDIA H100 80GB HBM3"


def gpu(name: str = H100, **changes: Any) -> dict[str, Any]:
    shown, memory = GPUS.get(name, (name, 80))
    return {
        "id": name,
        "displayName": shown,
        "memoryInGb": memory,
        "secureCloud": True,
        "communityCloud": True,
        "securePrice": 3.99,
        "communityPrice": 2.69,
        "secureSpotPrice": 1.75,
        "communitySpotPrice": 2.69,
        "maxGpuCount": 8,
        "maxGpuCountSecureCloud": 8,
        "maxGpuCountCommunityCloud": 2,
    } | changes


def centre(name: str, listed: bool = True, **stock: bool) -> dict[str, Any]:
    return {"id": name, "listed": listed} | {
        f"stock{n}": [{"gpuTypeId": H100, "available": stock.get(f"of{n}", False)}]
        for n in (1, 2, 4, 8)
    }


def serve(server: LocalHttp, gpus: Any, centres: Any = ()) -> None:
    def answer(request: Request) -> Any:
        asked = centres if "dataCenters" in request.json["query"] else gpus
        if isinstance(asked, list | tuple):
            key = "dataCenters" if asked is centres else "gpuTypes"
            return {"data": {key: list(asked)}}
        return asked

    server.on("/graphql", answer)


def test_prices_of_both_clouds(server: LocalHttp) -> None:
    serve(server, [gpu()])
    listings, skipped = ask(SOURCE, server)
    assert listings[0] == Listing(
        region="any",
        instance_type="1x_H100-SXM_SECURE",
        accelerator="H100-SXM",
        accelerator_count=1,
        on_demand=3_990_000,  # type: ignore[arg-type]
        spot=1_750_000,  # type: ignore[arg-type]
    )
    assert [(it.region, it.instance_type, it.on_demand, it.spot) for it in listings[1:]] == [
        ("any", "2x_H100-SXM_SECURE", 7_980_000, 3_500_000),
        ("any", "4x_H100-SXM_SECURE", 15_960_000, 7_000_000),
        ("any", "8x_H100-SXM_SECURE", 31_920_000, 14_000_000),
        ("any-community", "1x_H100-SXM_COMMUNITY", 2_690_000, None),
        ("any-community", "2x_H100-SXM_COMMUNITY", 5_380_000, None),
    ]
    assert skipped == {"spot no cheaper than on-demand": 1}
    assert "authorization" not in server.requests[0].headers


def test_stock_by_country(server: LocalHttp) -> None:
    serve(
        server,
        [gpu(communityCloud=False)],
        [
            centre("EU-RO-1"),
            centre("US-KS-2", of1=True),
            centre("US-TX-3"),
            centre("CA-MTL-1"),
            centre("EUR-IS-1", of1=True, of8=True),
            centre("XX-ZZ-1", listed=False, of1=True),
            centre("nowhere", of1=True),
        ],
    )
    listings, _ = ask(SOURCE, server)
    assert {
        (it.region, it.accelerator_count): it.in_stock
        for it in listings
        if it.accelerator_count in (1, 8)
    } == {
        ("CA", 1): False,
        ("IS", 1): True,
        ("RO", 1): False,
        ("US", 1): True,
        ("any", 1): None,
        ("CA", 8): False,
        ("IS", 8): True,
        ("RO", 8): False,
        ("US", 8): False,
        ("any", 8): None,
    }
    assert {it.region for it in listings if it.only_known} == {"any"}


def test_every_gpu_type_of_the_catalog_is_renewed(server: LocalHttp) -> None:
    """A name made otherwise than the catalog's would add a twin and leave the old row to age."""
    serve(server, [gpu(name, maxGpuCountCommunityCloud=8) for name in GPUS])
    listings, _ = ask(SOURCE, server)
    ours = {(it.instance_type, it.accelerator, it.accelerator_count) for it in listings}
    known = catalog.load().instance_types("runpod").values()
    assert {(it.name, it.accelerator, it.accelerator_count) for it in known} <= ours


def test_a_gpu_that_is_new(server: LocalHttp) -> None:
    serve(server, [gpu("NVIDIA Tesla T4", displayName="T4", memoryInGb=16, maxGpuCount=1)])
    listings, _ = ask(SOURCE, server)
    assert (listings[0].instance_type, listings[0].accelerator) == ("1x_T4_SECURE", "T4")


def test_the_key_is_sent_if_there_is_one(server: LocalHttp) -> None:
    serve(server, [gpu()])
    ask(SOURCE, server, {"RUNPOD_API_KEY": "rpa_1"})
    assert {it.headers["authorization"] for it in server.requests} == {"Bearer rpa_1"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"communityPrice": 0}, "not offered in the community cloud"),
        ({"communityPrice": None}, "not offered in the community cloud"),
        ({"communityPrice": -1}, "not offered in the community cloud"),
        ({"communityPrice": 0.5, "communityCloud": False}, "not offered in the community cloud"),
        ({"communityPrice": 0.5, "communityCloud": None}, "not offered in the community cloud"),
    ],
)
def test_a_cloud_that_does_not_offer_it(
    server: LocalHttp, changes: dict[str, Any], reason: str
) -> None:
    serve(server, [gpu(**changes)])
    listings, skipped = ask(SOURCE, server)
    assert {it.region for it in listings} == {"any"}
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (gpu("Imaginary RTX 9999"), "unknown accelerator 'Imaginary RTX 9999'"),
        (gpu("NVIDIA B200 MIG 45GB"), "unknown accelerator 'NVIDIA B200 MIG 45GB'"),
        (gpu(displayName=None), "malformed entry"),
        (gpu(securePrice="3.99"), "malformed entry"),
        (gpu(secureSpotPrice=[]), "malformed entry"),
        (None, "malformed entry"),
    ],
)
def test_one_odd_entry_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, [odd, gpu("NVIDIA L4", communityCloud=False)])
    listings, skipped = ask(SOURCE, server)
    assert {it.accelerator for it in listings} == {"L4"}
    assert skipped[reason] == 1


@pytest.mark.parametrize("limits", [{"maxGpuCount": 3}, {"maxGpuCount": None}, {"maxGpuCount": 0}])
def test_no_more_gpus_than_one_machine_has(server: LocalHttp, limits: dict[str, Any]) -> None:
    serve(server, [gpu(communityCloud=False, maxGpuCountSecureCloud=None, **limits)])
    listings, _ = ask(SOURCE, server)
    most = 2 if limits["maxGpuCount"] == 3 else 1
    assert max(it.accelerator_count for it in listings) == most


@pytest.mark.parametrize(
    "centres",
    [
        {"data": None, "errors": [{"message": "Unauthorized"}]},
        {"data": {"dataCenters": {}}},
        {"data": {"dataCenters": [{"id": 7}]}},
        Reply("nonsense"),
        Reply({"errors": []}, status=400),
    ],
)
def test_prices_hold_without_stock(server: LocalHttp, centres: Any) -> None:
    serve(server, [gpu()], centres)
    listings, skipped = ask(SOURCE, server)
    assert len(listings) == 6
    assert skipped["stock not readable"] == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply({"data": {"gpuTypes": [gpu()]}}, cut=40), "/graphql"),
        (Reply("<html>"), "not JSON"),
        ({"data": None, "errors": [{"message": "Cannot query field"}]}, "Cannot query field"),
        ({"data": {"gpus": []}}, "answer.data.gpuTypes: expected list, got None"),
        ([gpu(securePrice="3.99")], "securePrice: expected int/float"),
        ([gpu(secureCloud=False, communityCloud=False)], "listed nothing that we know"),
        ([], "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    serve(server, answer, [])
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    fine = {"data": {"gpuTypes": [gpu()], "dataCenters": []}}
    server.on("/graphql", Reply(status=503), fine)
    assert len(ask(SOURCE, server)[0]) == 6


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    server.on("/graphql", Reply({"errors": [{"message": "Unauthorized"}]}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*RUNPOD_API_KEY"):
        ask(SOURCE, server, {"RUNPOD_API_KEY": "wrong"})
