"""Everything of a cluster put together, and the thread in which its controllers work.

Each controller hears of every change, and works off what that means for it, one after another,
until nothing is left to do; between them, requests come in.
"""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from typing import Protocol

from tests.cloud.faces.kubernetes import rbac
from tests.cloud.faces.kubernetes.api import Api
from tests.cloud.faces.kubernetes.budgets import Evictions
from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.collector import Collector
from tests.cloud.faces.kubernetes.jobs import Jobs
from tests.cloud.faces.kubernetes.jobsets import JobSets
from tests.cloud.faces.kubernetes.kubelet import Kubelet
from tests.cloud.faces.kubernetes.kueue import Kueue
from tests.cloud.faces.kubernetes.nodelife import NodeLife
from tests.cloud.faces.kubernetes.processes import Processes, possible
from tests.cloud.faces.kubernetes.rbac import User
from tests.cloud.faces.kubernetes.registry import Registry
from tests.cloud.faces.kubernetes.resources import NAMESPACES
from tests.cloud.faces.kubernetes.runtimes import Runtime
from tests.cloud.faces.kubernetes.scheduler import Scheduler
from tests.cloud.faces.kubernetes.store import Change
from tests.cloud.faces.kubernetes.tokens import Tokens
from tests.cloud.faces.kubernetes.volumes import Sight

ADMIN = User("kubernetes-admin", ("system:masters",))
_TURN = 0.02


class Controller(Protocol):
    def told(self, change: Change) -> None: ...
    def work(self) -> None: ...


class Manager:
    def __init__(self, folder: Path, bodies: str) -> None:
        self.cluster = cluster = Cluster()
        self.registry = registry = Registry(cluster)
        self.tokens = Tokens(cluster)
        self.evictions = Evictions(cluster, registry)
        self.sight = Sight(cluster, self.tokens.for_account)
        self.runtime = chosen(bodies, cluster, self.sight, folder)
        self.api = Api(cluster, registry, self.tokens, self.evictions.evict)
        self.kubelet = Kubelet(cluster, registry, self.runtime)
        self.nodes = NodeLife(cluster, registry)
        self.kueue = Kueue(cluster, registry)
        self.api.logs = self.kubelet.logs
        self._controllers: list[Controller] = [
            Collector(cluster, registry),
            JobSets(cluster, registry),
            self.kueue,
            Jobs(cluster, registry),
            Scheduler(cluster, registry),
            self.nodes,
            self.kubelet,
            self.runtime,
        ]
        self._changes: list[Change] = []
        cluster.store.listeners.append(self._changes.append)
        with cluster.lock:
            rbac.fill(cluster.store, cluster.stamp())
            for name in ("default", "kube-system", "kube-node-lease", "kube-public"):
                made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                registry.create(NAMESPACES, "", made)
        self._over = threading.Event()
        self.troubles: list[str] = []
        """What broke in a controller: equipment that is at fault says so."""
        self._thread = threading.Thread(target=self._run, daemon=True, name="controllers")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self.api.over = True
        self.cluster.woken.set()
        self._thread.join(10)
        with self.cluster.lock:
            self.runtime.close()

    def _run(self) -> None:
        while not self._over.is_set():
            self.cluster.woken.wait(_TURN)
            self.cluster.woken.clear()
            busy = True
            while busy and not self._over.is_set():
                with self.cluster.lock:
                    busy = self._turn()

    def _turn(self) -> bool:
        """Whether anything has happened."""
        before = self.cluster.store.version
        self.cluster.agenda.settle(self.cluster.now())
        for each in self._controllers:
            self._hear()
            try:
                each.work()
            except Exception:
                self.troubles.append(traceback.format_exc())
                sys.stderr.write(self.troubles[-1])
        self._hear()
        return self.cluster.store.version != before

    def _hear(self) -> None:
        while self._changes:
            fresh, self._changes[:] = list(self._changes), []
            for change in fresh:
                for each in self._controllers:
                    try:
                        each.told(change)
                    except Exception:
                        self.troubles.append(traceback.format_exc())
                        sys.stderr.write(self.troubles[-1])


def chosen(bodies: str, cluster: Cluster, sight: Sight, folder: Path) -> Runtime:
    if bodies == "none":
        return Runtime(cluster, sight)
    if bodies == "auto":
        bodies = "namespace" if possible(folder) else "process"
    if bodies == "namespace" and not possible(folder):
        words = (folder / "probe.error").read_text() if (folder / "probe.error").exists() else ""
        sys.exit(f"containers with a root of their own need root and overlayfs {words}")
    return Processes(cluster, sight, folder, root=bodies == "namespace")
