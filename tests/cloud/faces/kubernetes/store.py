"""Objects, their versions, and what has happened to them: etcd and the watch cache.

An object that is in the store is never changed in place: whoever changes one makes another. So
snapshots for paging and the history for watches cost nothing.
"""

from __future__ import annotations

import bisect
import json
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.cloud.faces.kubernetes.resources import Resource

Obj = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for what is in none) and name."""
Listener = Callable[["Change"], None]


@dataclass(frozen=True)
class Change:
    version: int
    sort: str
    """ADDED, MODIFIED or DELETED."""
    resource: Resource
    old: Obj | None
    new: Obj | None

    @property
    def object(self) -> Obj:
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


class Shelf:
    """The objects of one kind, in the order of their keys."""

    def __init__(self) -> None:
        self.objects: dict[Key, Obj] = {}
        self.keys: list[Key] = []
        self.texts: dict[Key, tuple[str, bytes]] = {}

    def put(self, key: Key, value: Obj) -> None:
        if key not in self.objects:
            bisect.insort(self.keys, key)
        self.objects[key] = value

    def drop(self, key: Key) -> None:
        del self.objects[key]
        self.texts.pop(key, None)
        del self.keys[bisect.bisect_left(self.keys, key)]

    def within(self, namespace: str) -> Iterator[tuple[Key, Obj]]:
        """Of a namespace; of all for ""."""
        start, end = 0, len(self.keys)
        if namespace:
            start = bisect.bisect_left(self.keys, (namespace, ""))
            end = bisect.bisect_left(self.keys, (namespace + "\0", ""))
        for key in self.keys[start:end]:
            yield key, self.objects[key]


def key_of(value: Obj) -> Key:
    meta = value["metadata"]
    return meta.get("namespace", ""), meta["name"]


def copied(value: Any) -> Any:
    """Deep, and quicker than copy.deepcopy: JSON has nothing else."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in value.items()}
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value


class Store:
    def __init__(self, kept: int = 20_000) -> None:
        self.version = 1000
        self.history: deque[Change] = deque(maxlen=kept)
        self.listeners: list[Listener] = []
        self._shelves: dict[str, Shelf] = {}
        self._owned: dict[str, dict[tuple[str, Key], Resource]] = {}
        self._uids: dict[str, tuple[Resource, Key]] = {}

    def shelf(self, resource: Resource) -> Shelf:
        return self._shelves.setdefault(resource.qualified, Shelf())

    def get(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        return self.shelf(resource).objects.get((namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> list[Obj]:
        return [value for _, value in self.shelf(resource).within(namespace)]

    def by_uid(self, uid: str) -> tuple[Resource, Obj] | None:
        found = self._uids.get(uid)
        if found is None:
            return None
        return found[0], self.shelf(found[0]).objects[found[1]]

    def owned(self, uid: str, resource: Resource | None = None) -> list[tuple[Resource, Obj]]:
        """Whoever names it as an owner."""
        return [
            (kind, self.shelf(kind).objects[key])
            for (_, key), kind in list(self._owned.get(uid, {}).items())
            if resource is None or kind is resource
        ]

    def add(self, resource: Resource, value: Obj) -> Obj:
        value["metadata"].setdefault("uid", str(uuid.uuid4()))
        return self._put(resource, value, None)

    def replace(self, resource: Resource, value: Obj) -> Obj:
        """What changes nothing is no new version."""
        old = self.shelf(resource).objects[key_of(value)]
        if old == value:
            return old
        return self._put(resource, value, old)

    def remove(self, resource: Resource, namespace: str, name: str) -> Obj:
        shelf = self.shelf(resource)
        old = shelf.objects[namespace, name]
        self._forget(resource, old)
        shelf.drop((namespace, name))
        self.version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._tell(Change(self.version, "DELETED", resource, old, last))
        return last

    def text(self, resource: Resource, value: Obj) -> bytes:
        """As JSON; kept, since many listings show the same."""
        shelf, key = self.shelf(resource), key_of(value)
        if shelf.objects.get(key) is not value:
            return msgspec.json.encode(value)
        version, found = value["metadata"]["resourceVersion"], shelf.texts.get(key)
        if found is None or found[0] != version:
            found = shelf.texts[key] = version, msgspec.json.encode(value)
        return found[1]

    def saved(self) -> str:
        """Everything, for whoever looks whether two states are the same."""
        every = {name: list(each.objects.values()) for name, each in self._shelves.items()}
        return json.dumps(every, sort_keys=True)

    # ----------------------------------------------------------------------------------------------

    def _put(self, resource: Resource, value: Obj, old: Obj | None) -> Obj:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        if old is not None:
            self._forget(resource, old)
        key = key_of(value)
        self.shelf(resource).put(key, value)
        self._uids[value["metadata"]["uid"]] = resource, key
        for owner in value["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[resource.qualified, key] = resource
        sort = "ADDED" if old is None else "MODIFIED"
        self._tell(Change(self.version, sort, resource, old, value))
        return value

    def _forget(self, resource: Resource, old: Obj) -> None:
        self._uids.pop(old["metadata"]["uid"], None)
        for owner in old["metadata"].get("ownerReferences") or ():
            found = self._owned.get(owner["uid"])
            if found is not None:
                found.pop((resource.qualified, key_of(old)), None)
                if not found:
                    del self._owned[owner["uid"]]

    def _tell(self, change: Change) -> None:
        self.history.append(change)
        for each in self.listeners:
            each(change)
