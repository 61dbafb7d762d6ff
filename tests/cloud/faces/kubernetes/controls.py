"""What a test may ask of the cluster besides its API; control.py is its other end. Every public
method is a request: its arguments and answers are JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cloud.dials import Fault
from tests.cloud.faces.kubernetes import nodelife
from tests.cloud.faces.kubernetes.cluster import condition
from tests.cloud.faces.kubernetes.rbac import User
from tests.cloud.faces.kubernetes.registry import DeleteOptions
from tests.cloud.faces.kubernetes.resources import BY_NAME, NODES, PODS
from tests.cloud.faces.kubernetes.store import Obj, key_of

if TYPE_CHECKING:
    from tests.cloud.faces.kubernetes.server import Server

_SHUT = "node.kubernetes.io/out-of-service"
_H100 = "NVIDIA-H100-80GB-HBM3"


class Controls:
    def __init__(self, server: Server) -> None:
        self._server, self._manager = server, server.manager
        self._cluster = self._manager.cluster

    def do(self, name: str, asked: dict[str, Any]) -> Any:
        method = None if name.startswith("_") or name == "do" else getattr(self, name, None)
        if method is None:
            raise ValueError(f"there is no control {name!r}")
        with self._cluster.lock:
            found = method(**asked)
        self._cluster.woken.set()
        return found

    # -- looking -----------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        return {
            "now": self._cluster.now(),
            "bodies": self._manager.runtime.sort,
            "version": self._cluster.store.version,
            "troubles": self._manager.troubles,
        }

    def calls(self) -> list[dict[str, Any]]:
        return self._cluster.calls

    def forget_calls(self) -> None:
        self._cluster.calls.clear()

    def objects(self, resource: str, namespace: str) -> list[Obj]:
        return self._cluster.store.all(BY_NAME[resource], namespace)

    def left(self, namespace: str) -> list[str]:
        """What is in a namespace beyond what every namespace has, and events."""
        found = []
        for each in BY_NAME.values():
            if not each.namespaced or each.plural == "events":
                continue
            for value in self._cluster.store.all(each, namespace):
                name = value["metadata"]["name"]
                if name not in ("default", "kube-root-ca.crt"):
                    found.append(f"{each.qualified}/{name}")
        return found

    def pids(self, namespace: str, pod: str) -> list[int]:
        return self._manager.kubelet.pids(self._pod(namespace, pod))

    def claim(self, namespace: str, name: str) -> str:
        from tests.cloud.faces.kubernetes.processes import Processes

        runtime = self._manager.runtime
        if not isinstance(runtime, Processes):
            raise ValueError("there are no claims without bodies")
        return str(runtime.claim(namespace, name))

    # -- dials -------------------------------------------------------------------------------------

    def dials(self, **settings: Any) -> None:
        self._cluster.dials.turn(**settings)

    def fail(
        self, action: str, code: str, count: int, message: str, status: int, after: bool
    ) -> None:
        self._cluster.dials.faults.append(Fault(action, code, message, status, count, after))

    def lose(self, action: str, count: int) -> None:
        self._cluster.dials.lost[action] = count

    def advance(self, seconds: float) -> None:
        self._cluster.clock.advance(seconds)

    def hold(self) -> None:
        self._cluster.clock.hold()

    def compact(self) -> None:
        """Pages and watches that were begun are too old now."""
        self._manager.api.pages.rests.clear()
        self._cluster.store.history.clear()

    def restart(self, away_s: float | None) -> None:
        usual = self._cluster.dials.restart_s
        self._server.restart(usual if away_s is None else away_s)

    # -- users -------------------------------------------------------------------------------------

    def user(self, name: str, groups: list[str], lives_s: float) -> str:
        return self._manager.tokens.make(User(name, tuple(groups)), lives_s)

    def account(self, namespace: str, name: str, lives_s: float) -> str:
        return self._manager.tokens.for_account(namespace, name, lives_s)

    def expire(self, name: str) -> None:
        self._manager.tokens.expire(name)

    def certificate(self, name: str, groups: list[str]) -> dict[str, str]:
        """Of a client: with its key."""
        made = self._server.authority.issue_cert(
            "client@example.com",
            common_name=name,
            organization_name=groups[0] if groups else None,
        )
        chain = b"".join(each.bytes() for each in made.cert_chain_pems)
        return {"certificate": chain.decode(), "key": made.private_key_pem.bytes().decode()}

    # -- nodes -------------------------------------------------------------------------------------

    def usual_nodes(self) -> None:
        self.add("cpu-0", {"cpu": "16", "memory": "64Gi"}, {}, [])
        for at in (0, 1):
            labels = {
                "nvidia.com/gpu.product": _H100,
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.memory": "81559",
                "node.kubernetes.io/instance-type": "gpu-8x-h100",
                "topology.kubernetes.io/zone": "zone-a",
                "topology.kubernetes.io/region": "here",
            }
            if at == 1:
                labels["karpenter.sh/capacity-type"] = "spot"
            whole = {"cpu": "192", "memory": "2000Gi", "nvidia.com/gpu": "8"}
            self.add(f"gpu-{at}", whole, labels, [])

    def add(
        self, name: str, capacity: dict[str, Any], labels: dict[str, str], taints: list[Any]
    ) -> None:
        made = nodelife.made(name, capacity, labels, taints, self._cluster.stamp())
        self._manager.kubelet.power_on(name)
        self._manager.registry.create(NODES, "", made)

    def fill(
        self, count: int, prefix: str, capacity: dict[str, Any], labels: dict[str, str]
    ) -> None:
        for at in range(count):
            self.add(f"{prefix}-{at}", capacity, labels, [])

    def vanish(self, node: str) -> None:
        self._node(node)
        self._manager.kubelet.power_off(node)
        self._manager.registry.delete(NODES, "", node)

    def silent(self, node: str) -> None:
        self._node(node)
        self._manager.kubelet.power_off(node)
        self._manager.nodes.hush(node)

    def restore(self, node: str) -> None:
        self._node(node)
        self._manager.kubelet.power_on(node)
        self._manager.nodes.speak(node)

    def notice(self, node: str, grace_s: float) -> None:
        def act(new: Obj) -> None:
            new["spec"]["unschedulable"] = True
            taint = {"key": _SHUT, "value": "spot-interruption", "effect": "NoSchedule"}
            new["spec"].setdefault("taints", []).append(taint)
            at, words = self._cluster.stamp(), "node is shutting down"
            condition(new["status"], "Ready", False, "KubeletNotReady", words, at)

        found = self._node(node)
        self._cluster.change(NODES, found, act)
        words = "Shutdown manager detected shutdown event"
        self._cluster.event(NODES, found, "Normal", "NodeShutdown", words, "kubelet")
        self._manager.kubelet.shut_down(node, grace_s)
        self._cluster.after(grace_s, lambda: self._ended(node, grace_s))

    def _ended(self, node: str, grace_s: float) -> None:
        if self._cluster.store.get(NODES, "", node) is not None:
            # The last words of its kubelet are heard before it is gone.
            self._cluster.after(0.3, lambda: self.vanish(node))

    def cordon(self, node: str, on: bool) -> None:
        def act(new: Obj) -> None:
            new["spec"]["unschedulable"] = True
            if not on:
                del new["spec"]["unschedulable"]

        self._cluster.change(NODES, self._node(node), act)

    def drain(self, node: str) -> None:
        """As `kubectl drain` does: cordoned, and each pod evicted by the API."""
        self.cordon(node, True)
        for pod in self._manager.nodes.pods(node):
            self._manager.evictions.evict(pod)

    def taint(self, node: str, key: str, value: str, effect: str) -> None:
        def act(new: Obj) -> None:
            taint = {"key": key, "value": value, "effect": effect}
            new["spec"].setdefault("taints", []).append(taint)

        self._cluster.change(NODES, self._node(node), act)

    def label(self, node: str, labels: dict[str, str]) -> None:
        def act(new: Obj) -> None:
            new["metadata"]["labels"] |= labels

        self._cluster.change(NODES, self._node(node), act)

    def _node(self, name: str) -> Obj:
        found = self._cluster.store.get(NODES, "", name)
        if found is None:
            raise ValueError(f"there is no node {name}")
        return found

    # -- pods --------------------------------------------------------------------------------------

    def _pod(self, namespace: str, name: str) -> Obj:
        found = self._cluster.store.get(PODS, namespace, name)
        if found is None:
            raise ValueError(f"there is no pod {namespace}/{name}")
        return found

    def evict(self, namespace: str, pod: str, by_api: bool) -> None:
        """By the API (DisruptionTarget, its grace, deleted), or by its node that runs out of
        something (phase Failed, reason Evicted; it stays)."""
        found = self._pod(namespace, pod)
        if by_api:
            self._manager.evictions.evict(found)
            return
        words = "The node was low on resource: ephemeral-storage. "
        grace = float(found["spec"].get("terminationGracePeriodSeconds", 30))
        self._manager.kubelet.stop(found, "Evicted", words, grace)
        self._cluster.event(PODS, found, "Warning", "Evicted", words, "kubelet")

    def oom(self, namespace: str, pod: str, container: str) -> None:
        found = self._pod(namespace, pod)
        self._manager.kubelet.finish(found, 137, container, "OOMKilled")

    def finish(self, namespace: str, pod: str, code: int, container: str) -> None:
        self._manager.kubelet.finish(self._pod(namespace, pod), code, container)

    def force_delete(self, namespace: str, pod: str) -> None:
        found = self._pod(namespace, pod)
        self._manager.registry.delete(PODS, *key_of(found), DeleteOptions(grace_s=0))

    # -- queues ------------------------------------------------------------------------------------

    def queue(self, name: str, namespace: str, quota: dict[str, str], local: str) -> None:
        self._manager.kueue.furnish(name, namespace, quota, local)

    def evict_workload(self, namespace: str, job: str, reason: str, words: str) -> None:
        self._manager.kueue.evict(namespace, job, reason, words)
