"""Manifests of `export kubernetes` before an API server, dry: that of the equipment, or a real one
where the environment names it (tests/clusters.py), which has all kinds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.clusters import Cluster, Equipment
from tests.export import asking
from tradewind.export import making

pytestmark = pytest.mark.system

KINDS = {
    "Job": "jobs", "Service": "services", "PersistentVolumeClaim": "persistentvolumeclaims",
    "NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses",
    "Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "PodDisruptionBudget": "poddisruptionbudgets",
}  # fmt: skip
TRAINED = {"Job", "PersistentVolumeClaim", "NetworkPolicy", "PriorityClass"}
"""The equipment knows them, and not what serves."""


def tried(cluster: Cluster, each: dict[str, Any]) -> tuple[int, Any]:
    version, kind = each["apiVersion"], each["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = "" if kind == "PriorityClass" else "/namespaces/default"
    query = "dryRun=All&fieldValidation=Strict"
    return cluster.ask("POST", f"{root}{space}/{KINDS[kind]}?{query}", each)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("pretrain-1.3b", {"metrics": "dcgm", "labels": "eks"}),
        ("continue-70b-eu", {"labels": "gke", "zone": "europe-west1-b"}),
        ("tiny-gpt", {"resource": "nvidia.com/mig-1g.10gb"}),
        ("serve-chat", {"labels": "aks"}),
        ("serve-chat", {"disks": "own", "storage": "premium"}),
    ],
)
def test_it_takes_each_object(cluster: Cluster, name: str, settings: dict[str, str]) -> None:
    made = making.made("kubernetes", asking.example(name), settings).files
    texts = [file.text for path, file in made.items() if path != "kustomization.yaml"]
    objects = [each for text in texts for each in yaml.safe_load_all(text)]
    taken = set()
    for each in objects:
        status, answer = tried(cluster, each)
        if status == 404 and isinstance(cluster, Equipment) and each["kind"] not in TRAINED:
            continue
        assert status == 201, (each["kind"], answer)
        taken.add(each["kind"])
        status, _ = tried(cluster, {**each, "surely_not": 1})
        assert status in (400, 422), each["kind"]
    assert "NetworkPolicy" in taken
    assert ("Job" in taken) is (name != "serve-chat")
