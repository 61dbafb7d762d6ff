"""Whether a node suits a pod and has room for it, and the words for what it lacks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from tests.cloud.faces.kubernetes.quantities import Amounts, add, amounts
from tests.cloud.faces.kubernetes.selectors import expression
from tests.cloud.faces.kubernetes.store import Key, Obj

_OVER = ("Succeeded", "Failed")


class Room:
    """What of a node is left."""

    def __init__(self, node: Obj) -> None:
        self.set(node)
        self.pods: dict[Key, Amounts] = {}
        self.used: Amounts = {}

    def set(self, node: Obj) -> None:
        self.node = node
        status = node.get("status") or {}
        self.whole = amounts(status.get("allocatable") or status.get("capacity"))

    def take(self, key: Key, wanted: Amounts) -> None:
        if key not in self.pods:
            self.pods[key] = wanted
            add(self.used, wanted)

    def free(self, key: Key) -> bool:
        wanted = self.pods.pop(key, None)
        if wanted is None:
            return False
        add(self.used, wanted, -1)
        return True

    def lacks(self, wanted: Amounts, less: Amounts | None = None) -> list[str]:
        found = []
        if len(self.pods) >= self.whole.get("pods", Fraction(110)) and not less:
            found.append("Too many pods")
        for name, value in wanted.items():
            used = self.used.get(name, Fraction(0)) - (less or {}).get(name, Fraction(0))
            if value and used + value > self.whole.get(name, Fraction(0)):
                found.append(f"Insufficient {name}")
        return found


def is_over(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in _OVER


def alike(pod: Obj) -> str:
    spec = pod["spec"]
    parts = [spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations")]
    parts += [each.get("resources") for each in spec["containers"]]
    parts += [each.get("resources") for each in spec.get("initContainers") or ()]
    claims = [each.get("persistentVolumeClaim") for each in spec.get("volumes") or ()]
    return repr([*parts, claims, spec.get("priority", 0), pod["metadata"]["namespace"]])


def tolerated(tolerations: Any, taint: Obj) -> Obj | None:
    """The toleration that suits a taint."""
    for each in tolerations or ():
        if each.get("effect") and each["effect"] != taint["effect"]:
            continue
        if each.get("key") and each["key"] != taint["key"]:
            continue
        exists = each.get("operator") == "Exists"
        if not each.get("key") and not exists:
            continue
        if exists or (each.get("value") or "") == (taint.get("value") or ""):
            return dict(each)
    return None


def unsuited(spec: Obj, node: Obj) -> str:
    """Why a node is nothing for a pod, but for its room."""
    inner, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    if spec.get("nodeName") and spec["nodeName"] != node["metadata"]["name"]:
        return "node(s) didn't match the requested node name"
    if inner.get("unschedulable"):
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if tolerated(spec.get("tolerations"), taint) is None:
            return "node(s) were unschedulable"
    for taint in inner.get("taints") or ():
        if taint["effect"] == "PreferNoSchedule":
            continue
        if tolerated(spec.get("tolerations"), taint) is None:
            return (
                f"node(s) had untolerated taint(s) {{{taint['key']}: {taint.get('value') or ''}}}"
            )
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if affinity is not None and not any(
        _term(each, node) for each in affinity["nodeSelectorTerms"]
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _term(term: Obj, node: Obj) -> bool:
    rules, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not rules and not names:
        return False
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return all(expression(each)(labels) for each in rules) and all(
        expression(each)(fields) for each in names
    )


def summed(reasons: Counter[str], count: int) -> str:
    if count == 0:
        return "no nodes available to schedule pods."
    listed = ", ".join(sorted(f"{many} {reason}" for reason, many in reasons.items()))
    return f"0/{count} nodes are available: {listed}."


def useless(reasons: Counter[str], count: int) -> str:
    room = sum(many for reason, many in reasons.items() if reason.startswith("Insufficient"))
    room = min(room, count)
    parts = []
    if room:
        parts.append(f"{room} No preemption victims found for incoming pod")
    if count - room > 0:
        parts.append(f"{count - room} Preemption is not helpful for scheduling")
    return f"0/{count} nodes are available: {', '.join(parts)}."
