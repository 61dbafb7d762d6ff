"""IBM's Global Catalog, over HTTP: plans, their prices by region, and the shared plan of gen 2."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.ibm import SOURCE

PLANS = "/api/v1/is.instance/plan"
H100 = "gx3d-160x1792x8h100"
PRICES = "/api/v1/plan-h100/pricing/deployment"
V100 = "gx2-8x64x1v100"


def resources(*listed: Any, count: int | None = None) -> dict[str, Any]:
    return {
        "offset": 0,
        "limit": 200,
        "count": len(listed) if count is None else count,
        "resource_count": len(listed),
        "resources": list(listed),
    }


def plan(name: str, key: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "id": key, "kind": "plan", "active": True, "disabled": False} | changes


def metric(
    name: str, usd: Any, unit: str = "INSTANCE_HOURS_MULTI_TENANT", quantity: int = 1
) -> Any:
    def amount(country: str, currency: str, price: Any) -> dict[str, Any]:
        prices = [{"quantity_tier": 1, "price": price}]
        return {"country": country, "currency": currency, "prices": prices}

    return {
        "metric_id": name,
        "charge_unit_name": unit,
        "charge_unit_quantity": quantity,
        "tier_model": "linear_tier",
        # The first row is Germany's, to be paid by accounts there.
        "amounts": [
            amount("DEU", "EUR", 1.0),
            amount("CAN", "USD", 2.0),
            amount("USA", "USD", usd),
        ],
    }


def place(region: str | None, *metrics: Any) -> dict[str, Any]:
    return {"deployment_id": f"plan-h100:{region}", "deployment_region": region, "metrics": metrics}


def h100_in(region: str, usd: Any = 99.6) -> dict[str, Any]:
    return place(
        region,
        metric(f"part-is.instance-hours-dh-{H100}", 0, "INSTANCE_HOURS_DEDICATED_HOST"),
        metric(f"part-is.instance-hours-{H100}", usd),
        metric(f"part-is.spot-{H100}", 24.8965, "SPOT_HOURS"),
        metric("part-is.windows-vcpu", 7.36, "WINDOWS_VCPU_HOURS"),
    )


def serve(server: LocalHttp, *places: Any) -> None:
    server.on(PLANS, resources(plan(H100, "plan-h100")))
    server.on(PRICES, resources(*(places or [h100_in("eu-de")])))


def deployed(server: LocalHttp, name: str, *metrics: Any) -> dict[str, Any]:
    """A deployment of the shared plan, whose prices the server then has."""
    server.on(f"/api/v1/gen2:{name}/pricing", {"deployment_id": name, "metrics": list(metrics)})
    return {"name": name, "id": f"gen2:{name}", "kind": "deployment", "tags": ["is.composite"]}


def gen2(cpu: float, memory: float, gpu: float | None = None, quantity: int = 1) -> list[Any]:
    metrics = [
        metric("part-is.cpu-hours", cpu, "VCPU_HOURS", quantity),
        metric("part-is.ram-hours", memory, "MEMORY_HOURS"),
        metric("part-is.rhel-cpu", 0.5, "RHEL_VCPU_HOURS"),
    ]
    return metrics if gpu is None else [*metrics, metric("part-is.v100", gpu, "V100_HOURS")]


def test_a_profile_with_its_own_plan_is_priced_in_every_region(server: LocalHttp) -> None:
    serve(server, h100_in("eu-de"), h100_in("us-south", 85.0), place("DEFAULT"), place(None))
    listings, skipped = ask(SOURCE, server)
    assert listings[0] == Listing(
        region="eu-de",
        instance_type=H100,
        accelerator="H100-SXM",
        accelerator_count=8,
        on_demand=99_600_000,  # type: ignore[arg-type]
        spot=24_896_500,  # type: ignore[arg-type]
    )
    assert [(it.region, it.on_demand) for it in listings[1:]] == [("us-south", 85_000_000)]
    assert skipped == {"a deployment without region or price": 2}


def test_lists_are_read_to_the_end(server: LocalHttp) -> None:
    every = [plan(f"bx3d-{n}x10", f"plan-{n}") for n in range(250)] + [plan(H100, "plan-h100")]

    def answer(request: Request) -> Any:
        start, limit = int(request.query["_offset"]), int(request.query["_limit"])
        return resources(*every[start : start + limit], count=len(every))

    serve(server)
    server.on(PLANS, answer)
    listings, _ = ask(SOURCE, server)
    assert len(listings) == 1
    # 251 plans in two pages; of CPU-only ones that we have no row for, no price is asked.
    assert [r.path for r in server.requests] == [PLANS, PLANS, PRICES]


def test_a_profile_of_the_second_generation_is_the_sum_of_its_parts(server: LocalHttp) -> None:
    server.on(PLANS, resources(plan("gen2-instance", "gen2"), plan("gen2-zvsi-instance", "z")))
    server.on(
        "/api/v1/gen2/deployment",
        resources(
            deployed(server, f"{V100}-us-south", *gen2(0.3, 0.25, 2.446)),
            deployed(server, f"{V100}-eu-de", *gen2(0.35, 0.3, 2.5)),
            deployed(server, f"{V100}-eu-gb", *gen2(0.35, 0.3)),  # its GPU has no price
            deployed(server, f"{V100}-jp-tok", *gen2(0.35, 0.3, 2.5, quantity=63)),
            deployed(server, f"{V100}-br-sao", *gen2(0.35, 0.3, 2.5)),
            deployed(server, f"{V100}-br-sao", *gen2(0.35, 0.3, 2.6)) | {"id": "gen2:other"},
            {"name": "us-south", "id": "gen2:us-south"},
            {"name": f"{V100}-dh-us-south", "id": "gen2:dh"},
        ),
    )
    server.on("/api/v1/gen2:other/pricing", {"metrics": gen2(0.1, 0.1, 0.1)})
    listings, skipped = ask(SOURCE, server)
    assert [(it.instance_type, it.region, it.on_demand) for it in listings] == [
        (V100, "us-south", 2_996_000),
        (V100, "eu-de", 3_150_000),
    ]
    assert listings[0].accelerator == "V100-16GB"
    assert skipped[f"no price for V100_HOURS of {V100}"] == 1
    assert skipped[f"no price for VCPU_HOURS of {V100}"] == 1
    assert skipped[f"several prices for {V100} in br-sao"] == 1
    assert skipped["no plan for gx3-16x80x1l4"] == 1


def test_a_new_profile_is_read_from_its_name_if_its_chip_is_certain(server: LocalHttp) -> None:
    name, unsure = "gx4-32x256x2mi325x", "gx4-32x256x2h100"
    server.on(PLANS, resources(plan(name, "plan-h100"), plan(unsure, "plan-h100")))
    server.on(PRICES, resources(place("eu-de", metric(f"part-is.instance-hours-{name}", 9.5))))
    listings, skipped = ask(SOURCE, server)
    assert listings == [
        Listing(
            region="eu-de",
            instance_type=name,
            accelerator="MI325X",
            accelerator_count=2,
            vcpus=32,
            memory_gb=256,
            on_demand=9_500_000,  # type: ignore[arg-type]
        )
    ]
    assert skipped == {"unknown accelerator 'h100'": 1}


def test_closed_plans_zero_prices_and_missing_price_lists_are_left_out(server: LocalHttp) -> None:
    serve(server, h100_in("eu-de"), h100_in("us-east", 0))
    server.on(
        PLANS,
        resources(
            plan(H100, "plan-h100"),
            plan("gx3d-160x1792x8h200", "not-there"),
            plan("gx3-16x80x1l4", "plan-l4", active=False),
            plan("gx3-64x320x4l4", "plan-l4", disabled=True),
        ),
    )
    listings, skipped = ask(SOURCE, server)
    assert [(it.region, it.on_demand, it.spot) for it in listings] == [
        ("eu-de", 99_600_000, 24_896_500),
        ("us-east", None, 24_896_500),
    ]
    assert skipped == {"price of zero": 1, "a plan without a price list": 1}


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        (
            PLANS,
            {"resources": {}} | {"resources": "x"},
            "is.instance/plan: resources: expected list",
        ),
        (PLANS, [], "is.instance/plan: answer: expected dict"),
        (PLANS, resources("x"), r"resources\[\]: expected dict"),
        (PLANS, resources(plan(H100, "x") | {"id": None}), "plan.id: expected str"),
        (PLANS, resources(plan("bx2", "x"), count=10**9), "do not end"),
        (PLANS, resources(), "listed nothing that we know"),
        (PLANS, Reply({"message": "not found"}, status=404), "HTTP 404"),
        (PLANS, "<html>", "not JSON"),
        (PRICES, resources(place("eu-de") | {"metrics": {"a": 1}}), "metrics: expected list"),
        (PRICES, resources(place("eu-de", 7)), r"metrics\[\]: expected dict"),
        (PRICES, resources(h100_in("eu-de", "99.6")), "price: expected int/float, got '99.6'"),
        (PRICES, resources(h100_in("eu-de", float("nan"))), "nan is not a price"),
        (PRICES, resources(place("eu-de")), "listed nothing that we know"),
        (PRICES, Reply(resources(h100_in("eu-de")), cut=40), "127.0.0.1"),
    ],
)
def test_trouble_is_told(server: LocalHttp, path: str, answer: Any, message: str) -> None:
    serve(server)
    server.on(path, answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    serve(server)
    server.on(PRICES, Reply(status=503), resources(h100_in("eu-de")))
    listings, _ = ask(SOURCE, server)
    assert len(listings) == 1
