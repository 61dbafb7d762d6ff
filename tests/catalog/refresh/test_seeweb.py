"""Seeweb's plans and the euro's rate, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.catalog.refresh.test_ecb import BANK, rates
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.seeweb import SOURCE

PATH = "/ecs/v2/plans"


def plan(name: Any = "ECS1GPU7", price: Any = 0.85, **more: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "name": name,
        "cpu": "8",
        "ram": "32768",
        "disk": "500",
        "gpu": "1",
        "gpu_label": "L40s 48GB",
        "hourly_price": price,
        "montly_price": 620.5,
        "windows": False,
        "host_type": "ECS",
        "available": True,
        "available_regions": [{"id": 1, "location": "it-fr2", "description": "Frosinone"}],
    } | more


def serve(server: LocalHttp, *plans: Any) -> None:
    server.on(PATH, {"status": "ok", "plans": list(plans)})
    server.on(BANK, rates("1.16"))


def asked(server: LocalHttp) -> tuple[list[Listing], Any]:
    return ask(SOURCE, server, {"SEEWEB_API_TOKEN": "tok", "TRADEWIND_ECB_URL": server.url + BANK})


def test_euros_become_dollars(server: LocalHttp) -> None:
    serve(server, plan(), plan("ECS2GPU3", 1.98, gpu="2", gpu_label="A100 80GB"))
    listings, skipped = asked(server)
    assert listings[0] == Listing(
        region="it-fr2",
        instance_type="ECS1GPU7",
        accelerator="L40S",
        accelerator_count=1,
        vcpus=8,
        memory_gb=32,
        on_demand=986_000,  # type: ignore[arg-type]
    )
    assert (listings[1].accelerator, listings[1].on_demand) == ("A100-80GB-PCIe", 2_296_800)
    assert not skipped
    assert server.requests[-1].headers["x-apitoken"] == "tok"


def test_every_region_once(server: LocalHttp) -> None:
    places = [{"location": "it-mi2"}, {"location": "it-fr2"}, {"location": "it-mi2 "}]
    serve(server, plan(available_regions=places))
    listings, _ = asked(server)
    assert [it.region for it in listings] == ["it-fr2", "it-mi2"]


@pytest.mark.parametrize("gpus", ["0", None])
def test_a_plan_without_a_gpu_is_renewed_not_collected(server: LocalHttp, gpus: Any) -> None:
    ours, other = (plan(name, 0.019, gpu=gpus, gpu_label=None) for name in ("eCS1", "eCS99"))
    serve(server, ours, other)
    (listing,), skipped = asked(server)
    assert (listing.accelerator, listing.accelerator_count) == ("", 0)
    assert (listing.instance_type, listing.on_demand) == ("eCS1", 22_040)
    assert skipped == {"CPU-only plan": 1}


@pytest.mark.parametrize("regions", [[], None])
def test_a_plan_that_names_no_region(server: LocalHttp, regions: Any) -> None:
    serve(server, plan(available_regions=regions))
    (listing,), _ = asked(server)
    assert listing.region == "any"


@pytest.mark.parametrize(
    ("label", "accelerator"),
    [
        ("RTX PRO 6000 96GB", "RTX-PRO-6000"),
        ("H200 141GB", "H200"),
        ("A30", "A30"),
        ("RTX 6000 24GB", "Quadro-RTX6000"),
        ("MI300X", "MI300X"),
    ],
)
def test_a_plan_that_is_new(server: LocalHttp, label: str, accelerator: str) -> None:
    serve(server, plan("ECS9GPU99", gpu_label=label))
    (listing,), _ = asked(server)
    assert listing.accelerator == accelerator


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (plan("odd", available=False), "plan no longer sold"),
        (plan("odd", windows=True), "Windows"),
        (plan("odd", 0), "no price"),
        (plan("odd", gpu="65"), "malformed entry"),
        (plan("odd", gpu_label="H100 80GB"), "unknown accelerator 'H100 80GB'"),
        (
            plan("odd", gpu_label="Tenstorrent Grayskull e75"),
            "unknown accelerator 'Tenstorrent Grayskull e75'",
        ),
        (plan("odd", "on request"), "malformed entry"),
        (plan("odd", None), "malformed entry"),
        (plan("odd", gpu="one"), "malformed entry"),
        (plan("odd", ram=None), "malformed entry"),
        (plan("odd", available_regions=["it-fr2"]), "malformed entry"),
        (plan(None), "malformed entry"),
        ("odd", "malformed entry"),
    ],
)
def test_one_odd_plan_costs_nothing_else(server: LocalHttp, odd: Any, reason: str) -> None:
    serve(server, odd, plan())
    (listing,), skipped = asked(server)
    assert listing.instance_type == "ECS1GPU7"
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Reply({"plans": [plan()]}, cut=40), PATH),
        ("<html>", "not JSON"),
        ([], "answer: expected dict"),
        ({"status": "error"}, "answer.plans: expected list, got None"),
        ({"plans": [plan(price="?")]}, "ECS1GPU7.hourly_price: expected a number"),
        ({"plans": []}, "listed nothing that we know"),
    ],
)
def test_an_answer_that_cannot_be_used(server: LocalHttp, answer: Any, says: str) -> None:
    serve(server)
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=says):
        asked(server)


def test_no_price_without_a_rate(server: LocalHttp) -> None:
    serve(server, plan())
    server.on(BANK, rates(day="2026-10-01"))
    with pytest.raises(SourceFailed, match="of 2026-10-01 is not today's rate"):
        asked(server)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    serve(server)
    server.on(PATH, Reply(status=503), {"plans": [plan()]})
    assert asked(server)[0]


def test_a_wrong_key_is_named(server: LocalHttp) -> None:
    serve(server)
    server.on(PATH, Reply({"status": "error"}, status=401))
    with pytest.raises(SourceFailed, match=r"HTTP 401.*\n.*SEEWEB_API_TOKEN"):
        asked(server)
