"""Queues as Kueue has them: a Job or JobSet with a queue's name is suspended; a Workload for it
waits until its ClusterQueue has quota for all its pods; then it is resumed, with the node labels of
the flavor.

Higher priorities go first; with `preemption.withinClusterQueue: LowerPriority` they also take what
lower ones have. A Workload that is evicted waits `requeue_s` and then its turn.

Known lies: no cohorts, borrowing, admission checks, topologies, or fair sharing; the first flavor
of each resource group that has room is taken; messages are Kueue's as far as they are known.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

from tests.cloud.faces.kubernetes.admission import QUEUE
from tests.cloud.faces.kubernetes.cluster import Cluster, condition, is_true
from tests.cloud.faces.kubernetes.quantities import Amounts, add, amount, amounts, asked, written
from tests.cloud.faces.kubernetes.registry import Registry
from tests.cloud.faces.kubernetes.resources import (
    CLUSTER_QUEUES,
    FLAVORS,
    JOBS,
    JOBSETS,
    PRIORITIES,
    QUEUES,
    WORKLOAD_PRIORITIES,
    WORKLOADS,
    Resource,
)
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, copied, key_of

PRIORITY = "kueue.x-k8s.io/priority-class"
_SOURCE = "kueue-admission"
_MINE = (JOBS, JOBSETS)
_LOOKED_AT = (WORKLOADS, QUEUES, CLUSTER_QUEUES, FLAVORS)


class Kueue:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self._due: dict[tuple[str, Key], Resource] = {}
        self._moved = False
        self._not_before: dict[str, float] = {}

    def told(self, change: Change) -> None:
        if not self._cluster.dials.kueue:
            return
        if change.resource in _MINE and change.sort != "DELETED" and _queue(change.object):
            self._due[change.resource.qualified, key_of(change.object)] = change.resource
        if change.resource in _LOOKED_AT:
            self._moved = True

    def work(self) -> None:
        if not self._cluster.dials.kueue:
            return
        while self._due:
            (name, key), resource = next(iter(self._due.items()))
            del self._due[name, key]
            job = self._store.get(resource, *key)
            if job is not None and not job["metadata"].get("deletionTimestamp"):
                self._follow(resource, job)
        if self._moved:
            self._moved = False
            self._admit()

    # -- jobs and their workloads ------------------------------------------------------------------

    def _follow(self, resource: Resource, job: Obj) -> None:
        work = self._workload(job)
        if work is None:
            if not _is_over(job):
                self._create(resource, job)
            return
        if _is_over(job):
            if not is_true(work, "Finished"):
                good = is_true(job, "Complete") or is_true(job, "Completed")
                told = _last(job)
                reason = "Succeeded" if good else "Failed"
                self._said(work, "Finished", True, reason, told)
            return
        reserved = is_true(work, "Admitted")
        if not reserved and not job["spec"].get("suspend"):
            self._suspend(resource, job, work)

    def _workload(self, job: Obj) -> Obj | None:
        found = self._store.owned(job["metadata"]["uid"], WORKLOADS)
        return found[0][1] if found else None

    def _create(self, resource: Resource, job: Obj) -> None:
        meta, kind = job["metadata"], resource.kind.lower()
        end = hashlib.sha1(meta["uid"].encode()).hexdigest()[:5]
        labels = meta.get("labels") or {}
        spec: Obj = {"queueName": labels[QUEUE], "podSets": _sets(resource, job), "priority": 0}
        name = labels.get(PRIORITY)
        if name:
            found = self._store.get(WORKLOAD_PRIORITIES, "", name)
            if found is not None:
                spec["priority"] = found["value"]
                group, kinds = "kueue.x-k8s.io", "WorkloadPriorityClass"
                spec["priorityClassRef"] = {"group": group, "kind": kinds, "name": name}
        else:
            pods = spec["podSets"][0]["template"]["spec"] if spec["podSets"] else {}
            usual = self._store.get(PRIORITIES, "", pods.get("priorityClassName") or "")
            if usual is not None:
                spec["priority"] = usual["value"]
                group, kinds = "scheduling.k8s.io", "PriorityClass"
                ref = {"group": group, "kind": kinds, "name": usual["metadata"]["name"]}
                spec["priorityClassRef"] = ref
        made = {
            "metadata": {
                "name": f"{kind}-{meta['name']}-{end}"[:63],
                "labels": {"kueue.x-k8s.io/job-uid": meta["uid"]},
                "ownerReferences": [
                    {
                        "apiVersion": resource.api_version,
                        "kind": resource.kind,
                        "name": meta["name"],
                        "uid": meta["uid"],
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": spec,
        }
        fresh = self._registry.create(WORKLOADS, meta["namespace"], made).value
        words = f"Created Workload: {meta['namespace']}/{fresh['metadata']['name']}"
        source = f"{kind}-kueue-controller"
        self._cluster.event(resource, job, "Normal", "CreatedWorkload", words, source)

    def _suspend(self, resource: Resource, job: Obj, work: Obj) -> None:
        def act(new: Obj) -> None:
            new["spec"]["suspend"] = True
            if resource is JOBS:
                template = new["spec"]["template"]["spec"]
                before = work["spec"]["podSets"][0]["template"]["spec"]
                for field in ("nodeSelector", "tolerations"):
                    if field in before:
                        template[field] = copied(before[field])
                    else:
                        template.pop(field, None)

        self._cluster.change(resource, job, act)

    def _resume(
        self, resource: Resource, job: Obj, labels: dict[str, str], extra: list[Obj]
    ) -> None:
        def add_to(template: Obj) -> None:
            if labels:
                template["nodeSelector"] = {**(template.get("nodeSelector") or {}), **labels}
            if extra:
                template["tolerations"] = [*(template.get("tolerations") or ()), *extra]

        def act(new: Obj) -> None:
            new["spec"]["suspend"] = False
            if resource is JOBS:
                add_to(new["spec"]["template"]["spec"])
            else:
                for each in new["spec"]["replicatedJobs"]:
                    add_to(each["template"]["spec"]["template"]["spec"])

        self._cluster.change(resource, job, act)

    # -- admission ---------------------------------------------------------------------------------

    def _admit(self) -> None:
        now = self._cluster.now()
        waiting = [
            each
            for each in self._store.all(WORKLOADS)
            if not is_true(each, "Finished")
            and not is_true(each, "QuotaReserved")
            and not each["metadata"].get("deletionTimestamp")
        ]
        waiting.sort(key=lambda each: (-each["spec"].get("priority", 0), _age(each)))
        blocked: set[str] = set()
        for each in waiting:
            if self._not_before.get(each["metadata"]["uid"], 0.0) > now:
                continue
            self._consider(each, blocked)
        self._counted()

    def _consider(self, work: Obj, blocked: set[str]) -> None:
        name, namespace = work["spec"].get("queueName", ""), work["metadata"]["namespace"]
        local = self._store.get(QUEUES, namespace, name)
        if work["spec"].get("active") is False:
            self._pending(work, "Inadmissible", "The workload is deactivated")
            return
        if local is None:
            self._pending(work, "Inadmissible", f"LocalQueue {name} doesn't exist")
            return
        if (local["spec"].get("stopPolicy") or "None") != "None":
            self._pending(work, "Inadmissible", f"LocalQueue {name} is inactive")
            return
        over = local["spec"].get("clusterQueue", "")
        queue = self._store.get(CLUSTER_QUEUES, "", over)
        if queue is None:
            self._pending(work, "Inadmissible", f"ClusterQueue {over} doesn't exist")
            return
        if (queue["spec"].get("stopPolicy") or "None") != "None":
            self._pending(work, "Inadmissible", f"ClusterQueue {over} is inactive")
            return
        if over in blocked:
            return
        found, words = self._flavors(queue, work)
        if found is None and self._preempted(queue, work):
            found, words = self._flavors(queue, work)
        if found is None:
            self._pending(work, "Pending", words)
            if queue["spec"].get("queueingStrategy") == "StrictFIFO":
                blocked.add(over)
            return
        self._admitted(work, over, found)

    def _flavors(self, queue: Obj, work: Obj) -> tuple[list[Obj] | None, str]:
        """What each pod set gets; or why not."""
        used = self._used(queue["metadata"]["name"])
        groups = queue["spec"].get("resourceGroups") or []
        assigned: list[Obj] = []
        for part in work["spec"]["podSets"]:
            flavors: dict[str, str] = {}
            wanted = _wanted(part)
            covered = {name for each in groups for name in each["coveredResources"]}
            if "pods" in covered:
                wanted["pods"] = Fraction(part["count"])
            for name in wanted:
                if name not in covered:
                    words = f"resource {name} unavailable in ClusterQueue"
                    return None, f"couldn't assign flavors to pod set {part['name']}: {words}"
            for group in groups:
                own = {k: v for k, v in wanted.items() if k in group["coveredResources"]}
                if not own:
                    continue
                name, reasons = self._flavor(group, own, used)
                if not name:
                    words = ", ".join(reasons)
                    return None, f"couldn't assign flavors to pod set {part['name']}: {words}"
                for resource, value in own.items():
                    flavors[resource] = name
                    key = f"{name}/{resource}"
                    used[key] = used.get(key, Fraction(0)) + value
            shown = {name: written(value) for name, value in wanted.items()}
            assigned.append(
                {
                    "name": part["name"],
                    "flavors": flavors,
                    "resourceUsage": shown,
                    "count": part["count"],
                }
            )
        return assigned, ""

    def _flavor(self, group: Obj, wanted: Amounts, used: Amounts) -> tuple[str, list[str]]:
        reasons: list[str] = []
        for flavor in group["flavors"]:
            name = flavor["name"]
            if self._store.get(FLAVORS, "", name) is None:
                reasons.append(f"flavor {name} not found")
                continue
            most = {each["name"]: amount(each["nominalQuota"]) for each in flavor["resources"]}
            wrong = []
            for resource, value in sorted(wanted.items()):
                quota = most.get(resource, Fraction(0))
                has = used.get(f"{name}/{resource}", Fraction(0))
                if value > quota:
                    wrong.append(
                        f"insufficient quota for {resource} in flavor {name}, previously "
                        "considered podsets requests (0) + current podset request "
                        f"({written(value)}) > maximum capacity ({written(quota)})"
                    )
                elif has + value > quota:
                    wrong.append(
                        f"insufficient unused quota for {resource} in flavor {name}, "
                        f"{written(has + value - quota)} more needed"
                    )
            if not wrong:
                return name, []
            reasons += wrong
        return "", reasons

    def _used(self, queue: str) -> Amounts:
        total: Amounts = {}
        for each in self._store.all(WORKLOADS):
            admission = (each.get("status") or {}).get("admission")
            if admission is None or is_true(each, "Finished"):
                continue
            if admission["clusterQueue"] != queue:
                continue
            for part in admission["podSetAssignments"]:
                usage = amounts(part["resourceUsage"])
                add(total, {f"{part['flavors'][name]}/{name}": usage[name] for name in usage})
        return total

    def _admitted(self, work: Obj, queue: str, found: list[Obj]) -> None:
        owner = self._owner(work)
        if owner is None:
            return

        def act(new: Obj) -> None:
            at, status = self._cluster.stamp(), new["status"]
            status["admission"] = {"clusterQueue": queue, "podSetAssignments": found}
            words = f"Quota reserved in ClusterQueue {queue}"
            condition(status, "QuotaReserved", True, "QuotaReserved", words, at)
            condition(status, "Admitted", True, "Admitted", "The workload is admitted", at)
            if is_true(new, "Evicted"):
                words = "Previously: evicted"
                condition(status, "Evicted", False, "QuotaReserved", words, at)

        self._cluster.change(WORKLOADS, work, act)
        labels: dict[str, str] = {}
        extra: list[Obj] = []
        for name in {each for part in found for each in part["flavors"].values()}:
            flavor = self._store.get(FLAVORS, "", name) or {"spec": {}}
            labels |= flavor["spec"].get("nodeLabels") or {}
            extra += flavor["spec"].get("tolerations") or []
        self._resume(*owner, labels, extra)
        words = f"Admitted by clusterQueue {queue}"
        self._cluster.event(*owner, "Normal", "Started", words, "job-kueue-controller")
        waited = "wait time since queued was 0s"
        told = f"Quota reserved in ClusterQueue {queue}, {waited}"
        self._cluster.event(WORKLOADS, work, "Normal", "QuotaReserved", told, _SOURCE)

    def _pending(self, work: Obj, reason: str, words: str) -> None:
        before = (work.get("status") or {}).get("conditions") or ()
        if any(
            (each["type"], each["status"], each.get("message")) == ("QuotaReserved", "False", words)
            for each in before
        ):
            return
        self._said(work, "QuotaReserved", False, reason, words)
        self._cluster.event(WORKLOADS, work, "Warning", "Pending", words, _SOURCE)

    def _said(self, work: Obj, sort: str, true: bool, reason: str, words: str) -> None:
        def act(new: Obj) -> None:
            condition(new["status"], sort, true, reason, words, self._cluster.stamp())

        self._cluster.change(WORKLOADS, work, act)

    def _owner(self, work: Obj) -> tuple[Resource, Obj] | None:
        for each in work["metadata"].get("ownerReferences") or ():
            return self._store.by_uid(each["uid"])
        return None

    # -- eviction ----------------------------------------------------------------------------------

    def _preempted(self, queue: Obj, work: Obj) -> bool:
        policy = (queue["spec"].get("preemption") or {}).get("withinClusterQueue", "Never")
        if policy == "Never":
            return False
        mine = work["spec"].get("priority", 0)
        lower = [
            each
            for each in self._store.all(WORKLOADS)
            if is_true(each, "Admitted")
            and not is_true(each, "Finished")
            and each["spec"].get("priority", 0) < mine
            and each["status"]["admission"]["clusterQueue"] == queue["metadata"]["name"]
        ]
        if not lower:
            return False
        words = (
            f"Preempted to accommodate a workload (UID: {work['metadata']['uid']}) due to "
            "prioritization in the ClusterQueue"
        )
        for each in sorted(lower, key=lambda one: one["spec"].get("priority", 0)):
            self._evicted(each, "Preempted", words)
            if self._flavors(queue, work)[0] is not None:
                return True
        return False

    def evict(self, namespace: str, job: str, reason: str, words: str) -> None:
        for each in self._store.all(WORKLOADS, namespace):
            owners = each["metadata"].get("ownerReferences") or ()
            if any(one["name"] == job for one in owners) and is_true(each, "Admitted"):
                wait = self._cluster.dials.requeue_s
                self._not_before[each["metadata"]["uid"]] = self._cluster.now() + wait
                self._cluster.after(wait, self._again)
                self._evicted(each, reason, words or "Preempted to accommodate another workload")
                return
        raise ValueError(f"no workload of {namespace}/{job} is admitted")

    def _again(self) -> None:
        self._moved = True

    def _evicted(self, work: Obj, reason: str, words: str) -> None:
        def act(new: Obj) -> None:
            at, status = self._cluster.stamp(), new["status"]
            status.pop("admission", None)
            condition(status, "Evicted", True, reason, words, at)
            condition(status, "QuotaReserved", False, "Pending", words, at)
            gone = "The workload has no reservation"
            condition(status, "Admitted", False, "NoReservation", gone, at)
            condition(status, "Requeued", True, reason, "", at)

        self._cluster.change(WORKLOADS, work, act)
        owner = self._owner(work)
        if owner is not None:
            self._suspend(*owner, work)
            self._cluster.event(*owner, "Normal", "Stopped", words, "job-kueue-controller")

    # -- queues ------------------------------------------------------------------------------------

    def _counted(self) -> None:
        every = [each for each in self._store.all(WORKLOADS) if not is_true(each, "Finished")]
        for kind in (QUEUES, CLUSTER_QUEUES):
            for queue in self._store.all(kind):
                own = [each for each in every if self._is_in(each, queue, kind)]
                admitted = sum(is_true(each, "Admitted") for each in own)

                def act(new: Obj, own: list[Obj] = own, admitted: int = admitted) -> None:
                    status, at = new.setdefault("status", {}), self._cluster.stamp()
                    status["pendingWorkloads"] = len(own) - admitted
                    status["admittedWorkloads"] = status["reservingWorkloads"] = admitted
                    words = "Can admit new workloads"
                    condition(status, "Active", True, "Ready", words, at)

                self._cluster.change(kind, queue, act)
        self._moved = False

    def _is_in(self, work: Obj, queue: Obj, kind: Resource) -> bool:
        name, namespace = work["spec"].get("queueName"), work["metadata"]["namespace"]
        if kind is QUEUES:
            meta = queue["metadata"]
            return bool((meta["namespace"], meta["name"]) == (namespace, name))
        local = self._store.get(QUEUES, namespace, name or "")
        found = (local or {"spec": {}})["spec"].get("clusterQueue")
        return bool(found == queue["metadata"]["name"])

    def furnish(self, name: str, namespace: str, quota: dict[str, str], local: str) -> None:
        """A flavor, a ClusterQueue with that quota, a LocalQueue; what is there is changed."""
        if self._store.get(FLAVORS, "", "default-flavor") is None:
            self._registry.create(FLAVORS, "", {"metadata": {"name": "default-flavor"}, "spec": {}})
        resources = [{"name": each, "nominalQuota": value} for each, value in quota.items()]
        flavor = {"name": "default-flavor", "resources": resources}
        groups = [{"coveredResources": list(quota), "flavors": [flavor]}] if quota else []
        queue = self._store.get(CLUSTER_QUEUES, "", name)
        if queue is None:
            spec = {"namespaceSelector": {}, "resourceGroups": groups}
            self._registry.create(CLUSTER_QUEUES, "", {"metadata": {"name": name}, "spec": spec})
        else:
            self._cluster.change(
                CLUSTER_QUEUES, queue, lambda new: new["spec"].update(resourceGroups=groups)
            )
        if self._store.get(QUEUES, namespace, local) is None:
            made = {"metadata": {"name": local}, "spec": {"clusterQueue": name}}
            self._registry.create(QUEUES, namespace, made)


def _queue(job: Obj) -> str:
    owners = job["metadata"].get("ownerReferences") or ()
    if any(each.get("kind") == "JobSet" for each in owners):
        return ""
    return str((job["metadata"].get("labels") or {}).get(QUEUE, ""))


def _is_over(job: Obj) -> bool:
    return any(is_true(job, each) for each in ("Complete", "Failed", "Completed"))


def _last(job: Obj) -> str:
    for each in (job.get("status") or {}).get("conditions") or ():
        if each["type"] in ("Complete", "Failed", "Completed") and each["status"] == "True":
            return str(each.get("message", ""))
    return ""


def _age(work: Obj) -> tuple[str, int]:
    return work["metadata"]["creationTimestamp"], int(work["metadata"]["resourceVersion"])


def _sets(resource: Resource, job: Obj) -> list[Obj]:
    if resource is JOBS:
        count = min(
            job["spec"]["parallelism"], job["spec"].get("completions") or job["spec"]["parallelism"]
        )
        return [{"name": "main", "count": count, "template": copied(job["spec"]["template"])}]
    found = []
    for part in job["spec"].get("replicatedJobs") or ():
        inner = part["template"]["spec"]
        count = part["replicas"] * inner.get("parallelism", 1)
        template = copied(inner["template"])
        found.append({"name": part["name"], "count": count, "template": template})
    return found


def _wanted(part: Obj) -> Amounts:
    one = asked(part["template"]["spec"])
    return {name: value * part["count"] for name, value in one.items()}
