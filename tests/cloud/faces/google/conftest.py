from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.faces.google.control import Control, running


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("google"), bodies="none") as control:
        yield control


@pytest.fixture
def cloud(server: Control) -> Iterator[Control]:
    server.dials(operation_s=0.02, pending_s=0, shutting_down_s=0, queue_s=0.05, lag_s=0)
    yield server
    server.dials(bulk_says_why=True, storage_fails_every=0)
    server.unreachable()
    server.end_all()
