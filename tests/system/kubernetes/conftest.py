"""A cluster and a store for the tests of a file, and a namespace of its own for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clusters import Cluster, a_cluster
from tests.system.kubernetes.runs import InCluster, a_namespace, a_store, add_nodes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(tmp_path_factory.mktemp("cluster")) as made:
        add_nodes(made)
        yield made


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with a_store(tmp_path_factory.mktemp("store")) as variables:
        yield variables


@pytest.fixture
def opened(
    cluster: Cluster, s3: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., InCluster]]:
    """A namespace and a store of the test's own, with settings."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    with ExitStack() as stack:
        yield lambda *settings, name=name: stack.enter_context(
            a_namespace(cluster, name, tmp_path, s3, *settings)
        )
