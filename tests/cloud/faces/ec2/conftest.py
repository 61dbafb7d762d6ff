from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.faces.ec2.control import Control, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ec2"), bodies="none") as control:
        yield control


@pytest.fixture
def cloud(server: Control) -> Iterator[Control]:
    yield server
    server.dials(lag_s=0, pending_s=0.3, speed=1)
    server.capacity(None)
    server.end_all()
