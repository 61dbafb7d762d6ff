"""A Kubernetes cluster of the equipment, for all tests here, and a namespace for each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running as running_cluster
from tests.providers.kubernetes.machines import Rented
from tradewind.providers.kubernetes.client import Client


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running_cluster(tmp_path_factory.mktemp("kubernetes")) as control:
        yield control


@pytest.fixture
def cluster(running: Control, monkeypatch: pytest.MonkeyPatch) -> Control:
    monkeypatch.setattr(Client, "_patience", lambda self, headers: 0.0)
    monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig()))
    return running


@pytest.fixture
def namespace(cluster: Control, request: pytest.FixtureRequest) -> str:
    test = request.node.name
    name = re.sub(r"[^a-z0-9]+", "-", test.lower())[:40].strip("-")
    name += f"-{hashlib.sha256(test.encode()).hexdigest()[:6]}"
    return cluster.namespace(name, {"pod-security.kubernetes.io/enforce": "restricted"})


@pytest.fixture
def rented(cluster: Control, namespace: str) -> Rented:
    return Rented(cluster, namespace)
