"""What a machine's disk costs: as it was priced, and as the equipment bills it. On equipment of
its own, whose clock is put forward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.control import Control, running
from tests.lifecycle.builders import SPEC
from tests.providers.conformance import Place
from tests.providers.gcp.machines import argument, footprint, open_gcp, prepare, way
from tradewind.catalog import ratecard
from tradewind.providers.base import Refused
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.machines import order
from tradewind.providers.gcp.machines.types import Kind, kind


@pytest.fixture(scope="module")
def equipment_ahead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("google")) as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.02)
        yield control


@pytest.fixture
def cloud(equipment_ahead: Control, monkeypatch: pytest.MonkeyPatch) -> Control:
    for name, value in equipment_ahead.env.items():
        monkeypatch.setenv(name, value)
    prepare(equipment_ahead)
    return equipment_ahead


def billed_hour(cloud: Control, owner: str, name: str) -> tuple[str, int, int]:
    """Its kind, and in micro-dollars the hour as it was priced, and as it is billed."""
    rented = open_gcp(argument(cloud, footprint(), owner))
    on = CLOUD.priced(footprint(), SPEC, way(instance_type=name), ratecard.card())
    (machine,) = rented.launch(Place(rented, on).request(), 1)
    cloud.advance(1000)
    rented.terminate([machine.machine_id])
    cloud.advance(60)
    bill = cloud.bill()
    (paid,) = [each for each in bill["machines"] if machine.machine_id.endswith(each["name"])]
    (volume,) = [each for each in bill["volumes"] if each["machine"] == paid["id"]]
    hour = round(1e6 * volume["usd"] / (volume["gone"] - volume["made"]) * 3600)
    return volume["kind"], on.disk_price, hour


@pytest.mark.parametrize(
    ("name", "disk"),
    [
        ("g2-standard-4", "pd-balanced"),
        ("a3-highgpu-8g", "pd-balanced"),
        ("a4-highgpu-8g", "hyperdisk-balanced"),
        ("g4-standard-48", "hyperdisk-balanced"),
    ],
)
def test_the_price_is_the_bill(cloud: Control, name: str, disk: str) -> None:
    sort, priced, billed = billed_hour(cloud, f"gs://b/disk-of-{name}", name)
    assert sort == disk
    assert priced == billed


def test_a_faster_disk_would_cost_more(cloud: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "HYPERDISK", {})
    _, priced, billed = billed_hour(cloud, "gs://b/faster", "a4-highgpu-8g")
    assert billed > 2 * priced


def test_a_kind_that_the_type_does_not_take(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    rented = open_gcp(argument(cloud, footprint(), "gs://b/wrong"))

    def wrong(name: str) -> Kind:
        return replace(kind(name), disk_type="pd-balanced")

    monkeypatch.setattr("tradewind.providers.gcp.provider.kind", wrong)
    with pytest.raises(Refused, match="not compatible"):
        rented.launch(Place(rented, way(instance_type="a4-highgpu-8g")).request(), 1)
