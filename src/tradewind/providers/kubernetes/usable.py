"""Of a plan's ways, those that clusters can be asked for, each with what its pods ask for.

What is free is of this moment: a way whose nodes are all in use is kept, since its pods wait
unpaid until there is room. One that could never have room is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tradewind.base.errors import TradewindError
from tradewind.model.run import Way
from tradewind.providers.kubernetes import asking
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.footprint import Cluster, Footprint, setup_command
from tradewind.providers.kubernetes.offers import look, scaling
from tradewind.providers.kubernetes.offers.quantities import amount
from tradewind.providers.kubernetes.offers.shapes import Shape
from tradewind.providers.usable import Reason, Usable

NAME = "kubernetes"


def usable(footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
    wanted = {way.region for way in ways}
    asked = Footprint(clusters={k: v for k, v in footprint.clusters.items() if k in wanted})
    sights = look.sights(asked)
    broken = [each for each in sights.values() if isinstance(each, TradewindError)]
    if broken and len(broken) == len(sights):
        raise broken[0]
    judge = _Judge(footprint, sights, store_url)
    kept: list[Way] = []
    rejected: list[Reason] = []
    for way in ways:
        found = judge.judged(way)
        if isinstance(found, Reason):
            rejected.append(found)
        else:
            kept.append(found)
    return Usable(
        ways=tuple(kept), rejected=tuple(rejected), warnings=tuple(dict.fromkeys(judge.warnings))
    )


class _Judge:
    def __init__(
        self,
        footprint: Footprint,
        sights: dict[str, look.Sight | TradewindError],
        store_url: str,
    ) -> None:
        self._footprint, self._sights, self._store_url = footprint, sights, store_url
        self._quotas: dict[str, dict[str, float]] = {}
        self._pools: dict[str, list[dict[str, Any]]] = {}
        self.warnings: list[str] = []

    def judged(self, way: Way) -> Way | Reason:
        cluster = self._footprint.clusters.get(way.region)
        if cluster is None:
            adds = setup_command(self._store_url, way.region)
            return self._because(way, "no_setup", f"{way.region} is not set up", adds)
        sight = self._sights[way.region]
        if isinstance(sight, TradewindError):
            return self._because(way, "not_read", sight.message, sight.hint or "")
        shape = sight.shape(way.instance_type, way.market)
        if shape is None:
            pools = self._pooled(way.region, cluster)
            shape = scaling.bought(way.instance_type, way.market, pools) if pools else None
        if shape is None:
            spot = "spot " if way.market == "spot" else ""
            return self._because(
                way,
                "not_read" if sight.nodes is None else "not_offered",
                f"no {spot}node of {way.region} is such a one"
                if sight.nodes is not None
                else f"nodes of {way.region} may not be read, and nobody has told that there are"
                f" {way.instance_type}",
                "tradewind doctor kubernetes shows what there is",
            )
        if way.nodes > shape.machines:
            return self._because(
                way,
                "not_offered",
                f"{way.region} has room for {shape.machines} of {way.instance_type}, and"
                f" {way.nodes} are needed",
            )
        hosts = shape.chip.hosts
        if reason := self._over_quota(way, cluster, shape, way.nodes * hosts):
            return reason
        if shape.free is not None and shape.free < way.nodes:
            self.warnings.append(
                f"{way.instance_type} in {way.region}: {shape.sure}, and {way.nodes} are needed;"
                " it waits for the others, unpaid"
            )
        return replace(
            way,
            nodes=way.nodes * hosts,
            workers=hosts,
            price=round(way.price / hosts),
            layout=way.layout | {NAME: shape.placement},
        )

    def _over_quota(self, way: Way, cluster: Cluster, shape: Shape, pods: int) -> Reason | None:
        """However little others use of it."""
        hard = self._quota(way.region, cluster)
        needs = {"pods": float(pods), "count/jobs.batch": 1.0}
        for name, text in shape.resources.items():
            much = amount(text) * pods
            needs |= {f"requests.{name}": much, f"limits.{name}": much}
            if "/" not in name:
                needs[name] = much
        for name, much in needs.items():
            if name in hard and hard[name] < much:
                return self._because(
                    way,
                    "quota",
                    f"the quota of namespace {cluster.namespace} in {way.region} allows"
                    f" {hard[name]:g} of {name}, and {much:g} are needed",
                    f"kubectl --context {cluster.context} -n {cluster.namespace} describe"
                    " resourcequota shows it; whoever runs the cluster raises it",
                )
        return None

    def _quota(self, name: str, cluster: Cluster) -> dict[str, float]:
        """The least of all of the namespace's, where they may be read."""
        if name not in self._quotas:
            client = Client(cluster.context, server=cluster.server)
            path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
            found = asking.listed(client, path, "asking for the namespace's quota") or []
            least: dict[str, float] = {}
            for quota in found:
                spec = quota.get("spec") or {}
                if spec.get("scopes") or spec.get("scopeSelector"):
                    continue  # of some pods only
                for what, text in (spec.get("hard") or {}).items():
                    least[what] = min(least.get(what, float("inf")), amount(text))
            self._quotas[name] = least
        return self._quotas[name]

    def _pooled(self, name: str, cluster: Cluster) -> list[dict[str, Any]]:
        if name not in self._pools:
            client = Client(cluster.context, server=cluster.server)
            path = "/apis/karpenter.sh/v1/nodepools"
            self._pools[name] = asking.listed(client, path, "asking what Karpenter may add") or []
        return self._pools[name]

    @staticmethod
    def _because(way: Way, kind: str, words: str, hint: str = "") -> Reason:
        return Reason(way=way, kind=kind, words=words, hint=hint)
