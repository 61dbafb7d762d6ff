"""Vast's search of asks, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.vast import SOURCE

PATH = "/api/v0/bundles/"


def offer(
    price: Any = 20.0, bid: Any = 12.0, gpu: Any = "H100 SXM", count: Any = 8, **more: Any
) -> dict[str, Any]:
    return {
        "id": 12345678,
        "gpu_name": gpu,
        "num_gpus": count,
        "gpu_ram": 81559,
        "cpu_cores": 256,
        "cpu_cores_effective": 128,
        "cpu_ram": 2_063_936,
        "dph_base": price,
        "dph_total": price,
        "min_bid": bid,
        "geolocation": "Georgia, US",
        "reliability2": 0.998,
        "verification": "verified",
        "verified": None,  # the filter is honoured, the field is not filled
        "rentable": True,
    } | more


def serve(server: LocalHttp, *offers: Any) -> None:
    """Answers with the offers of the GPU that is asked for, and with those that name none."""

    def answer(request: Request) -> Any:
        wanted = request.json["gpu_name"]["in"]
        odd = [
            it for it in offers if not isinstance(it, dict) or not isinstance(it["gpu_name"], str)
        ]
        return {
            "offers": [it for it in offers if it not in odd and it["gpu_name"] in wanted]
            + (odd if "H100 SXM" in wanted else [])
        }

    server.on(PATH, answer)


def test_asks_become_one_row_per_chip_count_and_place(server: LocalHttp) -> None:
    serve(
        server,
        offer(20.0, 12.0),
        offer(16.5, 9.25, cpu_cores_effective=64, cpu_ram=1_048_576),
        offer(99.0, 30.0),
        offer(17.0, 8.0),
        offer(2.5, 1.0, count=1),
        offer(18.0, 9.0, geolocation="Iceland, IS"),
    )
    listings, _ = ask(SOURCE, server)
    assert listings[2] == Listing(
        region="Iceland/IS/EU",
        instance_type="8x-H100-SXM (median ask)",
        accelerator="H100-SXM",
        accelerator_count=8,
        vcpus=128,
        memory_gb=1007.78125,
        on_demand=18_000_000,  # type: ignore[arg-type]
        spot=9_000_000,  # type: ignore[arg-type]
        in_stock=True,
    )
    one, eight = listings[:2]
    assert (one.instance_type, one.region) == ("1x-H100-SXM (median ask)", "Georgia/US/NA")
    # The lower of the two middle ones, which somebody asks; one dear ask does not matter.
    assert (eight.on_demand, eight.spot) == (17_000_000, 9_250_000)
    assert (eight.vcpus, eight.memory_gb) == (64, 256)


def test_the_name_does_not_depend_on_the_number_of_asks(server: LocalHttp) -> None:
    serve(server, offer())
    few, _ = ask(SOURCE, server)
    serve(server, *[offer(20 + n) for n in range(9)])
    many, _ = ask(SOURCE, server)
    assert [it.instance_type for it in few] == [it.instance_type for it in many]


def test_what_is_asked(server: LocalHttp) -> None:
    serve(server, offer())
    ask(SOURCE, server)
    asked = [request.json for request in server.requests]
    names = [name for it in asked for name in it["gpu_name"]["in"]]
    assert len(set(names)) == len(names) > 30
    assert all(it["verified"] == it["rentable"] == {"eq": True} for it in asked)
    assert all(it["rented"] == {"eq": False} and it["type"] == "on-demand" for it in asked)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("gpu", "memory_mb", "accelerator"),
    [
        ("A100 SXM4", 40960, "A100-40GB"),
        ("A100 SXM4", 81920, "A100-80GB"),
        ("A100 PCIE", 81251, "A100-80GB-PCIe"),
        ("H100 NVL", 95830, "H100-NVL"),
        ("H200 NVL", 143771, "H200-NVL"),
        ("RTX PRO 6000 S", 97887, "RTX-PRO-6000"),
        ("RTX PRO 6000 WS", 97887, "RTX-PRO-6000-WS"),
        ("RTX 6000Ada", 49140, "RTX-6000-Ada"),
        ("Tesla V100", 32768, "V100-32GB"),
        ("Q RTX 6000", 24576, "Quadro-RTX6000"),
    ],
)
def test_the_chip_by_name_and_memory(
    server: LocalHttp, gpu: str, memory_mb: int, accelerator: str
) -> None:
    serve(server, offer(gpu=gpu, gpu_ram=memory_mb))
    (listing,), _ = ask(SOURCE, server)
    assert listing.accelerator == accelerator


@pytest.mark.parametrize(
    ("place", "region"),
    [
        ("Sverdlovsk Oblast, RU", "Sverdlovsk Oblast/RU/EU"),
        (", US", "US/NA"),
        ("CN", "CN/AS"),
        ("Johannesburg, Gauteng, ZA", "Johannesburg/Gauteng/ZA/AF"),
    ],
)
def test_places_as_the_catalog_has_them(server: LocalHttp, place: str, region: str) -> None:
    serve(server, offer(geolocation=place))
    (listing,), _ = ask(SOURCE, server)
    assert listing.region == region


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (offer(0.0), "no price"),
        (offer(None), "no price"),
        (offer(-3.0), "no price"),
        (offer(count=0), "0 GPUs"),
        (offer("20.0"), "malformed ask"),
        (offer(gpu=None), "malformed ask"),
        (offer(gpu_ram=None), "malformed ask"),
        (offer(count=True), "malformed ask"),
        ("ask", "malformed ask"),
        (offer(geolocation=None), "unknown place"),
        (offer(geolocation="Atlantis, QQ"), "unknown place"),
        (offer(gpu="A100 SXM4", gpu_ram=61440), "unknown accelerator 'A100 SXM4'"),
    ],
)
def test_one_odd_ask_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, odd, offer(20.0, count=4))
    (listing,), skipped = ask(SOURCE, server)
    assert (listing.accelerator_count, listing.on_demand) == (4, 20_000_000)
    assert skipped[reason] == 1


@pytest.mark.parametrize("bid", [0, None, 20.0, 25.0])
def test_a_bid_that_is_none(server: LocalHttp, bid: Any) -> None:
    serve(server, offer(20.0, bid))
    (listing,), skipped = ask(SOURCE, server)
    assert listing.spot is None
    assert skipped["spot no cheaper than on-demand"] == 1


def test_bids_of_dear_asks_do_not_lift_spot_above_on_demand(server: LocalHttp) -> None:
    serve(server, offer(10.0, 0), offer(11.0, 0), offer(50.0, 40.0))
    (listing,), _ = ask(SOURCE, server)
    assert (listing.on_demand, listing.spot) == (11_000_000, None)


def test_an_answer_as_long_as_its_limit_is_not_passed_over(server: LocalHttp) -> None:
    serve(server, *[offer(count=1)] * 3000)
    _, skipped = ask(SOURCE, server)
    assert skipped["asks beyond the first 3000, from 'B300' on"] == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply({"offers": []}, cut=5), PATH),
        ("<html>", "not JSON"),
        ([], "answer: expected dict"),
        ({"offers": {"id": 1}}, "answer.offers: expected list"),
        ({"success": False, "error": "invalid_args", "msg": "Invalid query"}, "Invalid query"),
        ({"offers": [{"gpu_name": "H100 SXM", "price": 2}]}, r"offers\[\].num_gpus: expected int"),
        ({"offers": []}, "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), Reply(status=429), {"offers": [offer()]})
    assert ask(SOURCE, server)[0]


def test_a_wrong_key(server: LocalHttp) -> None:
    server.on(PATH, Reply({"msg": "Invalid user key"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*VAST_API_KEY"):
        ask(SOURCE, server, {"VAST_API_KEY": "wrong"})
    assert server.requests[0].headers["authorization"] == "Bearer wrong"
