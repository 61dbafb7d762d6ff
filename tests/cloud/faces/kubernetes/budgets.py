"""Eviction, and the budgets that refuse it.

Known lies: a budget's numbers are counted when they are asked for, from the pods that are Ready.
"""

from __future__ import annotations

import math
from typing import Any

from tests.cloud.faces.kubernetes.cluster import Cluster, condition, is_true
from tests.cloud.faces.kubernetes.problems import Problem
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import BUDGETS, PODS
from tests.cloud.faces.kubernetes.selectors import selector
from tests.cloud.faces.kubernetes.store import Obj, key_of

_OVER = ("Succeeded", "Failed")


class Evictions:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry = cluster, registry

    def evict(self, pod: Obj, options: DeleteOptions | None = None) -> None:
        phase = pod["status"].get("phase")
        if phase not in (*_OVER, "Pending") and not pod["metadata"].get("deletionTimestamp"):
            for budget in self._cluster.store.all(BUDGETS, pod["metadata"]["namespace"]):
                if selector(budget["spec"].get("selector"))(pod["metadata"].get("labels") or {}):
                    self._check(budget)
        if options is not None and options.dry:
            return

        def act(new: Obj) -> None:
            at, words = self._cluster.stamp(), "Eviction API: evicting"
            reason = "EvictionByEvictionAPI"
            condition(new["status"], "DisruptionTarget", True, reason, words, at, probed=True)

        marked = self._cluster.change(PODS, pod, act)
        if marked is not None:
            self._registry.delete(PODS, *key_of(marked), options or DeleteOptions())

    def _check(self, budget: Obj) -> None:
        spec, name = budget["spec"], budget["metadata"]["name"]
        chooses = selector(spec.get("selector"))
        every = [
            each
            for each in self._cluster.store.all(PODS, budget["metadata"]["namespace"])
            if chooses(each["metadata"].get("labels") or {})
            and each["status"].get("phase") not in _OVER
        ]
        healthy = sum(
            is_true(each, "Ready") and not each["metadata"].get("deletionTimestamp")
            for each in every
        )
        if spec.get("minAvailable") is not None:
            needed = _scaled(spec["minAvailable"], len(every))
        else:
            needed = len(every) - _scaled(spec.get("maxUnavailable", 0), len(every))
        if healthy - 1 < needed:
            words = (
                f"The disruption budget {name} needs {needed} healthy pods and has {healthy} "
                "currently"
            )
            cause = {"reason": "DisruptionBudget", "message": words}
            raise Problem(
                429,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"causes": [cause]},
            )


def _scaled(value: Any, of: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(of * int(value[:-1]) / 100)
    return int(value)
