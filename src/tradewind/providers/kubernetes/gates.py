"""Gangs on clusters that have no queue for them: the pods of a leg are made with a scheduling gate,
which is taken away from all of them when all of them fit. Pure.

A gate holds nothing: others may take the nodes between that and the binding, and then the gang
gives back what it has got (waits.PARTLY_S), as it does without gates. What a gang would need that
the nodes there could not give it if they were empty, only an autoscaler can add, and it sees no pod
that has a gate: such gangs are let go.

Kubernetes "Pod Scheduling Readiness".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tradewind.providers.kubernetes.offers.nodes import Node, asked, read, requested

GATE = "tradewind.dev/gang"
Obj = dict[str, Any]
_PODS = "pods"


class Place:
    """A node, and what of it nobody has asked for."""

    def __init__(self, node: Node, left: dict[str, float]) -> None:
        self.node, self.left = node, left

    def takes(self, spec: Mapping[str, Any], needs: Mapping[str, float]) -> bool:
        return (
            all(self.left.get(name, 0.0) >= much - 1e-9 for name, much in needs.items())
            and _chosen(spec, self.node.labels)
            and all(_tolerated(taint, spec) for taint in self.node.taints)
        )

    def give(self, needs: Mapping[str, float]) -> None:
        for name, much in needs.items():
            self.left[name] = self.left.get(name, 0.0) - much


def rooms(
    nodes: Iterable[Obj], pods: Sequence[Obj], gangs: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, bool]]:
    """Of each gang (the uids of its pods that have a gate still), for how many of them there is
    room, and whether it is to be let go. The oldest gang comes first; those that do not fit stand
    in nobody's way."""
    there = [node for node in map(read, nodes) if node.up]
    used = requested(pods)
    places = [Place(node, _left(node, used.get(node.name, {}), pods)) for node in there]
    by_uid = {str(pod["metadata"].get("uid")): pod for pod in pods}
    for pod in sorted((each for each in pods if _is_pending(each)), key=_made):
        _placed(pod, places)
    told: dict[str, tuple[int, bool]] = {}
    known = {name: [by_uid[uid] for uid in uids if uid in by_uid] for name, uids in gangs.items()}
    for name in sorted(known, key=lambda each: min(map(_made, known[each]), default="")):
        gang = known[name]
        if len(gang) < len(gangs[name]):  # some are gone, or in no list yet
            told[name] = (0, False)
            continue
        tried = [Place(each.node, dict(each.left)) for each in places]
        fitting = sum(_placed(pod, tried) for pod in gang)
        if fitting == len(gang):
            places = tried
            told[name] = (fitting, True)
            continue
        empty = [Place(node, _left(node, {}, ())) for node in there]
        told[name] = (fitting, not all(_placed(pod, empty) for pod in gang))
    return told


def has_gate(pod: Obj) -> bool:
    return any(each.get("name") == GATE for each in pod["spec"].get("schedulingGates") or ())


def _left(node: Node, used: Mapping[str, float], pods: Iterable[Obj]) -> dict[str, float]:
    left = {name: much - used.get(name, 0.0) for name, much in node.allocatable.items()}
    left[_PODS] = left.get(_PODS, 110.0) - sum(_is_on(pod, node.name) for pod in pods)
    return left


def _is_on(pod: Obj, node: str) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and (pod.get("spec") or {}).get("nodeName") == node


def _is_pending(pod: Obj) -> bool:
    spec = pod.get("spec") or {}
    goes = pod["metadata"].get("deletionTimestamp")
    return not (spec.get("nodeName") or spec.get("schedulingGates") or goes)


def _made(pod: Obj) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _placed(pod: Obj, places: Iterable[Place]) -> bool:
    spec = pod["spec"]
    needs = {**asked(spec), _PODS: 1.0}
    for place in places:
        if place.takes(spec, needs):
            place.give(needs)
            return True
    return False


def _chosen(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = spec.get("nodeSelector") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or ()
    return not terms or any(
        all(_holds(each, labels) for each in term.get("matchExpressions") or ()) for term in terms
    )


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = str(rule.get("key")), str(rule.get("operator"))
    values = [str(each) for each in rule.get("values") or ()]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (labels.get(key) in values) == (operator == "In")
    return True


def _tolerated(taint: Mapping[str, str], spec: Mapping[str, Any]) -> bool:
    return any(
        each.get("key") in (None, "", taint["key"])
        and each.get("effect") in (None, "", taint["effect"])
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in spec.get("tolerations") or ()
    )
