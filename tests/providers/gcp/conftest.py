"""Google Cloud on the equipment, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.faces.google.control import Control, running
from tests.providers.gcp.machines import KIND, OTHER_ZONE, ZONE, prepare


@pytest.fixture(scope="package")
def equipment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """One server for all of them; tests have stores of their own, and so machines of their own."""
    with running(tmp_path_factory.mktemp("google")) as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.02, queue_s=0.1)
        yield control


@pytest.fixture
def cloud(equipment: Control, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    """As the project's owner."""
    for name, value in equipment.env.items():
        monkeypatch.setenv(name, value)
    prepare(equipment)
    yield equipment
    equipment.dials(lag_s=0)
    equipment.unreachable()
    for zone in (ZONE, OTHER_ZONE):
        equipment.capacity(None, kind=KIND, zone=zone)
    equipment.end_all()
