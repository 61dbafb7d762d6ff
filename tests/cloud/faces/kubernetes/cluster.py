"""One cluster: its objects, clock, dials and lock. Whoever reads or changes it holds the lock."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.cloud.clock import Agenda, Clock, iso
from tests.cloud.dials import Dials
from tests.cloud.faces.kubernetes.resources import EVENTS, Resource
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, Store, copied, key_of

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass
class ClusterDials(Dials):
    """Times are seconds. Where Kubernetes' own are longer they stand behind it."""

    jobset: bool = False
    kueue: bool = False
    volcano: bool = False
    karpenter: bool = False
    version: str = "v1.36.4"
    bind_s: float = 0.0
    """Between a pod's creation and its node."""
    pull_s: float = 0.0
    pull_retry_s: float = 0.5  # 10, doubled up to 300
    config_retry_s: float = 0.2  # 2 to 10
    end_s: float = 0.0
    """How long pods without bodies take to end when they are asked to."""
    job_backoff_s: float = 0.1  # 10, doubled up to 360
    crash_backoff_s: float = 0.5  # 10, doubled up to 300
    node_lost_s: float = 4.0  # 40 to 50
    toleration_s: int = 3  # 300
    gc_every_s: float = 2.0  # 20
    quarantine_s: float = 2.0  # 40
    pages_live_s: float = 300.0
    request_s: float = 0.0
    """How long each request takes."""
    requeue_s: float = 1.0
    """How long a workload that a test has evicted waits, before it is considered again."""
    image_users: dict[str, int] = field(default_factory=dict)
    """Who an image runs as, by a part of its name; root where nothing is said."""
    restart_s: float = 0.3
    """How long the API server is away when it is restarted."""


class Cluster:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.clock = Clock()
        self.agenda = Agenda()
        self.dials = ClusterDials()
        self.store = Store()
        self.calls: list[dict[str, Any]] = []
        self.random = random.Random(20)
        self.woken = threading.Event()
        self.store.listeners.append(self._told)
        self._said: dict[tuple[str, str, str], Key] = {}

    def _told(self, change: Change) -> None:
        if change.resource is EVENTS and change.sort == "DELETED" and change.old is not None:
            event = change.old
            at = event["involvedObject"].get("uid", ""), event["reason"], event["message"]
            self._said.pop(at, None)
        self.changed.notify_all()
        self.woken.set()

    def now(self) -> float:
        return self.clock.now()

    def stamp(self, at: float | None = None) -> str:
        return iso(self.now() if at is None else at)

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.agenda.at(self.now() + seconds, act)
        self.woken.set()

    def suffix(self) -> str:
        return "".join(self.random.choices(_LETTERS, k=5))

    # -- what controllers do to objects ------------------------------------------------------------

    def current(self, resource: Resource, value: Obj) -> Obj | None:
        """As it is now, if it is still the same one."""
        found = self.store.get(resource, *key_of(value))
        return found if found and found["metadata"]["uid"] == value["metadata"]["uid"] else None

    def change(self, resource: Resource, value: Obj, act: Callable[[Obj], None]) -> Obj | None:
        """By controllers, who know what they do: nothing is checked. None where it is gone."""
        found = self.current(resource, value)
        if found is None:
            return None
        new = copied(found)
        act(new)
        return self.store.replace(resource, new)

    def event(
        self, resource: Resource, value: Obj, sort: str, reason: str, words: str, source: str
    ) -> None:
        """Said again, it is the same event, counted."""
        meta, now = value["metadata"], self.stamp()
        said = meta["uid"], reason, words
        namespace = meta.get("namespace", "default")
        if said in self._said:
            old = self.store.get(EVENTS, *self._said[said])
            if old is not None:
                again = {**old, "metadata": dict(old["metadata"]), "count": old["count"] + 1}
                self.store.replace(EVENTS, again | {"lastTimestamp": now})
                return
        name = f"{meta['name']}.{self.random.getrandbits(64):016x}"
        self._said[said] = namespace, name
        self.store.add(
            EVENTS,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace, "creationTimestamp": now},
                "involvedObject": {
                    "kind": resource.kind,
                    "namespace": meta.get("namespace", ""),
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "apiVersion": resource.api_version,
                    "resourceVersion": meta.get("resourceVersion", ""),
                },
                "reason": reason,
                "message": words,
                "source": {"component": source},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
                "type": sort,
                "reportingComponent": source,
                "reportingInstance": "",
            },
        )


def condition(
    status: Obj, sort: str, true: bool | str, reason: str, words: str, at: str, probed: bool = False
) -> bool:
    """Set; whether it is new. The moment is that of the status' last change."""
    shown = true if isinstance(true, str) else "True" if true else "False"
    found = status.setdefault("conditions", [])
    old = next((each for each in found if each["type"] == sort), None)
    new: Obj = {"type": sort, "status": shown}
    if probed:
        new["lastProbeTime"] = at
    new["lastTransitionTime"] = at
    if old is not None and old["status"] == shown:
        new["lastTransitionTime"] = old["lastTransitionTime"]
        if probed:
            new["lastProbeTime"] = old.get("lastProbeTime", at)
    if reason:
        new["reason"] = reason
    if words or not probed:
        new["message"] = words
    if not words and not reason:
        new.pop("message", None)
    if old is None:
        found.append(new)
    else:
        found[found.index(old)] = new
    return old is None or old["status"] != shown


def is_true(value: Obj, sort: str) -> bool:
    told = (value.get("status") or {}).get("conditions") or ()
    return any(each["type"] == sort and each["status"] == "True" for each in told)
