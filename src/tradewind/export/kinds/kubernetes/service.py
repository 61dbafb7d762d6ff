"""A service: a deployment for each pool (or a StatefulSet), and what scales and guards it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tradewind.export import engines, images
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Refused
from tradewind.export.kinds.kubernetes import common, network
from tradewind.export.kinds.kubernetes.common import Names
from tradewind.model.serveplan import ServingPool

_WEIGHTS_GIB = 200
_START_S = 1800
_METRIC = "requests_per_second"
_PROMETHEUS = "http://prometheus-operated.monitoring.svc:9090"
_LEAST = "Of the quietest hour of the plan."
_MOST = "Of its busiest hour, with spares for spot."
_BEHAVIOUR = {
    "scaleDown": Why(
        {
            "stabilizationWindowSeconds": 600,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
        },
        "A replica that is needed again has weights to load first.",
    )
}


def objects(
    asked: Asked, names: Names, settings: Mapping[str, str]
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    serving, _ = asked.service("kubernetes")
    if len({pool.accelerator for pool in serving.pools}) > 1:
        raise Refused(
            "the plan has pools of different accelerators, which one export does not place",
            nearest="limits.accelerators with one of them, or an export for each",
        )
    own = settings["disks"] == "own"
    found: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for number, pool in enumerate(serving.pools):
        each = names if len(serving.pools) == 1 else Names(f"{names.name}-{number + 1}")
        suffix = "" if len(serving.pools) == 1 else f"-{number + 1}"
        made, more = _pool(asked, each, pool, settings, own)
        found |= {path.replace(".yaml", f"{suffix}.yaml"): one for path, one in made.items()}
        notes += more
    if not own:
        found["disk.yaml"] = [
            common.claim(
                names, "-models", _WEIGHTS_GIB, "ReadWriteMany", settings["storage"],
                "Weights of the model, fetched once for all replicas.",
            )
        ]  # fmt: skip
        notes.append("replicas on several nodes read one disk: a StorageClass with ReadWriteMany,"
                     " or --set disks=own")  # fmt: skip
    notes.append(
        "replicas follow the engine's own count of answers, which a Prometheus has to scrape"
        if settings["scaler"] == "keda"
        else f"replicas follow {_METRIC}, which an adapter has to make of the engine's own counters"
        " (docs/export/kubernetes.md)"
    )
    return found, list(dict.fromkeys(notes))


def _pool(
    asked: Asked, names: Names, pool: ServingPool, settings: Mapping[str, str], own: bool
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    _, serve = asked.service("kubernetes")
    known = images.table()
    engine = engines.started(
        pool, serve, known, engines.weights_of(serve, known, settings["model"])
    )
    markets = {m for h in pool.hours for m, n in (("spot", h.spot), ("od", h.on_demand)) if n}
    where = common.place(asked, settings, "spot" in markets, only_spot=markets == {"spot"})
    image, notes = common.image(asked, settings)
    counts = [(hour.on_demand + hour.spot) * pool.replicas for hour in pool.hours]
    least, most = max(min(counts), 1), max(counts)
    probe = {"httpGet": {"path": engine.health, "port": "http"}, "periodSeconds": 10}
    container = {
        "name": "engine",
        "image": image,
        "command": list(engine.command),
        "env": common.plain_variables({"HF_HOME": "/models"}),
        "ports": [{"name": "http", "containerPort": engines.PORT}],
        "startupProbe": Why(
            {**probe, "failureThreshold": _START_S // 10}, "Loading weights may take minutes."
        ),
        "readinessProbe": {**probe, "timeoutSeconds": 5, "failureThreshold": 2},
        "livenessProbe": {**probe, "timeoutSeconds": 10, "failureThreshold": 6},
        "resources": common.resources(where, pool.tp),
        "lifecycle": Why(
            {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 10"]}}},
            "So long it takes until nobody sends it new requests.",
        ),
        "volumeMounts": [{"name": "models", "mountPath": "/models"}, common.SHARED],
    }
    shared = [] if own else [_disk(asked, settings)]
    longest = math.ceil(serve.e2e_s or 60)
    pod = common.pod(
        where, container, shared, Why(longest + 20, "Answers that have begun are finished.")
    )
    template = {"metadata": {"labels": names.labels}, "spec": pod}
    spec: dict[str, Any] = {
        "replicas": Why(least, f"The plan has {least} to {most} by hour; the scaler decides."),
        "selector": {"matchLabels": names.labels},
    }
    if own:
        spec |= {
            "serviceName": names.name,
            "podManagementPolicy": "Parallel",
            "template": template,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "models"},
                    "spec": common.claim_spec(
                        _WEIGHTS_GIB, "ReadWriteOnce", settings["storage"],
                        "Weights of the model, a copy for each replica.",
                    ),
                }
            ],
        }  # fmt: skip
    else:
        spec |= {
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": template,
        }
    kind = "StatefulSet" if own else "Deployment"
    found = {
        "service.yaml": [
            {"apiVersion": "apps/v1", "kind": kind, "metadata": names.metadata(), "spec": spec},
            _front(names),
        ],
        "scaling.yaml": [
            _asking(names, kind, pool, least, most, engine.answered, settings["prometheus"])
            if settings["scaler"] == "keda"
            else _scaler(names, kind, pool, least, most),
            _budget(names),
        ],
        "network.yaml": [_network(names)],
    }
    return found, [*where.notes, *notes]


def _disk(asked: Asked, settings: Mapping[str, str]) -> dict[str, Any]:
    claim = f"{Names.of(asked).name}-models"
    return {"name": "models", "persistentVolumeClaim": {"claimName": claim}}


def _front(names: Names) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(),
        "spec": {
            "selector": names.labels,
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def _scaler(names: Names, kind: str, pool: ServingPool, least: int, most: int) -> dict[str, Any]:
    each = pool.rate_per_machine / pool.replicas
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": _METRIC},
            "target": {"type": "AverageValue", "averageValue": f"{int(each * 1000)}m"},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": names.metadata(),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": names.name},
            "minReplicas": Why(least, _LEAST),
            "maxReplicas": Why(most, _MOST),
            "metrics": Why([metric], _within(each)),
            "behavior": _BEHAVIOUR,
        },
    }


def _asking(
    names: Names, kind: str, pool: ServingPool, least: int, most: int, counter: str, server: str
) -> dict[str, Any]:
    each = pool.rate_per_machine / pool.replicas
    # Of the pods of this deployment alone: others may serve with the same engine.
    query = f'sum(rate({counter}{{pod=~"{names.name}-.*"}}[2m]))'
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": names.metadata(),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": names.name},
            "minReplicaCount": Why(least, _LEAST),
            "maxReplicaCount": Why(most, _MOST),
            "pollingInterval": 30,
            "triggers": Why(
                [
                    {
                        "type": "prometheus",
                        "metricType": "AverageValue",
                        "metadata": {
                            "serverAddress": server or _PROMETHEUS,
                            "query": query,
                            "threshold": f"{each:.2f}",
                        },
                    }
                ],
                _within(each),
            ),
            "fallback": Why(
                {"failureThreshold": 4, "replicas": most},
                "Where Prometheus does not answer: as many as the busiest hour needs.",
            ),
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _BEHAVIOUR}},
        },
    }


def _within(each: float) -> str:
    return f"Within the targets a replica does {each:.2f} requests a second."


def _budget(names: Names) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": names.labels}},
    }


def _network(names: Names) -> dict[str, Any]:
    anyone = {"from": [{"podSelector": {}}], "ports": [{"port": engines.PORT}]}
    return network.policy(
        names, Why([anyone], "Pods of its own namespace, to the engine's port alone.")
    )
