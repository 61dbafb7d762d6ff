"""Nodes: how they join, and what the cluster does when one stays silent, is tainted, or is gone.

A silent node's Ready becomes Unknown after `node_lost_s`, it is tainted unreachable, and pods that
do not tolerate that any longer are deleted; they stay Terminating until the node is deleted or is
back.
The pods of a node that was removed are found by the pod garbage collector, after `quarantine_s`
and then at its next round (`gc_every_s`): they are Failed with DisruptionTarget, and deleted at
once.

Known lies: no leases and no heartbeats between; whoever is silent is known to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cloud.faces.kubernetes.cluster import Cluster, condition
from tests.cloud.faces.kubernetes.collector import disrupt
from tests.cloud.faces.kubernetes.placement import tolerated
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Registry
from tests.cloud.faces.kubernetes.resources import NODES, PODS
from tests.cloud.faces.kubernetes.store import Change, Obj, key_of

UNREACHABLE = "node.kubernetes.io/unreachable"
_OVER = ("Succeeded", "Failed")


def made(
    name: str, capacity: Mapping[str, Any], labels: Mapping[str, str], taints: Any, stamp: str
) -> Obj:
    whole = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    whole |= {each: str(value) for each, value in capacity.items()}
    known = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
    }
    ready: Obj = {"capacity": whole, "allocatable": dict(whole)}
    condition(
        ready, "Ready", True, "KubeletReady", "kubelet is posting ready status", stamp, probed=False
    )
    ready["conditions"][0]["lastHeartbeatTime"] = stamp
    ready["addresses"] = [
        {"type": "InternalIP", "address": "127.0.0.1"},
        {"type": "Hostname", "address": name},
    ]
    ready["nodeInfo"] = {
        "architecture": "amd64",
        "bootID": name,
        "containerRuntimeVersion": "bodies://1",
        "kernelVersion": "6.1",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.36.4",
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "bodies",
        "systemUUID": name,
    }
    spec: Obj = {"providerID": f"bodies://{name}"}
    if taints:
        spec["taints"] = list(taints)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": known | dict(labels)},
        "spec": spec,
        "status": ready,
    }


class NodeLife:
    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        self._cluster, self._registry, self._store = cluster, registry, cluster.store
        self.silent: set[str] = set()
        self._gone: dict[str, float] = {}
        self._look: dict[str, None] = {}
        self._round = False

    def told(self, change: Change) -> None:
        if change.resource is NODES:
            name = change.object["metadata"]["name"]
            if change.sort == "DELETED":
                self._gone[name] = self._cluster.now()
                self.silent.discard(name)
                self._rounds()
            else:
                self._gone.pop(name, None)
                self._look[name] = None
        elif change.resource is PODS and change.sort != "DELETED":
            pod = change.object
            node = pod["spec"].get("nodeName")
            if node and (change.old is None or not change.old["spec"].get("nodeName")):
                self._look[node] = None
                if self._store.get(NODES, "", node) is None:
                    self._gone.setdefault(node, self._cluster.now())
                    self._rounds()
            if not node and pod["metadata"].get("deletionTimestamp"):
                self._rounds()

    def work(self) -> None:
        names, self._look = list(self._look), {}
        for name in names:
            node = self._store.get(NODES, "", name)
            if node is not None:
                for taint in (node.get("spec") or {}).get("taints") or ():
                    if taint["effect"] == "NoExecute":
                        self._tainted(node, taint)

    # -- silence -----------------------------------------------------------------------------------

    def hush(self, name: str) -> None:
        """Its kubelet says nothing any more."""
        self.silent.add(name)
        self._cluster.after(self._cluster.dials.node_lost_s, lambda: self._lost(name))

    def speak(self, name: str) -> None:
        self.silent.discard(name)
        node = self._store.get(NODES, "", name)
        if node is not None:
            self._cluster.change(NODES, node, self._ready)

    def _ready(self, new: Obj) -> None:
        at = self._cluster.stamp()
        words = "kubelet is posting ready status"
        condition(new["status"], "Ready", True, "KubeletReady", words, at)
        kept = [each for each in new["spec"].get("taints") or () if each["key"] != UNREACHABLE]
        new["spec"]["taints"] = kept
        if not kept:
            del new["spec"]["taints"]

    def _lost(self, name: str) -> None:
        node = self._store.get(NODES, "", name)
        if node is None or name not in self.silent:
            return

        def act(new: Obj) -> None:
            at = self._cluster.stamp()
            words = "Kubelet stopped posting node status."
            condition(new["status"], "Ready", "Unknown", "NodeStatusUnknown", words, at)
            taints = new["spec"].setdefault("taints", [])
            for effect in ("NoSchedule", "NoExecute"):
                taints.append({"key": UNREACHABLE, "effect": effect, "timeAdded": at})

        changed = self._cluster.change(NODES, node, act)
        if changed is not None:
            words = f"Node {name} status is now: NodeNotReady"
            self._cluster.event(NODES, changed, "Normal", "NodeNotReady", words, "node-controller")
        for pod in self.pods(name):
            self._cluster.change(PODS, pod, self._unready)

    def _unready(self, new: Obj) -> None:
        at = self._cluster.stamp()
        if any(each["type"] == "Ready" for each in new["status"].get("conditions") or ()):
            condition(new["status"], "Ready", False, "", "", at, probed=True)

    def pods(self, node: str) -> list[Obj]:
        return [
            each
            for each in self._store.all(PODS)
            if each["spec"].get("nodeName") == node and each["status"].get("phase") not in _OVER
        ]

    # -- taints ------------------------------------------------------------------------------------

    def _tainted(self, node: Obj, taint: Obj) -> None:
        for pod in self.pods(node["metadata"]["name"]):
            if pod["metadata"].get("deletionTimestamp"):
                continue
            suits = tolerated(pod["spec"].get("tolerations"), taint)
            if suits is None:
                self._evicted(pod)
            elif suits.get("tolerationSeconds") is not None:
                self._wait(node["metadata"]["name"], taint, pod, suits["tolerationSeconds"])

    def _wait(self, node: str, taint: Obj, pod: Obj, seconds: float) -> None:
        uid = pod["metadata"]["uid"]
        self._cluster.after(seconds, lambda: self._tired(node, taint, uid))

    def _tired(self, node: str, taint: Obj, uid: str) -> None:
        found, there = self._store.by_uid(uid), self._store.get(NODES, "", node)
        if found is None or there is None:
            return
        if any(
            (each["key"], each["effect"]) == (taint["key"], taint["effect"])
            for each in (there.get("spec") or {}).get("taints") or ()
        ):
            self._evicted(found[1])

    def _evicted(self, pod: Obj) -> None:
        words = "Taint manager: deleting due to NoExecute taint"
        disrupt(self._cluster, self._registry, pod, "DeletionByTaintManager", words)
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._cluster.event(
            PODS,
            pod,
            "Normal",
            "TaintManagerEviction",
            f"Marking for deletion Pod {name}",
            "taint-eviction-controller",
        )

    # -- the pod garbage collector -----------------------------------------------------------------

    def _rounds(self) -> None:
        if not self._round:
            self._round = True
            self._cluster.after(self._cluster.dials.gc_every_s, self._collect)

    def _collect(self) -> None:
        self._round = False
        now, dials = self._cluster.now(), self._cluster.dials
        left = False
        for pod in self._store.all(PODS):
            node, meta = pod["spec"].get("nodeName"), pod["metadata"]
            if not node and meta.get("deletionTimestamp"):
                self._failed(pod)
            elif node in self._gone and self._store.get(NODES, "", node) is None:
                if now - self._gone[node] < dials.quarantine_s:
                    left = True
                    continue
                self._failed(pod, "PodGC: node no longer exists")
        if left:
            self._rounds()

    def _failed(self, pod: Obj, words: str = "") -> None:
        def act(new: Obj) -> None:
            if new["status"].get("phase") in _OVER:
                return
            new["status"]["phase"] = "Failed"
            if words:
                at, reason = self._cluster.stamp(), "DeletionByPodGC"
                condition(new["status"], "DisruptionTarget", True, reason, words, at, probed=True)

        changed = self._cluster.change(PODS, pod, act)
        if changed is not None:
            self._registry.delete(PODS, *key_of(changed), DeleteOptions(grace_s=0))
