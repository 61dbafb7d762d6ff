"""What goes when its owner goes: garbage collection, namespaces that end, and what a new namespace
has from its start. Claims are bound at once.

Known lies: the names of resources that keep a namespace from ending are not listed in its
conditions.
"""

from __future__ import annotations

from tests.cloud.faces.kubernetes.admission import usage
from tests.cloud.faces.kubernetes.cluster import Cluster, condition
from tests.cloud.faces.kubernetes.quantities import Amounts, amounts, written
from tests.cloud.faces.kubernetes.registry import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    Registry,
)
from tests.cloud.faces.kubernetes.resources import (
    CLAIMS,
    CONFIGMAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    QUOTAS,
    RESOURCES,
    SERVICEACCOUNTS,
    Resource,
)
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, key_of

_BACKGROUND = DeleteOptions(policy="Background")


class Collector:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self._due: dict[tuple[str, Key, str], Resource] = {}
        self._spaces: dict[str, None] = {}
        self._counted: dict[str, None] = {}

    def told(self, change: Change) -> None:
        meta = change.object["metadata"]
        if change.resource is EVENTS and change.sort == "ADDED":
            if self._is_ending(meta["namespace"]):
                self._spaces[meta["namespace"]] = None
            return
        if change.sort == "DELETED":
            for kind, value in self._store.owned(meta["uid"]):
                self._note(kind, value)
            for each in meta.get("ownerReferences") or ():
                found = self._store.by_uid(each["uid"])
                if found is not None and found[1]["metadata"].get("deletionTimestamp"):
                    self._note(*found)
        elif meta.get("ownerReferences") or meta.get("finalizers"):
            self._note(change.resource, change.object)
        space = meta.get("namespace", "")
        if change.resource is NAMESPACES and change.sort != "DELETED":
            self._spaces[meta["name"]] = None
        elif space:
            if self._is_ending(space):
                self._spaces[space] = None
            if self._store.shelf(QUOTAS).objects:
                self._counted[space] = None
        if change.resource is CLAIMS and change.sort == "ADDED":
            self._cluster.change(CLAIMS, change.object, self._bound)

    def _is_ending(self, space: str) -> bool:
        found = self._store.get(NAMESPACES, "", space)
        return found is not None and bool(found["metadata"].get("deletionTimestamp"))

    def _note(self, resource: Resource, value: Obj) -> None:
        self._due[resource.qualified, key_of(value), value["metadata"]["uid"]] = resource

    def work(self) -> None:
        while self._due:
            (name, key, uid), resource = next(iter(self._due.items()))
            del self._due[name, key, uid]
            value = self._store.get(resource, *key)
            if value is not None and value["metadata"]["uid"] == uid:
                self._collect(resource, value)
        spaces, self._spaces = list(self._spaces), {}
        for each in spaces:
            self._space(each)
        counted, self._counted = list(self._counted), {}
        for each in counted:
            for quota in self._store.all(QUOTAS, each):
                self._cluster.change(QUOTAS, quota, self._used)

    # -- owners ------------------------------------------------------------------------------------

    def _collect(self, resource: Resource, value: Obj) -> None:
        meta = value["metadata"]
        if meta.get("deletionTimestamp"):
            self._going(resource, value)
            return
        owners = meta.get("ownerReferences") or []
        if not owners:
            return
        alive = [each for each in owners if self._store.by_uid(each["uid"]) is not None]
        waiting = [each for each in alive if self._waits(each["uid"])]
        if not alive or (len(waiting) == len(alive) and waiting):
            policy = "Foreground" if waiting and self._store.owned(meta["uid"]) else "Background"
            self._registry.delete(resource, *key_of(value), DeleteOptions(policy=policy))
        elif len(alive) < len(owners):
            self._keep(resource, value, [each["uid"] for each in alive])

    def _waits(self, uid: str) -> bool:
        found = self._store.by_uid(uid)
        meta = found[1]["metadata"] if found else {}
        return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())

    def _keep(self, resource: Resource, value: Obj, uids: list[str]) -> None:
        def act(new: Obj) -> None:
            kept = [each for each in new["metadata"]["ownerReferences"] if each["uid"] in uids]
            if kept:
                new["metadata"]["ownerReferences"] = kept
            else:
                del new["metadata"]["ownerReferences"]

        self._cluster.change(resource, value, act)

    def _going(self, resource: Resource, value: Obj) -> None:
        finalizers = value["metadata"].get("finalizers") or []
        uid = value["metadata"]["uid"]
        if ORPHAN in finalizers:
            for kind, each in self._store.owned(uid):
                others = [one["uid"] for one in each["metadata"]["ownerReferences"]]
                self._keep(kind, each, [one for one in others if one != uid])
            self._drop(resource, value, ORPHAN)
        elif FOREGROUND in finalizers:
            left = self._store.owned(uid)
            for kind, each in left:
                if not each["metadata"].get("deletionTimestamp"):
                    self._note(kind, each)
            blocking = [
                each
                for _, each in left
                if any(
                    one["uid"] == uid and one.get("blockOwnerDeletion")
                    for one in each["metadata"]["ownerReferences"]
                )
            ]
            if not blocking:
                self._drop(resource, value, FOREGROUND)

    def _drop(self, resource: Resource, value: Obj, finalizer: str) -> None:
        def act(new: Obj) -> None:
            kept = [each for each in new["metadata"]["finalizers"] if each != finalizer]
            if kept:
                new["metadata"]["finalizers"] = kept
            else:
                del new["metadata"]["finalizers"]

        changed = self._cluster.change(resource, value, act)
        if changed is not None:
            self._registry.settled(resource, changed)

    # -- namespaces --------------------------------------------------------------------------------

    def _space(self, name: str) -> None:
        space = self._store.get(NAMESPACES, "", name)
        if space is None:
            return
        if not space["metadata"].get("deletionTimestamp"):
            self._furnish(name)
            return
        left = 0
        for resource in RESOURCES:
            if not resource.namespaced or resource.review:
                continue
            for each in self._store.all(resource, name):
                if not each["metadata"].get("deletionTimestamp"):
                    self._registry.delete(resource, *key_of(each), _BACKGROUND)
            left += len(self._store.all(resource, name))
        if left:
            return

        def act(new: Obj) -> None:
            new["spec"]["finalizers"] = []

        changed = self._cluster.change(NAMESPACES, space, act)
        if changed is not None:
            self._registry.settled(NAMESPACES, changed)

    def _furnish(self, name: str) -> None:
        if self._store.get(SERVICEACCOUNTS, name, "default") is None:
            made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._registry.create(SERVICEACCOUNTS, name, made)
        if self._store.get(CONFIGMAPS, name, "kube-root-ca.crt") is None:
            made = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt"},
            }
            self._registry.create(CONFIGMAPS, name, made | {"data": {"ca.crt": ""}})

    # -- small ones --------------------------------------------------------------------------------

    def _bound(self, new: Obj) -> None:
        new["spec"].setdefault("volumeName", f"pvc-{new['metadata']['uid']}")
        new["status"]["phase"] = "Bound"
        new["status"]["accessModes"] = new["spec"].get("accessModes") or []
        new["status"]["capacity"] = (new["spec"].get("resources") or {}).get("requests") or {}

    def _used(self, new: Obj) -> None:
        hard: Amounts = amounts(new["spec"].get("hard"))
        used = usage(self._cluster, new["metadata"]["namespace"], hard)
        new["status"] = {
            "hard": new["spec"].get("hard") or {},
            "used": {name: written(value) for name, value in used.items()},
        }


def disrupt(cluster: Cluster, registry: Registry, pod: Obj, reason: str, words: str) -> None:
    """It gets the condition, and then its grace."""

    def act(new: Obj) -> None:
        at = cluster.stamp()
        condition(new["status"], "DisruptionTarget", True, reason, words, at, probed=True)

    changed = cluster.change(PODS, pod, act)
    if changed is not None and not changed["metadata"].get("deletionTimestamp"):
        registry.delete(PODS, *key_of(changed), DeleteOptions())
