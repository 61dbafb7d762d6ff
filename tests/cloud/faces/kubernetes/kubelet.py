"""What a node does with pods that are bound to it: images, volumes, containers in order, restarts,
SIGTERM and grace, and what their status says of it.

It is one machine of states for all sorts of bodies: what a container is, its runtime knows
(runtimes.py), and it is looked at again whenever the pod has changed, one of its containers has
ended, or a time is over.

Known lies: images are not pulled; one with `missing` in its name never can be. No probes, no
lifecycle hooks, no sidecars (init containers run to their end).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.podstatus import Body, Box, image_fault, show
from tests.cloud.faces.kubernetes.problems import bad_request
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import PODS
from tests.cloud.faces.kubernetes.runtimes import NotYet, Runtime
from tests.cloud.faces.kubernetes.store import Change, Obj, key_of

_OVER = ("Succeeded", "Failed")


class Kubelet:
    def __init__(self, cluster: Cluster, registry: Registry, runtime: Runtime) -> None:
        self._cluster, self._registry, self._runtime = cluster, registry, runtime
        self._bodies: dict[str, Body] = {}
        self._due: dict[str, None] = {}
        self._dead_nodes: set[str] = set()
        runtime.woken = self._woken

    def told(self, change: Change) -> None:
        if change.resource is not PODS:
            if change.resource.plural in ("secrets", "configmaps") and change.sort == "ADDED":
                self._retry()
            return
        pod, uid = change.object, change.object["metadata"]["uid"]
        node = pod["spec"].get("nodeName")
        if change.sort == "DELETED":
            body = self._bodies.pop(uid, None)
            if body is not None:
                self._kill(body)
                self._runtime.forget(uid)
            return
        if uid in self._bodies:
            self._bodies[uid].pod = pod
            self._due[uid] = None
        elif node and node not in self._dead_nodes and pod["status"].get("phase") not in _OVER:
            self._bodies[uid] = self._begun(pod)
            self._due[uid] = None
        elif node and pod["metadata"].get("deletionTimestamp") and node not in self._dead_nodes:
            self._bodies[uid] = self._begun(pod)
            self._bodies[uid].phase = pod["status"]["phase"]
            self._due[uid] = None

    def _begun(self, pod: Obj) -> Body:
        spec = pod["spec"]
        boxes = [Box(each, True) for each in spec.get("initContainers") or ()]
        boxes += [Box(each, False) for each in spec["containers"]]
        if boxes[0].init:
            for each in boxes[1:]:
                each.state = {"waiting": {"reason": "PodInitializing"}}
        address = self._runtime.address()
        now = self._cluster.now()
        body = Body(pod, boxes, address, self._cluster.stamp(now))
        body.pulled_at = now + self._cluster.dials.pull_s
        return body

    def _retry(self) -> None:
        for uid, body in self._bodies.items():
            if not body.ready:
                body.not_before = min(body.not_before, self._cluster.now())
                self._due[uid] = None

    def _woken(self, uid: str) -> None:
        """By a container that has ended; called with the lock held."""
        self._due[uid] = None
        self._cluster.woken.set()

    def work(self) -> None:
        while self._due:
            uid = next(iter(self._due))
            del self._due[uid]
            body = self._bodies.get(uid)
            if body is not None and not body.dead:
                self._look(uid, body)

    def _later(self, uid: str, seconds: float) -> None:
        self._cluster.after(max(0.0, seconds) + 0.001, lambda: self._due.setdefault(uid, None))

    # -- a pod's life ------------------------------------------------------------------------------

    def _look(self, uid: str, body: Body) -> None:
        self._buried(body)
        meta = body.pod["metadata"]
        if body.phase in _OVER:
            if meta.get("deletionTimestamp"):
                self._gone(body)
            return
        deadline = body.pod["spec"].get("activeDeadlineSeconds")
        if deadline and body.ready and body.why is None:
            since = body.pulled_at
            if self._cluster.now() >= since + deadline:
                words = "Pod was active on the node longer than the specified deadline"
                body.why = "DeadlineExceeded", words
            else:
                self._later(uid, since + deadline - self._cluster.now())
        if meta.get("deletionTimestamp") or body.why is not None:
            self._end(uid, body)
        elif self._prepared(uid, body):
            self._advance(uid, body)
        self._report(uid, body)
        if body.phase in _OVER and meta.get("deletionTimestamp"):
            self._gone(body)

    def _prepared(self, uid: str, body: Body) -> bool:
        if body.ready:
            return True
        now, dials = self._cluster.now(), self._cluster.dials
        if now < body.not_before:
            self._later(uid, body.not_before - now)
            return False
        if now < body.pulled_at:
            self._later(uid, body.pulled_at - now)
            return False
        bad = [each for each in body.boxes if image_fault(each.spec["image"])]
        if bad:
            self._unpulled(body, bad)
            body.not_before = now + dials.pull_retry_s
            self._later(uid, dials.pull_retry_s)
            return False
        try:
            self._runtime.prepare(body.pod, body.address)
            for each in body.boxes:
                self._runtime.environment(body.pod, each.spec, body.address)
                self._runtime.user(body.pod, each.spec)
        except NotYet as error:
            self._config(body, error)
            body.not_before = now + dials.config_retry_s
            self._later(uid, dials.config_retry_s)
            return False
        body.ready = True
        return True

    def _unpulled(self, body: Body, bad: list[Box]) -> None:
        body.pulls += 1
        for each in bad:
            image, fault = each.spec["image"], image_fault(each.spec["image"])
            if fault == "InvalidImageName":
                words = f'Failed to apply default image tag "{image}": couldn\'t parse image name'
                each.state = {"waiting": {"reason": fault, "message": words}}
                self._said(body.pod, "Warning", "InspectFailed", words)
                continue
            words = (
                f'failed to pull and unpack image "{image}": failed to resolve reference '
                f'"{image}": not found'
            )
            if body.pulls % 2:
                each.state = {"waiting": {"reason": "ErrImagePull", "message": words}}
                told = f'Failed to pull image "{image}": {words}'
                self._said(body.pod, "Warning", "Failed", told)
            else:
                told = f'Back-off pulling image "{image}"'
                each.state = {
                    "waiting": {"reason": "ImagePullBackOff", "message": f"{told}: {words}"}
                }
                self._said(body.pod, "Normal", "BackOff", told)

    def _config(self, body: Body, error: NotYet) -> None:
        if error.reason == "FailedMount":
            words = f'MountVolume.SetUp failed for volume "{error.volume}" : {error.words}'
            self._said(body.pod, "Warning", "FailedMount", words)
            return
        self._said(body.pod, "Warning", "Failed", f"Error: {error.words}")
        for each in body.boxes:
            each.state = {"waiting": {"reason": error.reason, "message": error.words}}

    def _advance(self, uid: str, body: Body) -> None:
        policy = body.pod["spec"].get("restartPolicy", "Always")
        for each in body.boxes:
            if not each.init or each.code == 0:
                continue
            if each.code is not None and policy == "Never":
                body.phase = "Failed"
                return
            self._started(uid, body, each)
            return
        for each in body.mains:
            if each.code is None or policy == "Always" or (policy == "OnFailure" and each.code):
                self._started(uid, body, each)
        codes = [each.code for each in body.mains]
        ended = None not in codes and not any("waiting" in each.state for each in body.mains)
        if ended and (policy == "Never" or (policy == "OnFailure" and not any(codes))):
            body.phase = "Failed" if any(codes) else "Succeeded"
        elif any(each.runs for each in body.mains):
            body.phase = "Running"

    def _started(self, uid: str, body: Body, box: Box) -> None:
        if box.running:
            return
        now = self._cluster.now()
        if box.runs and not box.not_before:
            first = self._cluster.dials.crash_backoff_s
            box.not_before = now + (
                0 if box.runs == 1 else min(first * 2 ** (box.runs - 2), 30 * first)
            )
            if box.not_before > now:
                box.last = dict(box.state)
                name = f"{body.pod['metadata']['name']}_{body.pod['metadata']['namespace']}"
                words = (
                    f"back-off {box.not_before - now:g}s restarting failed "
                    f"container={box.spec['name']} pod={name}({uid})"
                )
                box.state = {"waiting": {"reason": "CrashLoopBackOff", "message": words}}
                told = (
                    f"Back-off restarting failed container {box.spec['name']} in pod {name}({uid})"
                )
                self._said(body.pod, "Warning", "BackOff", told)
        if now < box.not_before:
            self._later(uid, box.not_before - now)
            return
        box.not_before = 0.0
        if box.runs:
            box.last = box.last if "waiting" in box.state else dict(box.state)
            box.restarts += 1
        box.runs += 1
        box.handle = self._runtime.start(body.pod, box.spec, body.address, box.restarts)
        box.state = {"running": {"startedAt": self._cluster.stamp()}}
        name = box.spec["name"]
        self._said(body.pod, "Normal", "Created", f"Container created: {name}")
        self._said(body.pod, "Normal", "Started", f"Container started: {name}")

    def _buried(self, body: Body) -> None:
        for each in body.boxes:
            if each.handle is None or not each.running:
                continue
            code = each.handle.ended()
            if code is None:
                continue
            begun = each.state["running"]["startedAt"]
            words = each.handle.trouble()
            reason = "Completed" if code == 0 else "Error"
            if words:
                reason = "StartError"
            if each.killed_as:
                reason = each.killed_as
            ended: Obj = {"exitCode": code, "reason": reason}
            message = words or each.handle.last_words()
            if message:
                ended["message"] = message
            ended |= {"startedAt": begun, "finishedAt": self._cluster.stamp()}
            ended["containerID"] = each.handle.id
            each.state = {"terminated": ended}

    # -- its end -----------------------------------------------------------------------------------

    def _end(self, uid: str, body: Body) -> None:
        now, meta = self._cluster.now(), body.pod["metadata"]
        running = [each for each in body.boxes if each.running]
        if meta.get("deletionTimestamp"):
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
        else:
            grace = body.ends_by - now if body.ends_by else 0.0
        if not body.asked_to_end:
            body.asked_to_end = now
            body.ends_by = body.ends_by or now + grace
            for each in running:
                self._said(body.pod, "Normal", "Killing", f"Stopping container {each.spec['name']}")
                if each.handle is not None and grace > 0:
                    each.handle.terminate(self._cluster.dials.end_s)
        elif meta.get("deletionTimestamp"):
            body.ends_by = min(body.ends_by, body.asked_to_end + grace)
        if running and now < body.ends_by:
            self._later(uid, min(body.ends_by - now, 5.0))
            self._buried(body)
            running = [each for each in body.boxes if each.running]
            if running:
                return
        for each in running:
            if each.handle is not None:
                each.handle.kill()
        self._buried(body)
        if any(each.running for each in body.boxes):
            self._later(uid, 0.02)
            return
        codes = [each.code for each in body.mains]
        done = bool(codes) and all(code == 0 for code in codes) and body.why is None
        body.phase = "Succeeded" if done else "Failed"
        if body.why is not None:
            body.reason, body.words = body.why

    def _gone(self, body: Body) -> None:
        """It may be removed: the last word is the API server's."""
        current = self._cluster.current(PODS, body.pod)
        if current is not None and current["metadata"].get("deletionTimestamp"):
            options = DeleteOptions(grace_s=0, uid=current["metadata"]["uid"])
            self._registry.delete(PODS, *key_of(current), options)

    def _kill(self, body: Body) -> None:
        body.dead = True
        for each in body.boxes:
            if each.running and each.handle is not None:
                each.handle.kill()

    # -- what happens to nodes ---------------------------------------------------------------------

    def bodies_on(self, node: str) -> list[Body]:
        return [each for each in self._bodies.values() if each.pod["spec"].get("nodeName") == node]

    def power_off(self, node: str) -> None:
        """Everything in it ends at once, and nothing is said of it."""
        self._dead_nodes.add(node)
        for each in self.bodies_on(node):
            self._kill(each)

    def power_on(self, node: str) -> None:
        """Empty: what was bound to it begins again."""
        self._dead_nodes.discard(node)
        for uid, body in list(self._bodies.items()):
            if body.dead and body.pod["spec"].get("nodeName") == node:
                self._bodies[uid] = self._begun(body.pod)
                self._due[uid] = None

    def shut_down(self, node: str, grace_s: float) -> None:
        """As a node does that is told to go: its pods have that long."""
        words = "Pod was terminated in response to imminent node shutdown."
        for each in self.bodies_on(node):
            if each.phase in _OVER:
                continue
            self.stop(each.pod, "Terminated", words, grace_s)

    def stop(self, pod: Obj, reason: str, words: str, grace_s: float) -> None:
        body = self._bodies.get(pod["metadata"]["uid"])
        if body is None or body.phase in _OVER:
            return
        body.why = reason, words
        body.ends_by = self._cluster.now() + grace_s
        self._due[pod["metadata"]["uid"]] = None
        self._cluster.woken.set()

    def box(self, pod: Obj, container: str = "") -> Box:
        body = self._bodies.get(pod["metadata"]["uid"])
        boxes = body.boxes if body else []
        for each in boxes:
            if each.spec["name"] == container or (not container and not each.init):
                return each
        raise bad_request(f"container {container} is not valid for pod {pod['metadata']['name']}")

    def finish(self, pod: Obj, code: int, container: str = "", reason: str = "") -> None:
        """Of containers without bodies, or of any that is to be killed so."""
        box = self.box(pod, container)
        box.killed_as = reason
        if box.handle is None:
            raise ValueError(f"{pod['metadata']['name']} does not run")
        box.handle.finish(code)
        self._woken(pod["metadata"]["uid"])

    def pids(self, pod: Obj) -> list[int]:
        body = self._bodies.get(pod["metadata"]["uid"])
        handles = [each.handle for each in body.boxes if each.running] if body else []
        return [pid for each in handles if each is not None for pid in each.pids()]

    def logs(self, pod: Obj, query: Mapping[str, str]) -> bytes | Iterator[bytes]:
        names = [each["name"] for each in pod["spec"]["containers"]]
        name = query.get("container", "")
        pod_name = pod["metadata"]["name"]
        if not name and len(names) > 1:
            raise bad_request(
                f"a container name must be specified for pod {pod_name}, choose one of: "
                f"[{' '.join(names)}]"
            )
        name = name or names[0]
        box = self.box(pod, name)
        if not box.runs:
            waiting = (box.state.get("waiting") or {}).get("reason", "ContainerCreating")
            raise bad_request(
                f'container "{name}" in pod "{pod_name}" is waiting to start: {waiting}'
            )
        text = self._runtime.log(pod, name, box.restarts - (query.get("previous") == "true"))
        lines = text.splitlines(keepends=True)
        tail = query.get("tailLines", "")
        if tail.isdigit():
            lines = lines[len(lines) - int(tail) :] if int(tail) else []
        return b"".join(lines)

    # -- status ------------------------------------------------------------------------------------

    def _report(self, uid: str, body: Body) -> None:
        if body.dead:
            return
        self._cluster.change(PODS, body.pod, lambda new: show(new, body, self._cluster.stamp()))
        found = self._cluster.current(PODS, body.pod)
        if found is not None:
            body.pod = found

    def _said(self, pod: Obj, sort: str, reason: str, words: str) -> None:
        self._cluster.event(PODS, pod, sort, reason, words, "kubelet")
