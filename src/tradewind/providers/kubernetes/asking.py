"""What setup, doctor and offers ask of a cluster besides: what we may do there, what is installed,
and what cannot be read without failing for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tradewind.base.errors import TradewindError
from tradewind.providers.base import Refused
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.rights import JOBSET, KUEUE, VOLCANO, Right

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
KUEUES = ("v1beta2", "v1beta1")
"""What versions Kueue's releases have, the newer first."""
GROUPS = {JOBSET: "jobset", KUEUE: "kueue", VOLCANO: "volcano", "karpenter.sh": "karpenter"}
Object = dict[str, Any]


def may(
    client: Client, verb: str, group: str, resource: str, namespace: str = "", name: str = ""
) -> bool:
    """As the API server itself says. `resource`: with what is below it, as pods/exec."""
    kind, _, below = resource.partition("/")
    asked = {
        "verb": verb,
        "group": group,
        "resource": kind,
        "subresource": below,
        "namespace": namespace,
        "name": name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
    }
    found = client.create(_REVIEWS, body, Object, f"asking whether {verb} {resource} is allowed")
    return bool((found.get("status") or {}).get("allowed"))


def lacking(client: Client, rights: Iterable[Right], namespace: str = "") -> list[str]:
    """Of these, what we may not: `create jobs.batch`."""
    return [
        f"{verb} {right.shown}"
        for right in rights
        for verb in right.verbs
        if not may(client, verb, right.group, right.resource, namespace)
    ]


def installed(client: Client) -> frozenset[str]:
    """Of what we know how to use: jobset, kueue, volcano, karpenter."""
    told = client.get("/apis", Object, "asking what is installed")
    names = {str(each.get("name")) for each in told.get("groups") or ()}
    return frozenset(known for group, known in GROUPS.items() if group in names)


def version(client: Client) -> str:
    return str(client.get("/version", Object, "asking for its version").get("gitVersion", ""))


def is_refused(error: TradewindError) -> bool:
    """The cluster has answered, and may not be asked that."""
    return isinstance(error, Refused) and error.kind in ("not_allowed", "not_found")


def read(client: Client, path: str, doing: str) -> Object | None:
    """None: it is not there, or we may not see it."""
    try:
        return client.find(path, Object, doing)
    except TradewindError as error:
        if is_refused(error):
            return None
        raise


def listed(client: Client, path: str, doing: str, fields: str = "") -> list[Object] | None:
    """None: not there, or not for us."""
    try:
        return client.all(path, Object, doing, fields=fields)
    except TradewindError as error:
        if is_refused(error):
            return None
        raise


def queues(client: Client, namespace: str) -> list[str]:
    """Kueue's LocalQueues of a namespace that we may see."""
    for version in KUEUES:
        path = f"/apis/{KUEUE}/{version}/namespaces/{namespace}/localqueues"
        found = listed(client, path, "asking for queues")
        if found is not None:
            return [str(each["metadata"]["name"]) for each in found]
    return []
