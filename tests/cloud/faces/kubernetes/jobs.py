"""The Job controller: Indexed and plain Jobs, their failures by index and by policy, suspension,
deadlines, and what their status says.

Known lies: a Job's pods are counted as they end, without `uncountedTerminatedPods` in between;
successPolicy and managedBy decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tests.cloud.faces.kubernetes.cluster import Cluster, condition, is_true
from tests.cloud.faces.kubernetes.jobpods import (
    FINALIZER,
    controller,
    index_of,
    is_active,
    made,
    matched,
    ranges,
    reason_of,
)
from tests.cloud.faces.kubernetes.problems import Problem
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import JOBS, PODS
from tests.cloud.faces.kubernetes.store import Change, Key, Obj, key_of

_NAME = "job-controller"
_OVER = ("Succeeded", "Failed")


class Tally:
    """What of a Job's pods was counted."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.succeeded = self.failed = 0
        self.done: set[int] = set()
        self.bad: set[int] = set()
        self.failures: dict[int, int] = {}
        self.not_before = 0.0
        self.delays: dict[int, float] = {}
        self.in_a_row = 0


class Jobs:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self._due: dict[Key, None] = {}
        self._tallies: dict[str, Tally] = {}

    def told(self, change: Change) -> None:
        if change.resource is JOBS:
            if change.sort == "DELETED":
                self._tallies.pop(change.object["metadata"]["uid"], None)
                for _, pod in self._store.owned(change.object["metadata"]["uid"], PODS):
                    self._release(pod)
            else:
                self._due[key_of(change.object)] = None
        elif change.resource is PODS:
            owner = controller(change.object)
            if owner is not None and owner["kind"] == "Job":
                self._due[change.object["metadata"]["namespace"], owner["name"]] = None
                if (
                    change.sort != "DELETED"
                    and self._store.by_uid(owner["uid"]) is None
                    and change.object["metadata"].get("finalizers")
                ):
                    self._release(change.object)

    def work(self) -> None:
        """One Job at a time, so that requests come between."""
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            job = self._store.get(JOBS, *key)
            if job is not None:
                self._sync(job)

    def again(self, job: Obj, seconds: float) -> None:
        key = key_of(job)
        self._cluster.after(max(0.0, seconds), lambda: self._due.setdefault(key, None))

    # ----------------------------------------------------------------------------------------------

    def _sync(self, job: Obj) -> None:
        meta, spec = job["metadata"], job["spec"]
        pods = [each for _, each in self._store.owned(meta["uid"], PODS)]
        tally = self._tallies.setdefault(meta["uid"], Tally())
        if is_true(job, "Complete") or is_true(job, "Failed") or meta.get("deletionTimestamp"):
            for each in pods:
                if each["status"].get("phase") in _OVER or meta.get("deletionTimestamp"):
                    self._release(each)
            return
        now = self._cluster.now()
        starts = not spec.get("suspend") and not (job["status"] or {}).get("startTime")
        if starts:
            changed = self._cluster.change(JOBS, job, self._started)
            if changed is None:
                return
            job = changed
        failure = self._counted(job, pods, tally)
        pods = [each for _, each in self._store.owned(meta["uid"], PODS)]
        failure = failure or self._limits(job, tally, now)
        target = reason_of(job, "FailureTarget")
        if target is None and failure is not None:
            target = failure
        if target is None and self._complete(job, tally, pods):
            self._finish(job, tally, pods, None)
            return
        if target is not None:
            self._finish(job, tally, pods, target)
            return
        if spec.get("suspend"):
            self._suspend(job, tally, pods)
            return
        self._manage(job, tally, pods, now)
        pods = [each for _, each in self._store.owned(meta["uid"], PODS)]
        self._cluster.change(JOBS, job, lambda new: self._shown(new, tally, pods))

    def _started(self, new: Obj) -> None:
        now = self._cluster.stamp()
        new["status"]["startTime"] = now
        if any(each["type"] == "Suspended" for each in new["status"].get("conditions") or ()):
            condition(
                new["status"], "Suspended", False, "JobResumed", "Job resumed", now, probed=True
            )
            self._cluster.event(JOBS, new, "Normal", "Resumed", "Job resumed", _NAME)
        deadline = new["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            self.again(new, deadline + 0.01)

    def _suspend(self, job: Obj, tally: Tally, pods: list[Obj]) -> None:
        self._remove(job, [each for each in pods if is_active(each)])
        pods = [each for _, each in self._store.owned(job["metadata"]["uid"], PODS)]

        def act(new: Obj) -> None:
            at = self._cluster.stamp()
            fresh = condition(
                new["status"], "Suspended", True, "JobSuspended", "Job suspended", at, probed=True
            )
            new["status"].pop("startTime", None)
            self._shown(new, tally, pods)
            if fresh:
                self._cluster.event(JOBS, new, "Normal", "Suspended", "Job suspended", _NAME)

        self._cluster.change(JOBS, job, act)

    # -- counting ----------------------------------------------------------------------------------

    def _counted(self, job: Obj, pods: list[Obj], tally: Tally) -> tuple[str, str] | None:
        """Whoever has ended and was not counted yet. What makes the whole Job fail at once."""
        failure: tuple[str, str] | None = None
        strict = job["spec"].get("podReplacementPolicy") == "Failed"
        for pod in pods:
            meta, phase = pod["metadata"], pod["status"].get("phase")
            leaving = meta.get("deletionTimestamp") and phase != "Succeeded" and not strict
            if meta["uid"] in tally.seen:
                if phase in _OVER:
                    self._release(pod)
                continue
            if phase == "Succeeded":
                tally.seen.add(meta["uid"])
                tally.succeeded += 1
                tally.in_a_row = 0
                index = index_of(pod)
                if index is not None:
                    tally.done.add(index)
            elif phase == "Failed" or leaving:
                tally.seen.add(meta["uid"])
                failure = self._failed(job, pod, tally) or failure
            else:
                continue
            if phase in _OVER:
                self._release(pod)
        return failure

    def _failed(self, job: Obj, pod: Obj, tally: Tally) -> tuple[str, str] | None:
        spec, index = job["spec"], index_of(pod)
        action, words = matched(spec.get("podFailurePolicy"), pod)
        if action == "FailJob":
            tally.failed += 1
            return "PodFailurePolicy", words
        if action == "Ignore":
            return None
        tally.failed += 1
        tally.in_a_row += 1
        first = self._cluster.dials.job_backoff_s
        tally.not_before = self._cluster.now() + min(first * 2 ** (tally.in_a_row - 1), 36 * first)
        limit = spec.get("backoffLimitPerIndex")
        if limit is not None and index is not None:
            count = tally.failures[index] = tally.failures.get(index, 0) + 1
            tally.delays[index] = self._cluster.now() + first * 2 ** (count - 1)
            if action == "FailIndex" or count > limit:
                tally.bad.add(index)
        return None

    def _limits(self, job: Obj, tally: Tally, now: float) -> tuple[str, str] | None:
        spec = job["spec"]
        deadline, started = spec.get("activeDeadlineSeconds"), job["status"].get("startTime")
        if deadline is not None and started and not spec.get("suspend"):
            since = datetime.fromisoformat(started).timestamp()
            if now >= since + deadline:
                return "DeadlineExceeded", "Job was active longer than specified deadline"
            self.again(job, since + deadline - now + 0.01)
        most = spec.get("maxFailedIndexes")
        if most is not None and len(tally.bad) > most:
            return (
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            )
        if spec.get("backoffLimitPerIndex") is None and tally.failed > spec["backoffLimit"]:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if tally.bad and len(tally.bad | tally.done) >= (spec.get("completions") or 0):
            return "FailedIndexes", "Job has failed indexes"
        return None

    def _complete(self, job: Obj, tally: Tally, pods: list[Obj]) -> bool:
        spec = job["spec"]
        if spec.get("completions") is None:
            return tally.succeeded > 0 and not any(is_active(each) for each in pods)
        if spec["completionMode"] == "Indexed":
            return len(tally.done) >= int(spec["completions"])
        return tally.succeeded >= int(spec["completions"])

    # -- ends --------------------------------------------------------------------------------------

    def _finish(
        self, job: Obj, tally: Tally, pods: list[Obj], failure: tuple[str, str] | None
    ) -> None:
        """First what it will be; that it is so, when the last of its pods has ended."""
        self._remove(job, [each for each in pods if is_active(each)])
        pods = [each for _, each in self._store.owned(job["metadata"]["uid"], PODS)]
        left = [each for each in pods if each["status"].get("phase") not in _OVER]
        good = ("CompletionsReached", "Reached expected number of succeeded pods")
        reason, words = failure or good

        def act(new: Obj) -> None:
            at, status = self._cluster.stamp(), new["status"]
            first = "FailureTarget" if failure else "SuccessCriteriaMet"
            condition(status, first, True, reason, words, at, probed=True)
            self._shown(new, tally, pods)
            if left:
                return
            last = "Failed" if failure else "Complete"
            condition(status, last, True, reason, words, at, probed=True)
            if failure:
                self._cluster.event(JOBS, new, "Warning", reason, words, _NAME)
            else:
                status["completionTime"] = at
                self._cluster.event(JOBS, new, "Normal", "Completed", "Job completed", _NAME)
            seconds = new["spec"].get("ttlSecondsAfterFinished")
            if seconds is not None:
                self._cluster.after(seconds, lambda: self._expire(new))

        self._cluster.change(JOBS, job, act)

    def _expire(self, job: Obj) -> None:
        found = self._cluster.current(JOBS, job)
        if found is not None:
            options = DeleteOptions(policy="Foreground")
            self._registry.delete(JOBS, *key_of(found), options)

    # -- pods --------------------------------------------------------------------------------------

    def _manage(self, job: Obj, tally: Tally, pods: list[Obj], now: float) -> None:
        spec = job["spec"]
        strict = spec.get("podReplacementPolicy") == "Failed"
        active = [each for each in pods if is_active(each)]
        ending = [
            each
            for each in pods
            if each["metadata"].get("deletionTimestamp")
            and each["status"].get("phase") not in _OVER
        ]
        held = active + (ending if strict else [])
        wanted = spec["parallelism"]
        if spec.get("completions") is not None:
            done = len(tally.done) if spec["completionMode"] == "Indexed" else tally.succeeded
            wanted = min(wanted, max(0, spec["completions"] - done - len(tally.bad)))
        elif tally.succeeded:
            wanted = min(wanted, len(active))
        if spec["completionMode"] == "Indexed":
            self._indexed(job, tally, active, held, wanted, now)
            return
        if len(active) > wanted:
            self._remove(job, active[wanted:])
        missing = wanted - len(held)
        if missing <= 0:
            return
        if tally.in_a_row and now < tally.not_before:
            self.again(job, tally.not_before - now + 0.001)
            return
        for _ in range(missing):
            if not self._make(job, None, tally):
                return

    def _indexed(
        self, job: Obj, tally: Tally, active: list[Obj], held: list[Obj], wanted: int, now: float
    ) -> None:
        spec, taken = job["spec"], {index_of(each) for each in held}
        surplus = [each for each in active if (index_of(each) or 0) >= spec["completions"]]
        self._remove(job, surplus)
        missing = wanted - len(held) + len(surplus)
        for index in range(spec["completions"]):
            if missing <= 0:
                return
            if index in taken or index in tally.done or index in tally.bad:
                continue
            wait = tally.delays.get(index, 0.0)
            if spec.get("backoffLimitPerIndex") is None and tally.in_a_row:
                wait = tally.not_before
            if wait > now:
                self.again(job, wait - now + 0.001)
                continue
            if not self._make(job, index, tally):
                return
            missing -= 1

    def _make(self, job: Obj, index: int | None, tally: Tally) -> bool:
        pod = made(job, index, tally.failures.get(index or 0, 0))
        name = job["metadata"]["name"] + ("" if index is None else f"-{index}")
        pod["metadata"]["generateName"] = f"{name}-"
        pod["metadata"]["name"] = f"{name[:57]}-{self._cluster.suffix()}"
        namespace = job["metadata"]["namespace"]
        try:
            fresh = self._registry.create(PODS, namespace, pod).value
        except Problem as problem:
            words = f"Error creating: {problem.message}"
            self._cluster.event(JOBS, job, "Warning", "FailedCreate", words, _NAME)
            self.again(job, self._cluster.dials.job_backoff_s)
            return False
        words = f"Created pod: {fresh['metadata']['name']}"
        self._cluster.event(JOBS, job, "Normal", "SuccessfulCreate", words, _NAME)
        return True

    def _remove(self, job: Obj, pods: Iterable[Obj]) -> None:
        for each in pods:
            if self._cluster.current(PODS, each) is None:
                continue
            self._registry.delete(PODS, *key_of(each), DeleteOptions())
            words = f"Deleted pod: {each['metadata']['name']}"
            self._cluster.event(JOBS, job, "Normal", "SuccessfulDelete", words, _NAME)

    def _release(self, pod: Obj) -> None:
        if FINALIZER not in (pod["metadata"].get("finalizers") or ()):
            return

        def act(new: Obj) -> None:
            kept = [each for each in new["metadata"]["finalizers"] if each != FINALIZER]
            if kept:
                new["metadata"]["finalizers"] = kept
            else:
                del new["metadata"]["finalizers"]

        changed = self._cluster.change(PODS, pod, act)
        if changed is not None:
            self._registry.settled(PODS, changed)

    # -- status ------------------------------------------------------------------------------------

    def _shown(self, new: Obj, tally: Tally, pods: list[Obj]) -> None:
        status = new["status"]
        active = [each for each in pods if is_active(each)]
        ready = sum(is_true(each, "Ready") for each in active)
        ending = sum(
            bool(each["metadata"].get("deletionTimestamp"))
            and each["status"].get("phase") not in _OVER
            for each in pods
        )
        for name, value in (
            ("active", len(active)),
            ("succeeded", tally.succeeded),
            ("failed", tally.failed),
        ):
            if value:
                status[name] = value
            else:
                status.pop(name, None)
        status["ready"], status["terminating"] = ready, ending
        status["uncountedTerminatedPods"] = {}
        if new["spec"]["completionMode"] == "Indexed":
            status["completedIndexes"] = ranges(tally.done)
            status["succeeded"] = len(tally.done)
            if not status["succeeded"]:
                del status["succeeded"]
            if not status["completedIndexes"]:
                del status["completedIndexes"]
            if new["spec"].get("backoffLimitPerIndex") is not None:
                status["failedIndexes"] = ranges(tally.bad)
