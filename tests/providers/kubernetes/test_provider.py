"""Pods as machines, on equipment that has a scheduler, Jobs and lost answers."""

from __future__ import annotations

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.providers.conformance import Conformance, Place
from tests.providers.kubernetes.builders import a_way
from tests.providers.kubernetes.machines import (
    SMALL,
    argument,
    footprint,
    noted,
    opened,
    opened_patiently,
)


class TestKubernetes(Conformance):
    safety = "token"

    @pytest.fixture
    def place(self, cluster: Control, namespace: str) -> Place:
        made, kubeconfig = footprint(cluster, namespace), str(cluster.kubeconfig())
        owner = f"s3://b/{namespace}"
        for each in (owner, owner + "-2"):
            noted(cluster, namespace, each)
        given = argument(kubeconfig, made, owner)
        return Place(
            opened_patiently(given),
            a_way(layout=SMALL),
            others=opened_patiently(argument(kubeconfig, made, owner + "-2")),
            again=lambda: opened(given),
            client=("tests.providers.kubernetes.machines:opened_patiently", given),
            crashes=16,
        )
