from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.ssh.hosts import Hosts, running


@pytest.fixture(scope="package")
def hosts() -> Iterator[Hosts]:
    """Two of them, with four GPUs each; started once."""
    with running(["h1", "h2"], gpus=4) as made:
        yield made
