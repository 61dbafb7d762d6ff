"""Lambda's API on the equipment, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud import server
from tests.cloud.control import Control
from tests.providers.lambda_cloud.machines import KIND, REGION
from tradewind.providers.rest import Rest


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    folder = tmp_path_factory.mktemp("lambda")
    with server.running(folder, "tests.cloud.faces.lambda_cloud", Control) as control:
        control.dials(pending_s=0, shutting_down_s=0)
        yield control


@pytest.fixture
def cloud(running: Control, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    monkeypatch.setattr(Rest, "_patience", lambda self, headers: 0.0)
    yield running
    running.dials(pace_s={}, lag_s=0)
    running.capacity(None, kind=KIND, zone=REGION)
    running.end_all()
