"""Pods get nodes: resources, selectors, required affinity, taints, gates, priorities.

A pod goes to the first node that suits it, in turn; where none does, its PodScheduled condition and
a FailedScheduling event say how many nodes lack what, in the real scheduler's words. Pods that wait
are tried again when a node or a pod has changed. A pod of higher priority takes the room of lower
ones (one node's), which get DisruptionTarget and their grace. With `volcano`, pods that name it as
their scheduler and are of a PodGroup are placed together or not at all.

Known lies: there is no scoring (preferred affinity, spreading), no affinity between pods, no
topology spread, no volumes' nodes, no backoff.
"""

from __future__ import annotations

from collections import Counter

from tests.cloud.faces.kubernetes.cluster import Cluster, condition
from tests.cloud.faces.kubernetes.placement import Room, alike, is_over, summed, unsuited, useless
from tests.cloud.faces.kubernetes.quantities import Amounts, add, asked
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import CLAIMS, NODES, POD_GROUPS, PODS
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, key_of

NAME = "default-scheduler"
GROUP = "scheduling.k8s.io/group-name"


class Scheduler:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self._rooms: dict[str, Room] = {}
        self._order: list[str] = []
        self._next = 0
        self._waiting: dict[Key, str] = {}
        """By their keys: the version of the world in which they were last tried."""
        self._moved = 0
        self._asked: dict[str, Amounts] = {}

    def told(self, change: Change) -> None:
        if change.resource is NODES:
            self._node(change)
        elif change.resource is PODS:
            self._pod(change)
        elif change.resource in (POD_GROUPS, CLAIMS):
            self._moved += 1

    def _node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.sort == "DELETED":
            self._rooms.pop(name, None)
            self._order = [each for each in self._order if each != name]
        elif name in self._rooms:
            self._rooms[name].set(change.object)
        else:
            room = self._rooms[name] = Room(change.object)
            self._order.append(name)
            for each in self._store.all(PODS):
                if each["spec"].get("nodeName") == name and not is_over(each):
                    room.take(key_of(each), asked(each["spec"]))
        self._moved += 1

    def _pod(self, change: Change) -> None:
        pod = change.object
        key, node = key_of(pod), pod["spec"].get("nodeName")
        if change.sort == "DELETED" or is_over(pod):
            self._waiting.pop(key, None)
            if node in self._rooms and self._rooms[node].free(key):
                self._moved += 1
        elif node:
            self._waiting.pop(key, None)
            if node in self._rooms:
                self._rooms[node].take(key, self._wanted(pod))
        elif pod["metadata"].get("deletionTimestamp"):
            self._waiting.pop(key, None)
        elif key not in self._waiting or (
            change.old is not None and change.old["spec"] != pod["spec"]
        ):
            self._waiting[key] = ""

    def _wanted(self, pod: Obj) -> Amounts:
        uid = pod["metadata"]["uid"]
        if uid not in self._asked:
            if len(self._asked) > 50_000:
                self._asked.clear()
            self._asked[uid] = asked(pod["spec"])
        return self._asked[uid]

    def work(self) -> None:
        """Whoever was not tried since something moved."""
        due, now = [], self._cluster.now()
        for key, tried in list(self._waiting.items()):
            if tried == str(self._moved):
                continue
            pod = self._store.get(PODS, *key)
            if pod is None:
                del self._waiting[key]
            elif self._cluster.dials.bind_s and not self._ripe(pod, now):
                continue
            else:
                due.append(pod)
        due.sort(key=lambda each: -each["spec"].get("priority", 0))
        failed: dict[str, str] = {}
        together: dict[Key, list[Obj]] = {}
        for pod in due:
            scheduler = pod["spec"].get("schedulerName")
            self._waiting[key_of(pod)] = str(self._moved)
            if pod["spec"].get("schedulingGates"):
                names = [each["name"] for each in pod["spec"]["schedulingGates"]]
                words = f"Scheduling is blocked due to non-empty scheduling gates: {names}"
                self._refuse(pod, "SchedulingGated", words)
            elif scheduler == "volcano" and self._cluster.dials.volcano:
                group = (pod["metadata"].get("annotations") or {}).get(GROUP, "")
                together.setdefault((pod["metadata"]["namespace"], group), []).append(pod)
            elif scheduler == NAME:
                self._one(pod, failed)
        for where, pods in together.items():
            self._gang(where, pods)

    def _ripe(self, pod: Obj, now: float) -> bool:
        """`bind_s` after it was first seen."""
        key = key_of(pod)
        if self._waiting[key] == "due":
            return True
        if self._waiting[key] == "":
            uid = pod["metadata"]["uid"]
            self._waiting[key] = "soon"

            def due() -> None:
                found = self._store.get(PODS, *key)
                if found and found["metadata"]["uid"] == uid and key in self._waiting:
                    self._waiting[key] = "due"

            self._cluster.after(self._cluster.dials.bind_s, due)
            return False
        return self._waiting[key] != "soon"

    # -- one pod -----------------------------------------------------------------------------------

    def _one(self, pod: Obj, failed: dict[str, str]) -> None:
        wanted, key = self._wanted(pod), alike(pod)
        if key in failed:
            self._refuse(pod, "Unschedulable", failed[key])
            return
        if words := self._claims(pod):
            self._refuse(pod, "Unschedulable", words)
            return
        node, reasons = self._place(pod, wanted)
        if node is not None:
            self._bind(pod, node)
            return
        words = summed(reasons, len(self._order))
        if self._preempt(pod, wanted):
            words += f" preemption: victims were asked to leave for {pod['metadata']['name']}."
        else:
            words += " preemption: " + useless(reasons, len(self._order))
            failed[key] = words
        self._refuse(pod, "Unschedulable", words)

    def _place(self, pod: Obj, wanted: Amounts) -> tuple[str | None, Counter[str]]:
        reasons: Counter[str] = Counter()
        count = len(self._order)
        for step in range(count):
            at = (self._next + step) % count
            room = self._rooms[self._order[at]]
            wrong = unsuited(pod["spec"], room.node)
            lacking = [wrong] if wrong else room.lacks(wanted)
            if not lacking:
                self._next = (at + 1) % count
                return self._order[at], reasons
            reasons.update(lacking)
        return None, reasons

    def _claims(self, pod: Obj) -> str:
        for each in pod["spec"].get("volumes") or ():
            name = (each.get("persistentVolumeClaim") or {}).get("claimName")
            if name and self._store.get(CLAIMS, pod["metadata"]["namespace"], name) is None:
                return f'persistentvolumeclaim "{name}" not found. not found'.removesuffix(
                    ". not found"
                )
        return ""

    def _bind(self, pod: Obj, node: str) -> None:
        key, now = key_of(pod), self._cluster.stamp()

        def act(new: Obj) -> None:
            new["spec"]["nodeName"] = node
            condition(new["status"], "PodScheduled", True, "", "", now, probed=True)

        self._waiting.pop(key, None)
        if node in self._rooms:  # at once: the next one is placed before the change is heard of
            self._rooms[node].take(key, self._wanted(pod))
        self._cluster.change(PODS, pod, act)
        words = f"Successfully assigned {key[0]}/{key[1]} to {node}"
        self._cluster.event(PODS, pod, "Normal", "Scheduled", words, NAME)

    def _refuse(self, pod: Obj, reason: str, words: str) -> None:
        def act(new: Obj) -> None:
            at = self._cluster.stamp()
            condition(new["status"], "PodScheduled", False, reason, words, at, probed=True)

        self._cluster.change(PODS, pod, act)
        if reason == "Unschedulable":
            self._cluster.event(PODS, pod, "Warning", "FailedScheduling", words, NAME)

    # -- preemption --------------------------------------------------------------------------------

    def _preempt(self, pod: Obj, wanted: Amounts) -> bool:
        spec = pod["spec"]
        if spec.get("preemptionPolicy") == "Never":
            return False
        for name in self._order:
            room = self._rooms[name]
            if unsuited(spec, room.node):
                continue
            lower = sorted(
                (
                    each
                    for key in room.pods
                    if (each := self._store.get(PODS, *key)) is not None
                    and each["spec"].get("priority", 0) < spec.get("priority", 0)
                ),
                key=lambda each: each["spec"].get("priority", 0),
            )
            freed: Amounts = {}
            victims = []
            for each in lower:
                victims.append(each)
                add(freed, self._wanted(each))
                if not room.lacks(wanted, freed):
                    for one in victims:
                        self._push_out(one, pod, name)
                    return True
        return False

    def _push_out(self, victim: Obj, pod: Obj, node: str) -> None:
        if victim["metadata"].get("deletionTimestamp"):
            return
        words = f"{NAME}: preempting to accommodate a higher priority pod"

        def act(new: Obj) -> None:
            at = self._cluster.stamp()
            reason = "PreemptionByScheduler"
            condition(new["status"], "DisruptionTarget", True, reason, words, at, probed=True)

        marked = self._cluster.change(PODS, victim, act)
        if marked is not None:
            by = f"Preempted by pod {pod['metadata']['uid']} on node {node}"
            self._cluster.event(PODS, marked, "Normal", "Preempted", by, NAME)
            self._registry.delete(PODS, *key_of(marked), DeleteOptions())

    # -- groups ------------------------------------------------------------------------------------

    def _gang(self, where: Key, pods: list[Obj]) -> None:
        group = self._store.get(POD_GROUPS, *where)
        if group is None:
            for each in pods:
                self._one_of_volcano(each)
            return
        namespace, name = where
        least = (group.get("spec") or {}).get("minMember") or 1
        members = [
            each
            for each in self._store.all(PODS, namespace)
            if (each["metadata"].get("annotations") or {}).get(GROUP) == name and not is_over(each)
        ]
        waiting = [each for each in members if not each["spec"].get("nodeName")]
        bound = len(members) - len(waiting)
        taken: list[tuple[Obj, str]] = []
        reasons: Counter[str] = Counter()
        for each in waiting:
            node, more = self._place(each, self._wanted(each))
            reasons.update(more)
            if node is not None:
                self._rooms[node].take(key_of(each), self._wanted(each))
                taken.append((each, node))
        for each, node in taken:
            self._rooms[node].free(key_of(each))
        together = bound + len(taken) >= least
        if together:
            for each, node in taken:
                self._bind(each, node)
        lacking = len(members) - bound - len(taken)
        words = (
            f"{lacking or least}/{max(least, len(members))} tasks in gang unschedulable: pod group "
            f"is not ready, {least} minAvailable, {len(members)} Pending: "
            f"{summed(reasons, len(self._order))}"
        )
        placed = {key_of(each) for each, _ in taken} if together else set()
        for each in waiting:
            self._waiting.pop(key_of(each), None) if key_of(each) in placed else None
            if key_of(each) not in placed:
                self._refuse(each, "Unschedulable", words)

        def act(new: Obj) -> None:
            status = new.setdefault("status", {})
            status["phase"] = "Running" if together else "Pending"
            if not together:
                at = self._cluster.stamp()
                told = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources"}
                status["conditions"] = [told | {"message": words, "lastTransitionTime": at}]
            else:
                status.pop("conditions", None)

        self._cluster.change(POD_GROUPS, group, act)

    def _one_of_volcano(self, pod: Obj) -> None:
        node, reasons = self._place(pod, self._wanted(pod))
        if node is not None:
            self._bind(pod, node)
        else:
            self._refuse(pod, "Unschedulable", summed(reasons, len(self._order)))
