"""Runs in a cluster: pods that are processes of this computer, a real S3 server that a Secret of
the namespace opens, and a store that `tradewind setup kubernetes` has set up there."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.clusters import GPU_NODE, Cluster
from tests.eventually import eventually
from tests.store import servers
from tests.system.gated import tradewind
from tests.system.rented import ROOT, Runs, variables
from tradewind import store as stores
from tradewind.api import rented, submit
from tradewind.model.event import Ended, LegOver, LegQueued, LegRequested, LegUp
from tradewind.model.run import Spec
from tradewind.providers.kubernetes.labels import INDEX, RUN
from tradewind.store.base import Store

BUCKET = "s3://runs"
NODES = ("big-0", "big-1", "big-2")
"""Of the cluster's, those that a run of two machines takes; the third is there when one goes."""
LAG_S = 5
"""In which what was made is listed: an API server tells at once."""


class InCluster(Runs[Cluster]):
    """Runs of one namespace and one store."""

    provider = "kubernetes"
    namespace: str
    watchers: list[subprocess.Popen[bytes]]

    def watch(
        self, run_id: str, name: str = "controller", pass_s: float = 1.0
    ) -> subprocess.Popen[bytes]:
        self.watchers.append(super().watch(run_id, name, pass_s))
        return self.watchers[-1]

    def submitted(
        self,
        folder: Path,
        work: str,
        on: Sequence[str] = ("kubernetes",),
        changed: Callable[[Spec], Spec] = lambda spec: spec,
    ) -> str:
        """As `tradewind run work.yaml --on kubernetes` does it, in that folder."""
        folder.mkdir(exist_ok=True)
        path = folder / "work.yaml"
        path.write_text(work.replace("BIN", str(self.cloud.programs)))
        where = rented.On(self.store, list(on))
        spec = submit.spec_of(submit.wanted(str(path), where), local=False, on=where)
        return submit.submit(self.store, changed(self.quick(spec)), folder)

    def quick(self, spec: Spec) -> Spec:
        ways = [replace(w, facts=replace(w.facts, listing_lag_s=LAG_S)) for w in spec.ways]
        return replace(spec, ways=tuple(ways))

    def events(self, run_id: str) -> list[Any]:
        return [event for commit in self.loaded(run_id).commits for event in commit.events]

    def ends(self, run_id: str) -> list[str]:
        return [each.cause for each in self.events(run_id) if isinstance(each, LegOver)]

    def legs_up(self, run_id: str) -> list[int]:
        return [each.leg for each in self.events(run_id) if isinstance(each, LegUp)]

    def asked(self, run_id: str) -> list[str]:
        """By whom machines were asked for, a leg after another."""
        return [e.request.way.provider for e in self.events(run_id) if isinstance(e, LegRequested)]

    def pods(self) -> list[dict[str, Any]]:
        """Of runs, as they are now."""
        return [each for each in self.cloud.objects("pods", self.namespace) if _is_run(each)]

    def pod(self, rank: int = 0) -> dict[str, Any]:
        """That runs."""

        def found() -> dict[str, Any]:
            for pod in self.pods():
                labels = pod["metadata"]["labels"]
                goes = "deletionTimestamp" in pod["metadata"]
                if labels[INDEX] == str(rank) and not goes and pod["status"]["phase"] == "Running":
                    return pod
            return {}

        return eventually(found, within_s=120)

    def node_of(self, rank: int) -> str:
        return str(self.pod(rank)["spec"]["nodeName"])

    def ended(self, run_id: str, within_s: float = 240.0) -> Ended:
        """However."""
        eventually(lambda: self.closed(run_id), within_s=within_s)
        (found,) = [event for event in self.events(run_id) if isinstance(event, Ended)]
        return found

    def waits(self, run_id: str) -> str:
        """Why, as the journal has it."""
        found = [event for event in self.events(run_id) if isinstance(event, LegQueued)]
        return found[-1].reason if found else ""

    def nothing_is_left(self) -> None:
        """Of any run."""

        def left() -> list[str]:
            kinds = ("jobs", "pods", "secrets", "services")
            return [
                f"{kind}/{each['metadata']['name']}"
                for kind in kinds
                for each in self.cloud.objects(kind, self.namespace)
                if _is_run(each)
            ]

        eventually(lambda: not left(), within_s=120)


def _is_run(thing: dict[str, Any]) -> bool:
    return RUN in (thing["metadata"].get("labels") or {})


@contextmanager
def a_store(folder: Path) -> Iterator[dict[str, str]]:
    """The variables that open it."""
    (folder / "s3").mkdir()
    with servers.s3(folder / "s3") as s3:
        yield {**s3, "TRADEWIND_PLAIN_HTTP": "127.0.0.1"}


@contextmanager
def a_namespace(
    cluster: Cluster, name: str, folder: Path, s3: dict[str, str], *settings: str, url: str = ""
) -> Iterator[InCluster]:
    """Set up for a store, its own if none is said, by the administrator, who looks after its runs
    too."""
    if not cluster.has_namespace(name):
        cluster.namespace(name)
    data = {key: base64.b64encode(value.encode()).decode() for key, value in s3.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store"}, "data": data}
    cluster.make("secrets", name, secret)
    env = s3 | {
        "KUBECONFIG": str(cluster.kubeconfig()),
        "TRADEWIND_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    url = url or f"{BUCKET}/{name}"
    with variables(env):
        tradewind(
            *("setup", "kubernetes", "--store", url, "--namespace", name, "--yes"),
            *("--store-secret", "store", "--grace", "10s", *settings),
        )
        store: Store = stores.open(url)
        world = InCluster(cluster, env, folder, store)
        world.namespace, world.watchers = name, []
        try:
            yield world
        finally:
            for each in world.watchers:
                each.kill()
                each.wait()


@contextmanager
def cordoned(cluster: Cluster, but: str = "") -> Iterator[None]:
    """No node takes a pod meanwhile, `but` this one."""
    _cordon(cluster, True, but)
    try:
        yield
    finally:
        _cordon(cluster, False, but)


def _cordon(cluster: Cluster, on: bool, but: str) -> None:
    _, found = cluster.ask("GET", "/api/v1/nodes")
    for name in (node["metadata"]["name"] for node in found["items"]):
        if name == but:
            continue
        patch = {"spec": {"unschedulable": on}}
        status, answer = cluster.ask("PATCH", f"/api/v1/nodes/{name}", patch)
        assert status == 200, answer


def add_nodes(cluster: Cluster, names: Sequence[str] = NODES) -> None:
    for name in names:
        cluster.add(name, GPU_NODE)
