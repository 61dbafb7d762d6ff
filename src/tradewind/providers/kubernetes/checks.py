"""`tradewind doctor kubernetes`: whether runs could go to clusters from here now. Nothing is bought
or changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess, NotFound, TradewindError
from tradewind.base.units import format_names
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, About, Finding
from tradewind.providers.kubernetes import asking, labels, login, rights
from tradewind.providers.kubernetes.client import Client, paths, selector
from tradewind.providers.kubernetes.footprint import Cluster, Footprint, setup_command
from tradewind.providers.kubernetes.offers import look
from tradewind.providers.kubernetes.offers.quantities import amount
from tradewind.providers.kubernetes.things import CONTROLLER, Object

_SKEW_S = 60
_NEED = "runs on clusters"
_found = About("kubernetes")


def checks(footprint: Footprint | None, *, known: bool, store_url: str) -> Iterator[Finding]:
    if footprint is None:
        try:
            contexts, current = login.contexts()
        except TradewindError as error:
            yield _trouble("kubernetes", error)
            return
        some = f"{len(contexts)} contexts ({current or 'none'} is the present one)"
        if contexts or login.in_cluster():
            yield _found(OK, f"the kubeconfig has {some}" if contexts else "in a pod")
        else:
            yield _found(
                MISSING,
                f"there is no kubeconfig at {login.path()}",
                why=_NEED,
                todo="let your cloud write one (gcloud container clusters get-credentials, aws eks"
                " update-kubeconfig, az aks get-credentials), or KUBECONFIG=…",
            )
        if known:
            yield _found(
                MISSING,
                "nothing is set up for this store",
                why=_NEED,
                todo=setup_command(store_url, *([current] if current else [])),
            )
        return
    for name, cluster in footprint.clusters.items():
        try:
            yield from _Cluster(name, cluster, store_url).findings()
        except TradewindError as error:
            yield _trouble(f"kubernetes {name}", error)


def _trouble(about: str, error: TradewindError) -> Finding:
    return About(about)(
        BROKEN if isinstance(error, NoAccess | NotFound) else WARNING,
        "it cannot be used from here" if isinstance(error, NoAccess | NotFound) else "no answer",
        why=error.message,
        todo=error.hint or "run it again",
    )


class _Cluster:
    def __init__(self, name: str, cluster: Cluster, store_url: str) -> None:
        self._name, self._cluster, self._url = name, cluster, store_url
        self._found = About(f"kubernetes {name}")
        self._client = Client(cluster.context, server=cluster.server)
        self._mends = setup_command(store_url, cluster.context or login.IN_CLUSTER)

    def findings(self) -> Iterator[Finding]:
        version = asking.version(self._client)
        yield self._found(OK, f"{self._client.shown} answers: Kubernetes {version}")
        yield from self._clock()
        space = self._cluster.namespace
        path = f"/api/v1/namespaces/{space}"
        there = asking.read(self._client, path, "looking for the namespace")
        if there is None and asking.may(self._client, "get", "", "namespaces", name=space):
            yield self._found(
                BROKEN, f"namespace {space} is not there", why=_NEED, todo=self._mends
            )
            return
        lacking = asking.lacking(self._client, rights.of(self._cluster), space)
        if lacking:
            yield self._found(
                BROKEN,
                f"in namespace {space} we may not {format_names(lacking, 6)}",
                why=_NEED,
                todo=f"{self._mends} --print yaml | kubectl apply -f - makes the Role"
                f" {CONTROLLER}; whoever runs the cluster binds it to you",
            )
        else:
            yield self._found(OK, f"in namespace {space} we may do all that runs need")
        yield from self._made()
        yield from self._nodes()
        yield from self._quota()
        yield self._up()

    def _clock(self) -> Iterator[Finding]:
        ahead = self._client.at_s() - clock.now().timestamp()
        if abs(ahead) > _SKEW_S:
            yield self._found(
                WARNING,
                f"its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} ours",
                why="certificates and links may not be valid yet, or any more",
                todo="timedatectl tells whether this computer's clock is right",
            )

    def _made(self) -> Iterator[Finding]:
        cluster = self._cluster
        core = f"/api/v1/namespaces/{cluster.namespace}"
        wanted = [("service account", "serviceaccounts", cluster.service_account)]
        if cluster.identity == "secret":
            wanted.append(("secret", "secrets", cluster.store_secret))
        if cluster.volume:
            wanted.append(("volume claim", "persistentvolumeclaims", cluster.volume))
        for what, kind, name in wanted:
            path = f"{core}/{kind}/{name}"
            there = asking.read(self._client, path, f"looking for the {what}")
            if there is not None:
                phase = (there.get("status") or {}).get("phase", "")
                if kind == "persistentvolumeclaims" and phase not in ("Bound", ""):
                    yield self._found(
                        BROKEN,
                        f"the volume claim {name} is {phase}",
                        why="pods that mount it wait",
                        todo=f"kubectl -n {cluster.namespace} describe pvc {name}",
                    )
                continue
            if asking.may(self._client, "get", "", kind, cluster.namespace, name):
                yield self._found(
                    BROKEN, f"the {what} {name} is not there", why=_NEED, todo=self._mends
                )
        if cluster.queue:
            yield self._queue()

    def _queue(self) -> Finding:
        cluster = self._cluster
        if cluster.queue in asking.queues(self._client, cluster.namespace):
            return self._found(OK, f"runs go through Kueue's queue {cluster.queue}")
        return self._found(
            BROKEN,
            f"the LocalQueue {cluster.queue} is not there, or may not be read",
            why="Jobs of it would wait for ever",
            todo=f"kubectl -n {cluster.namespace} get localqueues; {self._mends} --queue NAME",
        )

    def _nodes(self) -> Iterator[Finding]:
        sight = look.look(self._client, self._name, self._cluster)
        for words in sight.warnings:
            yield self._found(WARNING, words, why="less is known of what is available")
        if sight.nodes is None and not sight.shapes:
            return
        rows = [each for each in sight.shapes if each.asked == each.chip.number]
        if not rows:
            yield self._found(
                BROKEN,
                f"none of its {len(sight.nodes or ())} nodes has an accelerator that pods can ask"
                " for",
                why="runs are planned for accelerators",
                todo="a device plugin lets pods ask for them (for NVIDIA the GPU operator);"
                f" {self._mends} --accelerator h100:8 tells of nodes that are not up yet",
            )
            return
        for each in rows:
            market = "spot" if each.spot else "on demand"
            chip = f"{each.chip.number}× {each.chip.name or each.chip.resource}"
            yield self._found(
                OK,
                f"{each.name} ({chip}, {market}): {each.sure}",
                measured={"machines": each.machines, "free": each.free},
            )

    def _quota(self) -> Iterator[Finding]:
        path = f"/api/v1/namespaces/{self._cluster.namespace}/resourcequotas"
        for quota in asking.listed(self._client, path, "asking for the quota") or ():
            hard = ((quota.get("spec") or {}).get("hard")) or {}
            for what, text in hard.items():
                if "/" in what and amount(text) <= 0:
                    yield self._found(
                        BROKEN,
                        f"the quota {quota['metadata']['name']} allows 0 of {what}",
                        why="no pod that asks for one is ever made",
                        todo=f"kubectl -n {self._cluster.namespace} describe resourcequota; whoever"
                        " runs the cluster raises it",
                    )

    def _up(self) -> Finding:
        ours = selector(labels.of_owner(labels.owner_of(self._url)))
        jobs: list[Any] = self._client.all(
            paths(self._cluster.namespace)["jobs"], Object, "listing Jobs", labels=ours
        )
        return self._found(OK, f"{len(jobs)} Jobs of this store", measured={"jobs": len(jobs)})
