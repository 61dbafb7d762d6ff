from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Slurm, running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Slurm]:
    """One for all tests of a process; or one that runs already, whose folder is named by
    TRADEWIND_TEST_SLURM: then a single test need not wait for it."""
    if os.environ.get("TRADEWIND_TEST_SLURM"):
        yield Slurm(Path(os.environ["TRADEWIND_TEST_SLURM"]))
        return
    folder = Path(tempfile.mkdtemp(prefix="tw-slurm-", dir="/tmp"))  # sockets need short paths
    try:
        with running(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """Without any jobs, before and after."""
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    yield cluster
    cluster.clear()
