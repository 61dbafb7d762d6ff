"""Verda's instance types and availability, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.verda import SOURCE

PATH = "/v1/instance-types"
ENV = {"VERDA_CLIENT_ID": "me", "VERDA_CLIENT_SECRET": "hush"}


def entry(kind: str = "1A100.22V", gpus: Any = 1, memory: int = 80, **more: Any) -> dict[str, Any]:
    return {
        "id": "07cf5dc1-a5d2-4972-ae4e-d429115d055b",
        "instance_type": kind,
        "model": "A100 80GB",
        "name": "A100 SXM4 80GB",
        "manufacturer": "NVIDIA",
        "description": "Dedicated Hardware Instance",
        "price_per_hour": "1.79",
        "spot_price": "0.8950",
        "dynamic_price": "1.79",
        "currency": "usd",
        "gpu": {"description": f"{gpus}x A100 SXM4 80GB", "number_of_gpus": gpus},
        "gpu_memory": {"description": "GPU RAM", "size_in_gigabytes": memory},
        "cpu": {"description": "22 CPU", "number_of_cores": 22},
        "memory": {"description": "120GB RAM", "size_in_gigabytes": 120},
        "storage": {"description": "dynamic"},
    } | more


CPU = entry("CPU.4V.16G", gpus=0, gpu={"description": "", "number_of_gpus": 0})


def serve_stock(server: LocalHttp, on_demand: Any, spot: Any) -> None:
    def places(request: Request) -> Any:
        return spot if request.query["is_spot"] == "true" else on_demand

    server.on("/v1/oauth2/token", {"access_token": "token1", "expires_in": 3600})
    server.on("/v1/instance-availability", places)


def test_both_prices_without_a_key(server: LocalHttp) -> None:
    server.on(PATH, [CPU, entry()])
    listings, skipped = ask(SOURCE, server)
    assert listings == [
        Listing(
            region="any",
            instance_type="1A100.22V",
            accelerator="A100-80GB",
            accelerator_count=1,
            vcpus=22,
            memory_gb=120,
            on_demand=1_790_000,  # type: ignore[arg-type]
            spot=895_000,  # type: ignore[arg-type]
        )
    ]
    assert skipped == {"CPU-only type": 1}
    (request,) = server.requests
    assert request.query == {"currency": "usd"}


def test_stock_with_a_key(server: LocalHttp) -> None:
    server.on(PATH, [entry(), entry("8H200.141S.176V", gpus=8)])
    serve_stock(
        server,
        [{"location_code": "FIN-01", "availabilities": ["1A100.22V", "gone"]}],
        [
            {"location_code": "FIN-01", "availabilities": []},
            {"location_code": "ICE-01", "availabilities": ["1A100.22V"]},
        ],
    )
    listings, _ = ask(SOURCE, server, ENV)
    assert [(it.instance_type, it.region, it.stock_market, it.in_stock) for it in listings] == [
        ("1A100.22V", "FIN-01", "on_demand", True),
        ("1A100.22V", "ICE-01", "spot", True),
        ("1A100.22V", "any", "on_demand", None),
        ("8H200.141S.176V", "any", "on_demand", False),
    ]
    assert [it.only_known for it in listings] == [False, False, True, False]
    assert server.requests[1].json["client_id"] == "me"
    assert server.requests[2].headers["authorization"] == "Bearer token1"


@pytest.mark.parametrize(
    ("name", "model", "gpus", "memory", "accelerator"),
    [
        ("B300 SXM6 262GB", "B300", 8, 2096, "B300"),
        ("RTX PRO 6000 96GB", "RTX PRO 6000", 2, 192, "RTX-PRO-6000"),
        ("A100 SXM4 40GB", "A100 40GB", 8, 320, "A100-40GB"),
        ("H100 SXM5 80GB", "H100", 4, 320, "H100-SXM"),
        ("Tesla V100", "V100", 2, 32, "V100-16GB"),
    ],
)
def test_a_type_that_is_new(
    server: LocalHttp, name: str, model: str, gpus: int, memory: int, accelerator: str
) -> None:
    server.on(PATH, [entry("new", gpus, memory, name=name, model=model)])
    (listing,), _ = ask(SOURCE, server)
    assert (listing.accelerator, listing.accelerator_count) == (accelerator, gpus)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (entry("odd", price_per_hour="0.00"), "no price"),
        (entry("odd", price_per_hour=None), "no price"),
        (entry("odd", currency="eur"), "price in EUR"),
        (entry("odd", price_per_hour="ask us"), "malformed entry"),
        (entry("odd", gpu={"number_of_gpus": "8"}), "malformed entry"),
        (entry("odd", gpu=[8]), "malformed entry"),
        (entry("odd", gpus=-8), "malformed entry"),
        (entry("odd", instance_type=None), "malformed entry"),
        ("odd", "malformed entry"),
        (entry("odd", name="Imaginary", model="X1"), "unknown accelerator 'X1'"),
    ],
)
def test_one_odd_entry_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    server.on(PATH, [odd, entry()])
    (listing,), skipped = ask(SOURCE, server)
    assert listing.instance_type == "1A100.22V"
    assert skipped == {reason: 1}


@pytest.mark.parametrize("spot", [None, "0", "1.79", "2.00"])
def test_a_spot_price_that_is_none(server: LocalHttp, spot: Any) -> None:
    server.on(PATH, [entry(spot_price=spot)])
    (listing,), _ = ask(SOURCE, server)
    assert (listing.on_demand, listing.spot) == (1_790_000, None)


@pytest.mark.parametrize("places", [{}, [{"location_code": 1}], Reply(status=500), "nonsense"])
def test_prices_hold_without_stock(server: LocalHttp, places: Any) -> None:
    server.on(PATH, [entry()])
    serve_stock(server, places, places)
    (listing,), skipped = ask(SOURCE, server, ENV)
    assert listing.in_stock is None
    assert skipped == {"stock not readable": 1}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply([entry()], cut=40), PATH),
        ("<html>", "not JSON"),
        ({"instance_types": []}, "answer: expected list"),
        ([{"type": "1A100.22V"}], "instance_type: expected str, got None"),
        ([entry(price_per_hour="?")], r"1A100.22V.price_per_hour: .* is not a price"),
        ([CPU], "listed nothing that we know"),
        ([], "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=says):
        ask(SOURCE, server)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), [entry()])
    assert ask(SOURCE, server)[0]


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    server.on(PATH, [entry()])
    server.on("/v1/oauth2/token", Reply({"code": "unauthorized_request"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*VERDA_CLIENT_SECRET") as caught:
        ask(SOURCE, server, ENV)
    assert "hush" not in str(caught.value)
