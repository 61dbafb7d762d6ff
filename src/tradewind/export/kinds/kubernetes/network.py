"""Who reaches the pods of an export."""

from __future__ import annotations

from typing import Any

from tradewind.export.commented import Why
from tradewind.export.kinds.kubernetes.common import Names


def policy(names: Names, ingress: Why) -> dict[str, Any]:
    """Nobody but those: rules by which others come in."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(),
        "spec": {
            "podSelector": {"matchLabels": names.labels},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }
