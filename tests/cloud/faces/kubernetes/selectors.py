"""Which objects a selector chooses: by labels as text and as objects, and by fields.

Known lies: the real server knows few fields for each kind (pods: spec.nodeName, status.phase and
some more), and so does this; jobs `status.successful` is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.cloud.faces.kubernetes.problems import bad_request
from tests.cloud.faces.kubernetes.resources import Resource

Chooses = Callable[[Mapping[str, Any]], bool]
_KEY = (
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=|>|<)\s*([A-Za-z0-9_.-]*)\s*")
_THERE = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_FIELDS = {
    "pods": {
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    },
    "nodes": {"spec.unschedulable"},
    "events": {
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "reason",
        "reportingComponent",
        "source",
        "type",
    },
    "jobs.batch": {"status.successful"},
    "namespaces": {"status.phase"},
    "secrets": {"type"},
}


def _clauses(text: str) -> list[str]:
    """Between commas that are not in brackets."""
    found, depth, start = [], 0, 0
    for at, each in enumerate(text):
        depth += (each == "(") - (each == ")")
        if each == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def labels(text: str) -> Chooses:
    clauses = [_clause(each) for each in _clauses(text)] if text.strip() else []
    return lambda found: all(each(found) for each in clauses)


def _clause(text: str) -> Chooses:
    if found := _SET.fullmatch(text):
        key, values = found[1], {each.strip() for each in found[3].split(",")}
        if found[2] == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if found := _EQUAL.fullmatch(text):
        key, sign, value = found[1], found[2], found[3]
        if sign in ("=", "=="):
            return lambda labels: labels.get(key) == value
        if sign == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: _compared(labels.get(key), sign, value)
    if found := _THERE.fullmatch(text):
        key = found[2]
        return (lambda labels: key not in labels) if found[1] else (lambda labels: key in labels)
    raise bad_request(
        f"unable to parse requirement: found '{text.strip()}', expected: identifier, 'in', "
        "'notin', '=', '==', '!='"
    )


def _compared(found: Any, sign: str, value: str) -> bool:
    try:
        left, right = int(found), int(value)
    except (TypeError, ValueError):
        return False
    return left > right if sign == ">" else left < right


def selector(given: Mapping[str, Any] | None) -> Chooses:
    """A LabelSelector: none chooses nothing, an empty one everything."""
    if given is None:
        return lambda _: False
    equal = dict(given.get("matchLabels") or {})
    rules = [expression(each) for each in given.get("matchExpressions") or ()]
    return lambda labels: (
        all(labels.get(k) == v for k, v in equal.items()) and all(each(labels) for each in rules)
    )


def expression(rule: Mapping[str, Any]) -> Chooses:
    key, operator, values = rule["key"], rule["operator"], rule.get("values") or []
    if operator == "In":
        return lambda labels: key in labels and labels[key] in values
    if operator == "NotIn":
        return lambda labels: key not in labels or labels[key] not in values
    if operator == "Exists":
        return lambda labels: key in labels
    if operator == "DoesNotExist":
        return lambda labels: key not in labels
    sign = {"Gt": ">", "Lt": "<"}[operator]
    return lambda labels: _compared(labels.get(key), sign, values[0])


def fields(text: str, resource: Resource) -> Chooses:
    """Of whole objects."""
    known = {"metadata.name", "metadata.namespace"} | _FIELDS.get(resource.qualified, set())
    rules: list[Chooses] = []
    for each in text.split(",") if text.strip() else ():
        found = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", each.strip())
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{each}'")
        if found[1] not in known:
            raise bad_request(
                f'Unable to find "{resource.api_version}, Resource={resource.plural}" that '
                f'match label selector "", field selector "{text}": '
                f"field label not supported: {found[1]}"
            )
        rules.append(_field(found[1], found[3], found[2] != "!="))
    return lambda value: all(each(value) for each in rules)


def _field(path: str, wanted: str, equal: bool) -> Chooses:
    def chooses(value: Mapping[str, Any]) -> bool:
        found: Any = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        text = str(found).lower() if isinstance(found, bool) else str(found or "")
        return (text == wanted) is equal

    return chooses
