from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running

_numbers = itertools.count()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("kubernetes"), bodies="none") as control:
        control.dials(job_backoff_s=0.02, gc_every_s=0.05, quarantine_s=0.05, node_lost_s=0.05)
        yield control
        assert control.status()["troubles"] == []


@pytest.fixture
def cluster(server: Control) -> Control:
    return server


@pytest.fixture
def space(cluster: Control) -> str:
    """A namespace of the test's own."""
    return cluster.namespace(f"team-{next(_numbers)}")


@pytest.fixture
def node(cluster: Control) -> Iterator[str]:
    """One of the test's own, which only pods go to that choose it; two GPUs."""
    name = f"own-{next(_numbers)}"
    own = [{"key": "own", "value": name, "effect": "NoSchedule"}]
    cluster.add(name, {"nvidia.com/gpu": "2"}, {"own": name}, own)
    yield name
    if name in cluster.names("nodes"):
        cluster.vanish(name)


@pytest.fixture(scope="package")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """A cluster whose pods are processes, by themselves where that is possible."""
    with running(tmp_path_factory.mktemp("bodies"), bodies="auto") as control:
        control.dials(gc_every_s=0.05, quarantine_s=0.05, node_lost_s=0.05, config_retry_s=0.02)
        yield control
        assert control.status()["troubles"] == []
