"""NVIDIA's exporter of GPU metrics, on each node that has GPUs."""

from __future__ import annotations

from typing import Any

from tradewind.export.commented import Why
from tradewind.export.kinds.kubernetes.common import Names

_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.0-distroless"
_PORT = 9400


def exporter(names: Names) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": "gpu-metrics"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": names.metadata("-gpu-metrics"),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(_PORT),
                    },
                },
                "spec": {
                    "automountServiceAccountToken": False,
                    "nodeSelector": {"nvidia.com/gpu.present": "true"},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": "exporter",
                            "image": _IMAGE,
                            "ports": [{"name": "metrics", "containerPort": _PORT}],
                            "securityContext": Why(
                                {"capabilities": {"add": ["SYS_ADMIN"]}},
                                "DCGM reads profiling counters, which nobody else may.",
                            ),
                        }
                    ],
                },
            },
        },
    }
