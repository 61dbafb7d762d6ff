"""DigitalOcean's sizes, over HTTP."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Listing
from tradewind.catalog.refresh.digitalocean import SOURCE

PATH = "/v2/sizes"


def size(slug: str, price: Any, gpus: tuple[int, str, int] | None = None, **changes: Any) -> Any:
    """`gpus`: how many, which, and the memory of all of them, as the API counts it."""
    made: dict[str, Any] = {
        "slug": slug,
        "memory": 245_760,
        "vcpus": 20,
        "disk": 720,
        "transfer": 15.0,
        "price_monthly": 2522.16,
        "price_hourly": price,
        "regions": ["nyc2", "tor1"],
        "available": True,
        "description": "GPU",
    }
    if gpus:
        count, model, memory = gpus
        vram = {"amount": memory, "unit": "gib"}
        made["gpu_info"] = {"count": count, "model": model, "vram": vram}
    return made | changes


H100 = size("gpu-h100x1-80gb", 3.39, (1, "nvidia_h100", 80))


def sizes(*listed: Any, more: bool = False) -> dict[str, Any]:
    # As the API does, the link names the public host: nobody must follow it there.
    links = {"pages": {"next": "https://api.digitalocean.invalid/v2/sizes?page=2"}} if more else {}
    return {"sizes": list(listed), "links": links, "meta": {"total": len(listed)}}


def asked(server: LocalHttp) -> tuple[list[Listing], Counter[str]]:
    return ask(SOURCE, server, {"DIGITALOCEAN_TOKEN": "dop_v1_x"})


def test_sizes_are_listed_in_the_regions_that_have_them(server: LocalHttp) -> None:
    server.on(
        PATH,
        sizes(H100, size("s-1vcpu-1gb", 0.00893), more=True),
        sizes(
            size("gpu-mi300x8-1536gb", 15.92, (8, "amd_mi300x", 1536), regions=["atl1"]),
            size("gpu-6000adax1-48gb", 1.57, (1, "nvidia_rtx6000_ada", 48), regions=["tor1"]),
            size("gpu-v100x2-32gb", 1.1, (2, "nvidia_v100", 32), regions=["ams3"]),
        ),
    )
    listings, skipped = asked(server)
    assert listings[0] == Listing(
        region="nyc2",
        instance_type="gpu-h100x1-80gb",
        accelerator="H100-SXM",
        accelerator_count=1,
        vcpus=20,
        memory_gb=240,
        on_demand=3_390_000,  # type: ignore[arg-type]
        in_stock=True,
    )
    assert [(it.region, it.accelerator, it.accelerator_count, it.on_demand) for it in listings] == [
        ("nyc2", "H100-SXM", 1, 3_390_000),
        ("tor1", "H100-SXM", 1, 3_390_000),
        ("atl1", "MI300X", 8, 15_920_000),
        ("tor1", "RTX-6000-Ada", 1, 1_570_000),
        ("ams3", "V100-16GB", 2, 1_100_000),
    ]
    assert not skipped
    assert [r.query["page"] for r in server.requests] == ["1", "2"]
    assert {r.headers["authorization"] for r in server.requests} == {"Bearer dop_v1_x"}


def test_a_spot_size_has_a_spot_price_only(server: LocalHttp) -> None:
    spot = size("gpu-b300x8-2304gb-spot", 31.2, (8, "nvidia_b300", 2304), regions=["atl1"])
    server.on(PATH, sizes(spot, size("gpu-h100x1-80gb-spot", 1.2, (1, "nvidia_h100", 80))))
    listings, _ = asked(server)
    assert (listings[0].accelerator, listings[0].accelerator_count) == ("B300", 8)
    assert (listings[0].on_demand, listings[0].spot) == (None, 31_200_000)
    assert listings[0].stock_market == "spot"
    assert listings[1].accelerator == "H100-SXM"  # what we know of the size without -spot


def test_a_size_without_regions_is_sold_out(server: LocalHttp) -> None:
    gone = size("gpu-l40sx1-48gb", 1.57, (1, "nvidia_l40s", 48), regions=[])
    server.on(PATH, sizes(H100 | {"regions": []}, gone))
    listings, skipped = asked(server)
    assert [(it.region, it.in_stock, it.on_demand) for it in listings] == [
        ("any", False, 3_390_000)
    ]
    assert skipped == {"sold out everywhere, and new to us": 1}


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (size("gpu-z9x1", 1.0, (1, "acme_z9", 10)), "unknown accelerator 'acme_z9'"),
        # One H100 may be SXM or PCIe: a size we do not know is not guessed.
        (size("gpu-h100x2", 1.0, (2, "nvidia_h100", 160)), "unknown accelerator 'nvidia_h100'"),
        (size("gpu-l40sx0", 1.0, (0, "nvidia_l40s", 48)), "unknown accelerator 'nvidia_l40s'"),
        (size("gpu-l40sx1-48gb", 0.0, (1, "nvidia_l40s", 48)), "price of zero"),
        (size("gpu-l40sx1-48gb", None, (1, "nvidia_l40s", 48)), "malformed size"),
        (
            size("gpu-l40sx1-48gb", 1.57, (1, "nvidia_l40s", 48), available=False),
            "closed to new Droplets",
        ),
    ],
)
def test_what_cannot_be_used_is_left_out(server: LocalHttp, odd: Any, reason: str) -> None:
    server.on(PATH, sizes(odd, H100))
    listings, skipped = asked(server)
    assert {it.instance_type for it in listings} == {"gpu-h100x1-80gb"}
    assert skipped == {reason: 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"droplets": []}, "answer.sizes: expected list"),
        ([], "answer: expected dict"),
        (sizes("x"), r"sizes\[\]: expected dict"),
        (sizes(H100 | {"slug": None}), "slug: expected str"),
        (
            sizes(H100 | {"price_hourly": "3.39"}),
            "gpu-h100x1-80gb.price_hourly: expected int/float",
        ),
        (sizes(H100 | {"regions": "nyc2"}), "regions: expected list"),
        (sizes(H100 | {"memory": "240 GB"}), "memory: expected int"),
        (sizes(size("gpu-x", 1.0, gpu_info=[1])), "gpu_info: expected dict"),
        (sizes(), "listed nothing that we know"),
        (sizes(H100, more=True), "do not end"),
        ("<html>", "not JSON"),
        (Reply(sizes(H100), cut=40), "127.0.0.1"),
    ],
)
def test_trouble_is_told(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(PATH, answer)
    with pytest.raises(SourceFailed, match=message):
        asked(server)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_named(server: LocalHttp, status: int) -> None:
    server.on(PATH, Reply({"id": "unauthorized"}, status=status))
    with pytest.raises(SourceFailed, match="DIGITALOCEAN_TOKEN") as caught:
        asked(server)
    assert "dop_v1_x" not in str(caught.value)


def test_a_passing_fault_is_asked_again(server: LocalHttp) -> None:
    server.on(PATH, Reply(status=503), sizes(H100))
    listings, _ = asked(server)
    assert len(listings) == 2
