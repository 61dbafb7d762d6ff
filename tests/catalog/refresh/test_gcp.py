"""GCP: parts priced as the Cloud Billing Catalog does, added up to machines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.gcp import SOURCE
from tradewind.catalog.refresh.gcp_machines import identify

if TYPE_CHECKING:
    from collections import Counter

    from tradewind.catalog.refresh.base import Listing

_COMPUTE = "/v1/services/6F81-5844-456A/skus"
_TPU = "/v1/services/E000-3F24-B8AA/skus"
_KEY = {"GOOGLE_API_KEY": "AIzaExample"}
_AMERICAS = ["us-central1", "us-east1", "us-west1"]
Sku = dict[str, Any]


def _sku(
    description: str,
    price: str,
    usage: str = "OnDemand",
    *,
    group: str = "CPU",
    unit: str = "h",
    regions: list[str] = _AMERICAS,
    currency: str = "USD",
) -> Sku:
    whole, _, decimals = price.partition(".")
    return {
        "name": "services/6F81-5844-456A/skus/02EE-77CE-ACCD",
        "skuId": "02EE-77CE-ACCD",
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": regions,
        "pricingInfo": [
            {
                "summary": "",
                "pricingExpression": {
                    "usageUnit": unit,
                    "displayQuantity": 1,
                    "tieredRates": [
                        {
                            "startUsageAmount": 0,
                            "unitPrice": {
                                "currencyCode": currency,
                                "units": whole,
                                "nanos": int(decimals.ljust(9, "0")),
                            },
                        }
                    ],
                },
                "currencyConversionRate": 1,
                "effectiveTime": "2026-11-14T10:50:40.206Z",
            }
        ],
        "serviceProviderName": "Google",
    }


def _host(family: str, cores: str, memory: str, usage: str = "OnDemand") -> list[Sku]:
    return [
        _sku(f"{family} Instance Core running in Americas", cores, usage),
        _sku(f"{family} Instance Ram running in Americas", memory, usage, unit="GiBy.h"),
    ]


def _gpu(description: str, price: str, usage: str = "OnDemand", **other: Any) -> Sku:
    return _sku(description, price, usage, group="GPU", **other)


def _committed(years: int, parts: dict[str, str]) -> list[Sku]:
    """`for 1 Year` and `for 3 Years`, as Google writes."""
    term = f"for {years} Year{'s' if years > 1 else ''}"
    return [
        _sku(
            f"Commitment v1: {part} in Americas {term}",
            price,
            f"Commit{years}Yr",
            unit="GiBy.h" if part.endswith("Ram") else "h",
        )
        for part, price in parts.items()
    ]


_SSD = _sku("SSD backed Local Storage", "0.08", group="LocalSSD", unit="GiBy.mo")
_A2 = _host("A2", "0.031611", "0.004237")
_A100 = _gpu("Nvidia Tesla A100 GPU running in Americas", "2.933908")


def _ask(
    server: LocalHttp, *skus: Sku, tpu: list[Sku] | None = None
) -> tuple[dict[str, Listing], Counter[str]]:
    """What is listed in us-central1, by type, when these are all the SKUs."""
    server.on(_COMPUTE, {"skus": list(skus), "nextPageToken": ""})
    server.on(_TPU, {"skus": tpu or [_sku("Tpu-v9 Accelerator USA", "1", group="Other")]})
    listings, skipped = ask(SOURCE, server, _KEY)
    return {it.instance_type: it for it in listings if it.region == "us-central1"}, skipped


def _on_demand(found: dict[str, Listing]) -> dict[str, int | None]:
    return {name: it.on_demand for name, it in found.items()}


# -- machines ------------------------------------------------------------------------------------


def test_a_machine_costs_the_sum_of_its_parts_on_every_market(server: LocalHttp) -> None:
    found, _ = _ask(
        server,
        *_A2,
        _A100,
        *_host("Spot Preemptible A2", "0.02", "0.002", "Preemptible"),
        _gpu(
            "Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas",
            "1.7603",
            "Preemptible",
        ),
        *_committed(
            1,
            {
                "A2 Cpu": "0.019915",
                "A2 Ram": "0.002669",
                "Nvidia Tesla A100 GPU running": "1.848",
            },
        ),
        *_committed(
            3,
            {
                "A2 Cpu": "0.011064",
                "A2 Ram": "0.001483",
                "Nvidia Tesla A100 GPU running": "1.0267",
            },
        ),
    )
    one = found["a2-highgpu-1g"]
    assert one.on_demand == 3_673_385  # Google's own page says so too
    assert one.spot == 12 * 20_000 + 85 * 2_000 + 1_760_300
    assert one.reserved_1y == 12 * 19_915 + 85 * 2_669 + 1_848_000
    assert one.reserved_3y == 12 * 11_064 + 85 * 1_483 + 1_026_700
    assert (one.accelerator, one.accelerator_count, one.zone) == ("A100-40GB", 1, "")
    assert found["a2-megagpu-16g"].on_demand == 55_739_504
    assert set(found) == {f"a2-highgpu-{n}g" for n in (1, 2, 4, 8)} | {"a2-megagpu-16g"}


def test_look_alikes_are_other_machines(server: LocalHttp) -> None:
    found, skipped = _ask(
        server,
        _SSD,
        *_host("A3", "0.03", "0.003"),
        *_host("A3Plus", "0.026924", "0.002344"),
        *_host("A3Ultra", "0.02", "0.001"),
        _gpu("Nvidia H100 80GB GPU running in Americas", "9.796551"),
        _gpu("Nvidia H100 80GB Plus GPU running in Americas", "10.344275712"),
        _gpu("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", "4.841121"),
        _gpu(
            "Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas",
            "4.423936",
        ),
        _gpu("H200 141GB GPU running in Americas", "9.3117"),
        *_host("G2", "0.025", "0.003"),
        _gpu("Nvidia L4 GPU running in Americas", "0.56"),
        _gpu("Nvidia L4 Virtual Workstation GPU running in Americas", "0.2"),
        *_host("G4", "0.02", "0.002"),
        _gpu("RTX 6000 96GB running in Americas", "3"),
    )
    disks = 6000 * 80_000 / 730
    assert _on_demand(found) == {
        "a3-highgpu-1g": round(26 * 30_000 + 234 * 3_000 + 9_796_551 + disks / 8),
        "a3-highgpu-2g": round(52 * 30_000 + 468 * 3_000 + 2 * 9_796_551 + disks / 4),
        "a3-highgpu-4g": round(104 * 30_000 + 936 * 3_000 + 4 * 9_796_551 + disks / 2),
        "a3-highgpu-8g": round(208 * 30_000 + 1872 * 3_000 + 8 * 9_796_551 + disks),
        "a3-edgegpu-8g": round(208 * 30_000 + 1872 * 3_000 + 8 * 9_796_551 + disks),
        "a3-megagpu-8g": 93_399_900,  # 93.400713 on Google's page, with more digits of its parts
        "a3-ultragpu-8g": round(224 * 20_000 + 2952 * 1_000 + 8 * 9_311_700 + 2 * disks),
        **{
            f"g2-standard-{n}": n * 25_000 + 4 * n * 3_000 + gpus * 560_000
            for n, gpus in {4: 1, 8: 1, 12: 1, 16: 1, 32: 1, 24: 2, 48: 4, 96: 8}.items()
        },
        **{
            f"g4-standard-{48 * n}": n * (48 * 20_000 + 180 * 2_000 + 3_000_000)
            for n in (1, 2, 4, 8)
        },
    }
    assert skipped["g4-standard-6: fractions of a GPU have prices of their own"] == 1
    assert skipped["a4x-highgpu-4g: nothing tells which parts it is billed for"] == 1
    assert skipped["a GPU or TPU under terms that we do not list"] == 3


def test_the_b200_is_billed_whole_and_not_on_demand(server: LocalHttp) -> None:
    found, skipped = _ask(
        server,
        _gpu("A4 Nvidia B200 (1 gpu slice) running in Americas", "16.11"),
        # Filed as OnDemand by Google.
        _gpu("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "4.9542"),
        _gpu("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", "11.277"),
        _gpu(
            "Commitment v1: A4 Nvidia B200 (1 gpu slice) in Americas for 3 Years", "7", "Commit3Yr"
        ),
    )
    (b200,) = found.values()
    assert (b200.on_demand, b200.spot, b200.reserved_3y) == (None, 8 * 4_954_200, 56_000_000)
    assert skipped["a4-highgpu-8g: not sold on demand"] == 1


def test_gpus_on_n1_hosts_and_machines_without(server: LocalHttp) -> None:
    found, _ = _ask(
        server,
        *_host("N1 Predefined", "0.031611", "0.004237"),
        _sku("Custom Instance Core running in Americas", "9"),
        _gpu("Nvidia Tesla T4 GPU running in Americas", "0.35"),
        _gpu("Nvidia Tesla T4 GPU attached to Sole Tenancy VMs running in Americas", "9"),
        *_committed(
            1, {"Cpu": "0.019915", "Ram": "0.002669", "Nvidia Tesla T4 GPU running": "0.22"}
        ),
        *_host("N2", "0.031611", "0.004237"),
        _sku("N2 Custom Instance Core running in Americas", "9"),
        _sku("C4 Instance Core running in Americas", "0.03465"),
        _sku("C4 Instance Ram running in Americas", "0.003938", unit="GBy.h"),
    )
    assert _on_demand(found) == {
        "n1-standard-8+1xT4": 729_998,
        "n1-standard-16+2xT4": 1_459_996,
        "n1-standard-32+4xT4": 2_919_992,
        "n2-standard-4": 194_236,
        "n2-standard-8": 388_472,
        "n2-standard-16": 776_944,
        "n2-standard-32": 1_553_888,
        "c4-standard-8": round(8 * 34_650 + 30 * 3_938 * 1.073741824),  # its memory is by the GB
    }
    t4 = found["n1-standard-8+1xT4"]
    assert t4.reserved_1y == 8 * 19_915 + 30 * 2_669 + 220_000
    assert (found["n2-standard-8"].accelerator, found["n2-standard-8"].memory_gb) == ("", 32)


def test_tpus_old_and_new(server: LocalHttp) -> None:
    def tpu(description: str, price: str, usage: str = "OnDemand") -> Sku:
        return _sku(description, price, usage, group="TPU")

    spot = "TpuV5e attached to Spot Preemptible VMs running in Americas"
    found, skipped = _ask(
        server,
        tpu("TpuV5e running in Americas", "1.2"),
        tpu(spot, "0.342218", "Preemptible"),
        tpu("Reserved TpuV5p in Americas in Calendar Mode", "2.94"),
        tpu("Capacity Optimized TpuV6e running in Americas", "2.7"),
        tpu("DWS Defined Duration V6e running in Americas", "1.35"),
        tpu("TPU7x running in Americas", "12"),
        tpu("Commitment v1: TpuV5p running in Americas for 3 Years", "1.911", "Commit3Yr"),
        tpu=[
            tpu("Tpu-v2 Accelerator USA", "4.5"),
            tpu("Preemptible Tpu-v2 Accelerator USA", "1.35"),
            tpu("Tpu-v2 Pod Accelerator USA", "6"),
            tpu("Tpu-v2 Pod 1 year commitment USA", "3"),
            tpu("Tpu-v4 Pod Accelerator USA", "12.88"),
        ],
    )
    chips = {n: 1_200_000 * n for n in (1, 4, 8, 16, 32, 64, 128, 256)}
    assert {n: found[f"tpu-v5litepod-{n}"].on_demand for n in chips} == chips
    assert found["tpu-v5litepod-16"].spot == 16 * 342_218
    assert found["tpu-v5p-8"].reserved_3y == 4 * 1_911_000  # named by cores: four chips
    assert found["tpu-v5p-8"].on_demand is None
    assert (found["tpu-v2-8"].on_demand, found["tpu-v2-8"].spot) == (4_500_000, 1_350_000)
    assert found["tpu-v2-32"].on_demand == 24_000_000
    assert found["tpu-v4-8"].on_demand == 12_880_000
    assert not [name for name in found if "v6e" in name or "v3" in name]
    assert skipped["unknown accelerator 'TPU7x'"] == 1
    assert skipped["tpu-v3-8: no region has the prices of its parts"] == 1


def test_no_price_lacks_a_part(server: LocalHttp) -> None:
    core, memory = _A2
    here = {**core, "serviceRegions": ["us-central1"]}
    a100_80 = _gpu("Nvidia Tesla A100 80GB GPU running in Americas", "3.9")
    found, skipped = _ask(server, here, memory, _A100, a100_80)
    regions = {it.region for it in ask(SOURCE, server, _KEY)[0]}
    assert set(found) == {f"a2-highgpu-{n}g" for n in (1, 2, 4, 8)} | {"a2-megagpu-16g"}
    assert regions == {"us-central1"}
    missing = "a2-highgpu-1g, on_demand: a region has no price of A2 Instance Core"
    assert skipped[missing] == 2
    missing = "a2-ultragpu-1g, on_demand: a region has no price of SSD backed Local Storage"
    assert skipped[missing] == 1


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (_gpu(_A100["description"], "0"), "price is zero"),
        (_gpu(_A100["description"], "2.5", currency="EUR"), "price in EUR"),
        (_gpu(_A100["description"], "2.5", unit="mo"), "price per mo where we expected hour"),
        (_A100 | {"pricingInfo": []}, "SKU without a price"),
        (
            _gpu("Nvidia Tesla A100 GPU running in Iowa", "2.5"),
            "two prices for one part in one region: the higher is kept",
        ),
    ],
)
def test_skus_that_cannot_be_taken_at_their_word(server: LocalHttp, odd: Sku, reason: str) -> None:
    for skus in ((*_A2, _A100, odd), (odd, *_A2, _A100)):
        found, skipped = _ask(server, *skus)
        assert found["a2-highgpu-1g"].on_demand == 3_673_385
        assert skipped[reason] in (1, 3)


@pytest.mark.parametrize(
    ("description", "usage"),
    [
        ("Nvidia Tesla A100 GPU running in Americas", "Commit"),  # five years
        ("Nvidia Tesla A100 GPU running in Americas", "Preemptible"),
        ("Nvidia Tesla A100 GPU in Calendar Mode", "OnDemand"),
        ("Commitment v1: A2 Cpu in Americas for 1 Year", "OnDemand"),
        ("A2 Cpu in Americas", "OnDemand"),
        ("A2 Instance Core running in Americas", "Commit1Yr"),
        (
            "Committed Use Discount Premium for E2 Instance Core running in Paris",
            "CmtCudPremium1Yr",
        ),
        ("Sole Tenancy Premium for N2 Instance Core running in Paris", "OnDemand"),
        ("Spot Preemptible N2 Custom Instance Core running in Paris", "Preemptible"),
        ("N2D AMD Instance Core running in Paris", "OnDemand"),
        ("C4D Instance Local SSD running in Paris", "OnDemand"),
        ("Network Vpn Internet Egress from Americas to Africa", "OnDemand"),
    ],
)
def test_what_is_no_part_of_a_machine(description: str, usage: str) -> None:
    assert identify(description, usage) is None


@pytest.mark.parametrize(
    ("description", "usage", "part", "price_of"),
    [
        ("SSD backed Local Storage in Paris", "OnDemand", "SSD backed Local Storage", "on_demand"),
        (
            "SSD backed Local Storage attached to Spot Preemptible VMs in Paris",
            "OnDemand",
            "SSD backed Local Storage",
            "spot",
        ),
        (
            "Commitment v1: Local SSD in Paris for 3 Years",
            "Commit3Yr",
            "SSD backed Local Storage",
            "reserved_3y",
        ),
        (
            "Nvidia H100 80GB Mega GPU attached to Spot Preemptible VMs running in Tokyo",
            "Preemptible",
            "Nvidia H100 80GB Mega GPU",
            "spot",
        ),
        ("TPU-v2 Accelerator USA", "OnDemand", "Tpu-v2", "on_demand"),
    ],
)
def test_other_spellings_of_a_part(description: str, usage: str, part: str, price_of: str) -> None:
    assert identify(description, usage) == (part, price_of)


# -- the wire ------------------------------------------------------------------------------------


def test_all_pages_are_read_with_the_key_in_a_header(server: LocalHttp) -> None:
    pages = {"": ([_A2[0]], "two"), "two": ([_A2[1]], "three"), "three": ([_A100], None)}

    def answer(request: Request) -> dict[str, Any]:
        skus, token = pages[request.query.get("pageToken", "")]
        return {"skus": skus} | ({"nextPageToken": token} if token else {})

    server.on(_COMPUTE, answer)
    server.on(_TPU, {"skus": [_sku("Tpu-v2 Accelerator USA", "4.5", group="TPU")]})
    listings, _ = ask(SOURCE, server, _KEY)
    assert {"a2-highgpu-1g", "tpu-v2-8"} < {it.instance_type for it in listings}
    assert len(server.requests) == 4
    assert all(it.headers["x-goog-api-key"] == "AIzaExample" for it in server.requests)
    assert all("key" not in it.query and it.query["pageSize"] == "5000" for it in server.requests)


def test_pages_without_an_end(server: LocalHttp) -> None:
    server.on(_COMPUTE, {"skus": [_A100], "nextPageToken": "again"})
    with pytest.raises(SourceFailed, match="page 2 names itself as the next page"):
        ask(SOURCE, server, _KEY)
    server.on(
        _COMPUTE,
        lambda request: {
            "skus": [_A100],
            "nextPageToken": f"{int(request.query.get('pageToken', 0)) + 1}",
        },
    )
    with pytest.raises(SourceFailed, match="more than 50 pages"):
        ask(SOURCE, server, _KEY)


def test_a_server_that_is_busy_once(server: LocalHttp) -> None:
    server.on(_COMPUTE, Reply("busy", status=503), {"skus": [*_A2, _A100]})
    server.on(_TPU, '{"skus": [', {"skus": [_sku("Tpu-v2 Accelerator USA", "4.5")]})
    listings, _ = ask(SOURCE, server, _KEY)
    assert "a2-highgpu-1g" in {it.instance_type for it in listings}


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_wrong_key_is_named(server: LocalHttp, status: int) -> None:
    answer = {"error": {"code": status, "message": "API key not valid.", "status": "INVALID"}}
    server.on(_COMPUTE, Reply(answer, status=status))
    with pytest.raises(SourceFailed, match="API key not valid") as caught:
        ask(SOURCE, server, _KEY)
    assert "GOOGLE_API_KEY" in str(caught.value)
    assert "AIzaExample" not in str(caught.value)


def _with(**other: Any) -> dict[str, Any]:
    return {"skus": [_A100 | other]}


def _priced(**expression: Any) -> dict[str, Any]:
    whole = {"usageUnit": "h", "tieredRates": [{"unitPrice": {"units": "1"}}]} | expression
    return _with(pricingInfo=[{"pricingExpression": whole}])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Reply({"skus": [_A100]}, cut=40), "skus: .*[Ii]ncomplete|skus: .*broken"),
        ("<html>Sorry</html>", "skus: the answer is not JSON"),
        ([], "answer: expected dict"),
        ({"skus": {}}, "answer.skus: expected list"),
        ({"items": []}, "there are no SKUs"),
        ({"skus": [_A100], "nextPageToken": 2}, "answer.nextPageToken: expected str"),
        ({"skus": ["A100"]}, r"skus\[\]: expected dict"),
        (_with(description=None), r"skus\[\].description: expected str"),
        (_with(category="GPU"), "category: expected dict"),
        (_with(serviceRegions="global"), "serviceRegions: expected list"),
        (_with(serviceRegions=[1]), r"serviceRegions\[\]: expected str"),
        (_with(pricingInfo={}), "pricingInfo: expected list"),
        (_priced(tieredRates=None), "tieredRates: expected list"),
        (_priced(tieredRates=[{"unitPrice": 2}]), "unitPrice: expected dict"),
        (_priced(tieredRates=[{"unitPrice": {"units": "two"}}]), "units: expected a whole number"),
        (_priced(tieredRates=[{"unitPrice": {"nanos": "5"}}]), "nanos: expected int"),
        ({"skus": [_sku("A2 Cores of a new kind", "1")]}, "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(_COMPUTE, answer)
    server.on(_TPU, {"skus": [_sku("Something else", "1")]})
    with pytest.raises(SourceFailed) as caught:
        ask(SOURCE, server, _KEY)
    assert re.search(message, caught.value.message)
