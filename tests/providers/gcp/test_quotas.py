"""Which quotas count a machine, and what doctor says of those of TPU VMs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.local_http import LocalHttp, Reply
from tradewind.model.finding import OK, WARNING, Finding
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks.quotas import tpu_checks
from tradewind.providers.gcp.limits.quotas import WORLD, Quota, governing
from tradewind.providers.gcp.setup.calls import Calls

REGION = "us-central1"


def told(**limits: int) -> dict[str, dict[str, Quota]]:
    here = {
        name: Quota(region=REGION, metric=name, limit=limit, used=0)
        for name, limit in limits.items()
    }
    world = here.pop("GPUS_ALL_REGIONS", None)
    return {REGION: here, WORLD: {"GPUS_ALL_REGIONS": world} if world else {}}


def counted(market: str, quotas: Any, **more: Any) -> list[tuple[str, int]]:
    given: dict[str, Any] = {
        "family": "g2",
        "gpu": "nvidia-l4",
        "gpus": 2,
        "cpus": 24,
        "public": False,
    }
    found = governing(quotas, REGION, market, **(given | more))
    return [(quota.metric, amount) for quota, amount in found]


L4 = told(NVIDIA_L4_GPUS=8, PREEMPTIBLE_NVIDIA_L4_GPUS=8, GPUS_ALL_REGIONS=8, IN_USE_ADDRESSES=8)


@pytest.mark.parametrize(
    ("market", "wanted"),
    [
        ("on_demand", [("NVIDIA_L4_GPUS", 2), ("GPUS_ALL_REGIONS", 2)]),
        ("reserved", [("NVIDIA_L4_GPUS", 2), ("GPUS_ALL_REGIONS", 2)]),
        ("spot", [("PREEMPTIBLE_NVIDIA_L4_GPUS", 2)]),
        ("flex_start", [("PREEMPTIBLE_NVIDIA_L4_GPUS", 2)]),
    ],
)
def test_markets(market: str, wanted: list[tuple[str, int]]) -> None:
    assert counted(market, L4) == wanted


def test_an_address_each() -> None:
    assert counted("spot", L4, public=True)[-1] == ("IN_USE_ADDRESSES", 1)


def test_attached_gpus_need_cpus_too() -> None:
    quotas = told(NVIDIA_T4_GPUS=4, CPUS=8, PREEMPTIBLE_CPUS=0)
    more = {"family": "n1", "gpu": "nvidia-tesla-t4", "gpus": 1, "cpus": 8}
    assert counted("on_demand", quotas, **more) == [("NVIDIA_T4_GPUS", 1), ("CPUS", 8)]
    assert counted("spot", quotas, **more) == [("NVIDIA_T4_GPUS", 1), ("CPUS", 8)]


def test_what_is_not_told_counts_nothing() -> None:
    more = {"family": "a4", "gpu": "nvidia-b200", "gpus": 8}
    assert counted("on_demand", L4, **more) == []
    assert counted("on_demand", {}, **more) == []


def metric(name: str, *buckets: tuple[dict[str, str], str]) -> dict[str, Any]:
    kept = [{"dimensions": named, "effectiveLimit": limit} for named, limit in buckets]
    return {"displayName": name, "consumerQuotaLimits": [{"quotaBuckets": kept}]}


def tpu(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Finding]:
    path = "/v1beta1/projects/my-project/services/tpu.googleapis.com/consumerQuotaMetrics"
    with LocalHttp() as server:
        server.on(path, answer)
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE", f"{server.url}/")
        calls = Calls(Google(), "my-project")
        found = list(tpu_checks(calls, ["us-central1-a", "us-east1-d"]))
        (asked,) = server.requests
    assert asked.query["view"] == "FULL"
    return found


def test_tpu_quotas(cloud: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [
        metric("TPU v5 lite pod cores", ({}, "0"), ({"zone": "us-central1-a"}, "16")),
        metric("TPU v6e chips", ({}, "0"), ({"zone": "us-east5-b"}, "64")),
        metric("TPU v4 cores", ({}, "-1")),
        metric("Requests per minute", ({}, "0")),
    ]
    some, none = tpu(monkeypatch, Reply({"metrics": metrics}))
    assert some.level == OK
    assert some.measured == {"TPU v4 cores": 1 << 31, "TPU v5 lite pod cores": 16}
    assert none.level == WARNING
    assert none.what.endswith(": TPU v6e chips")
    assert "project=my-project&service=tpu.googleapis.com" in none.todo


def test_tpu_quotas_that_may_not_be_read(cloud: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "Permission denied"}}
    (only,) = tpu(monkeypatch, Reply(error, 403))
    assert only.level == OK
    assert "service=tpu.googleapis.com" in only.what
