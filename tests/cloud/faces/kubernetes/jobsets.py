"""The JobSet controller: Jobs of a JobSet, its headless Service, its end, and its restarts.

Known lies: dependsOn, startupPolicy, coordinator, rules of the failure policy and volume claims are
taken and do nothing; a restart deletes all Jobs at once.
"""

from __future__ import annotations

from tests.cloud.faces.kubernetes.cluster import Cluster, condition, is_true
from tests.cloud.faces.kubernetes.problems import Problem
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import JOBS, JOBSETS, SERVICES
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, copied, key_of

_PREFIX = "jobset.sigs.k8s.io/"
_SOURCE = "jobset-controller"
_FOREGROUND = DeleteOptions(policy="Foreground")


class JobSets:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self._due: dict[Key, None] = {}

    def told(self, change: Change) -> None:
        if change.resource is JOBSETS and change.sort != "DELETED":
            self._due[key_of(change.object)] = None
        elif change.resource in (JOBS, SERVICES):
            for each in change.object["metadata"].get("ownerReferences") or ():
                if each["kind"] == "JobSet":
                    self._due[change.object["metadata"]["namespace"], each["name"]] = None

    def work(self) -> None:
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            found = self._store.get(JOBSETS, *key)
            if found is not None and not found["metadata"].get("deletionTimestamp"):
                self._sync(found)

    def _sync(self, jobset: Obj) -> None:
        status = jobset["status"]
        jobs = [each for _, each in self._store.owned(jobset["metadata"]["uid"], JOBS)]
        if status.get("terminalState"):
            for each in jobs:
                if not (is_true(each, "Complete") or is_true(each, "Failed")):
                    self._removed(each)
            return
        attempt = str(status.get("restarts", 0))
        stale = [each for each in jobs if _attempt(each) != attempt]
        for each in stale:
            self._removed(each)
        jobs = [each for each in jobs if _attempt(each) == attempt]
        failed = [each for each in jobs if is_true(each, "Failed")]
        if failed:
            self._failed(jobset, failed[0])
            return
        if self._complete(jobset, jobs):
            words = "jobset completed successfully"
            self._ended(jobset, "Completed", "AllJobsCompleted", words)
            return
        self._service(jobset)
        if not stale:
            self._made(jobset, jobs)
        self._suspended(jobset, jobs)
        self._cluster.change(JOBSETS, jobset, lambda new: self._shown(new))

    def _removed(self, job: Obj) -> None:
        if not job["metadata"].get("deletionTimestamp"):
            self._registry.delete(JOBS, *key_of(job), _FOREGROUND)

    # -- what it is made of ------------------------------------------------------------------------

    def _made(self, jobset: Obj, jobs: list[Obj]) -> None:
        there = {each["metadata"]["name"] for each in jobs}
        number = 0
        for part in jobset["spec"].get("replicatedJobs") or ():
            for index in range(part["replicas"]):
                name = f"{jobset['metadata']['name']}-{part['name']}-{index}"
                if name not in there:
                    self._make(jobset, part, index, number, name)
                number += 1

    def _make(self, jobset: Obj, part: Obj, index: int, number: int, name: str) -> None:
        meta = jobset["metadata"]
        template = copied(part["template"])
        marks = {
            f"{_PREFIX}jobset-name": meta["name"],
            f"{_PREFIX}jobset-uid": meta["uid"],
            f"{_PREFIX}replicatedjob-name": part["name"],
            f"{_PREFIX}replicatedjob-replicas": str(part["replicas"]),
            f"{_PREFIX}job-index": str(index),
            f"{_PREFIX}job-global-index": str(number),
            f"{_PREFIX}restart-attempt": str(jobset["status"].get("restarts", 0)),
        }
        spec = template["spec"]
        spec["suspend"] = bool(jobset["spec"].get("suspend"))
        inner = spec["template"].setdefault("metadata", {})
        outer = template.get("metadata") or {}
        for each in (outer, inner):
            each["labels"] = {**(each.get("labels") or {}), **marks}
            each["annotations"] = {**(each.get("annotations") or {}), **marks}
        network = jobset["spec"]["network"]
        if network.get("enableDNSHostnames"):
            spec["template"]["spec"]["subdomain"] = network.get("subdomain") or meta["name"]
        made = {
            "metadata": {
                "name": name,
                "labels": outer["labels"],
                "annotations": outer["annotations"],
                "ownerReferences": [_owner(jobset)],
            },
            "spec": spec,
        }
        try:
            self._registry.create(JOBS, meta["namespace"], made)
        except Problem as problem:
            words = f'job "{name}" creation failed with error: {problem.message}'
            self._cluster.event(JOBSETS, jobset, "Warning", "JobCreationFailed", words, _SOURCE)
            key = key_of(jobset)
            self._cluster.after(0.2, lambda: self._due.setdefault(key, None))

    def _service(self, jobset: Obj) -> None:
        network, meta = jobset["spec"]["network"], jobset["metadata"]
        name = network.get("subdomain") or meta["name"]
        if not network.get("enableDNSHostnames"):
            return
        if self._store.get(SERVICES, meta["namespace"], name) is None:
            made = {
                "metadata": {"name": name, "ownerReferences": [_owner(jobset)]},
                "spec": {
                    "clusterIP": "None",
                    "selector": {f"{_PREFIX}jobset-name": meta["name"]},
                    "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True),
                },
            }
            self._registry.create(SERVICES, meta["namespace"], made)

    def _suspended(self, jobset: Obj, jobs: list[Obj]) -> None:
        wanted = bool(jobset["spec"].get("suspend"))
        parts = {each["name"]: each for each in jobset["spec"].get("replicatedJobs") or ()}
        for job in jobs:
            if bool(job["spec"].get("suspend")) == wanted:
                continue
            part = parts[job["metadata"]["labels"][f"{_PREFIX}replicatedjob-name"]]
            fresh = part["template"]["spec"]["template"]["spec"]

            def act(new: Obj, fresh: Obj = fresh) -> None:
                new["spec"]["suspend"] = wanted
                if not wanted:  # what a queue has added meanwhile
                    for field in ("nodeSelector", "tolerations"):
                        if fresh.get(field):
                            new["spec"]["template"]["spec"][field] = copied(fresh[field])

            self._cluster.change(JOBS, job, act)

    # -- ends --------------------------------------------------------------------------------------

    def _complete(self, jobset: Obj, jobs: list[Obj]) -> bool:
        policy = jobset["spec"].get("successPolicy") or {"operator": "All"}
        parts = jobset["spec"].get("replicatedJobs") or []
        names = policy.get("targetReplicatedJobs") or [each["name"] for each in parts]
        wanted = sum(each["replicas"] for each in parts if each["name"] in names)
        done = sum(
            is_true(each, "Complete")
            and each["metadata"]["labels"][f"{_PREFIX}replicatedjob-name"] in names
            for each in jobs
        )
        return bool(wanted) and (done >= wanted or (policy["operator"] == "Any" and done > 0))

    def _failed(self, jobset: Obj, job: Obj) -> None:
        most = (jobset["spec"].get("failurePolicy") or {}).get("maxRestarts", 0)
        restarts = jobset["status"].get("restarts", 0)
        name = job["metadata"]["name"]
        if restarts < most:

            def act(new: Obj) -> None:
                new["status"]["restarts"] = restarts + 1
                new["status"]["restartsCountTowardsMax"] = restarts + 1

            self._cluster.change(JOBSETS, jobset, act)
            words = f"restarting jobset, attempt {restarts + 1} (first failed job: {name})"
            self._cluster.event(JOBSETS, jobset, "Normal", "Restarting", words, _SOURCE)
        elif most:
            words = (
                f"jobset failed due to reaching max number of restarts (first failed job: {name})"
            )
            self._ended(jobset, "Failed", "ReachedMaxRestarts", words)
        else:
            words = f"jobset failed due to one or more job failures (first failed job: {name})"
            self._ended(jobset, "Failed", "FailedJobs", words)

    def _ended(self, jobset: Obj, sort: str, reason: str, words: str) -> None:
        def act(new: Obj) -> None:
            condition(new["status"], sort, True, reason, words, self._cluster.stamp())
            new["status"]["terminalState"] = sort
            self._shown(new)

        self._cluster.change(JOBSETS, jobset, act)
        kind = "Normal" if sort == "Completed" else "Warning"
        self._cluster.event(JOBSETS, jobset, kind, reason, words, _SOURCE)
        seconds = jobset["spec"].get("ttlSecondsAfterFinished")
        if seconds is not None:
            self._cluster.after(seconds, lambda: self._expired(jobset))

    def _expired(self, jobset: Obj) -> None:
        if self._cluster.current(JOBSETS, jobset) is not None:
            self._registry.delete(JOBSETS, *key_of(jobset), _FOREGROUND)

    def _shown(self, new: Obj) -> None:
        status, at = new["status"], self._cluster.stamp()
        status.setdefault("restarts", 0)
        told = []
        jobs = [each for _, each in self._store.owned(new["metadata"]["uid"], JOBS)]
        for part in new["spec"].get("replicatedJobs") or ():
            own = [
                each
                for each in jobs
                if each["metadata"]["labels"][f"{_PREFIX}replicatedjob-name"] == part["name"]
            ]
            counts = {"name": part["name"], "ready": 0, "succeeded": 0, "failed": 0, "active": 0}
            counts["suspended"] = 0
            for job in own:
                if is_true(job, "Complete"):
                    counts["succeeded"] += 1
                elif is_true(job, "Failed"):
                    counts["failed"] += 1
                elif job["spec"].get("suspend"):
                    counts["suspended"] += 1
                else:
                    counts["active"] += bool(job["status"].get("active"))
                    counts["ready"] += job["status"].get("ready", 0) >= job["spec"]["parallelism"]
            told.append(counts)
        status["replicatedJobsStatus"] = told
        if new["spec"].get("suspend"):
            condition(status, "Suspended", True, "SuspendedJobs", "jobset is suspended", at)
        elif any(each["type"] == "Suspended" for each in status.get("conditions") or ()):
            condition(status, "Suspended", False, "ResumeJobs", "jobset is resumed", at)


def _owner(jobset: Obj) -> Obj:
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": "JobSet",
        "name": jobset["metadata"]["name"],
        "uid": jobset["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _attempt(job: Obj) -> str:
    return str((job["metadata"].get("labels") or {}).get(f"{_PREFIX}restart-attempt", ""))
