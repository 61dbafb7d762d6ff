from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_http import LocalHttp


@pytest.fixture
def server() -> Iterator[LocalHttp]:
    with LocalHttp() as running:
        yield running
