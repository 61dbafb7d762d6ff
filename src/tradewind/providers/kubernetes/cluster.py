"""One cluster, as a controller deals with it: lists, launches, ends. provider.py has all of them.

What is forgotten by the cluster is written down on the way (records.py); where a cluster does not
take it at a listing, it is tried at the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tradewind.base.errors import TradewindError
from tradewind.model.run import TAKEN, Machine, Request
from tradewind.providers.base import Refused
from tradewind.providers.kubernetes import labels, legs, ranks, records, troubles
from tradewind.providers.kubernetes.client import Client, paths, selector
from tradewind.providers.kubernetes.footprint import Cluster, setup_command
from tradewind.providers.kubernetes.listing import Found, Listed, Lister, by_rank, launch_of
from tradewind.providers.kubernetes.manifests import beside
from tradewind.providers.kubernetes.manifests import leg as manifest
from tradewind.providers.kubernetes.manifests.order import Order
from tradewind.providers.kubernetes.objects import Account, Leg, Pod
from tradewind.providers.kubernetes.records import Record, Records

_MOST_AT_ONCE = 8
_PATCHES = 5
"""So often a Job is read again that others have changed meanwhile."""


class OneCluster:
    """Safe from several threads."""

    def __init__(self, place: str, cluster: Cluster, owner: str, client: Client) -> None:
        self.place, self.cluster, self._owner, self._client = place, cluster, owner, client
        self._paths = paths(cluster.namespace)
        self._legs = self._paths["jobsets" if cluster.jobset else "jobs"]
        self._checked = False
        self._lister = Lister(place, cluster, owner, client)

    def listed(self) -> Listed:
        found = self._lister.listed()
        news = [each for each in found.legs if each.view.news]
        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            for _ in pool.map(self._write_news, news):
                pass
        return found

    def _write_news(self, found: Found) -> None:
        """Its Job changes all the time while its pods begin, and by the next listing they may be
        gone: so it is read again and again until it can be written."""
        leg: Leg | None = found.leg
        with suppress(TradewindError):
            for _ in range(_PATCHES):
                if leg is None or leg.metadata.uid != found.leg.metadata.uid:
                    return
                try:
                    self._write(leg, found.view.news)
                    return
                except troubles.Conflict:
                    name = leg.metadata.name
                    leg = self._client.find(f"{self._legs}/{name}", Leg, f"looking for {name}")

    # Launching.

    def launch(self, order: Order, files: Callable[[], Mapping[str, str]]) -> tuple[Machine, ...]:
        """`files`: what its pods are told, asked for only where they are not told yet. Each step
        may be the last one: until the leg is let go it holds nothing, and whoever comes next goes
        on with it."""
        words = order.request.way.words
        path = f"{self._legs}/{order.name}"
        leg = self._client.find(path, Leg, f"looking for {words}")
        if leg is None:
            self._check_account()
        if leg is None or not legs.is_ready(leg):
            told = files()
            if leg is None:
                leg = self._created(order, path, f"launching {words}")
            self._check_own(order, leg)
            if not legs.is_ready(leg):
                self._complete(order, leg, told, words)
                return ()
        self._check_own(order, leg)
        return self._machines_of(leg, order.request)

    def _check_account(self) -> None:
        """Once: that setup has noted there that this store's pods run as it. What the store says
        could name any that we may use, in any namespace."""
        if self._checked:
            return
        name, space = self.cluster.service_account, self.cluster.namespace
        path = f"/api/v1/namespaces/{space}/serviceaccounts/{name}"
        again = setup_command("", self.place)
        try:
            found = self._client.find(path, Account, f"looking for the service account {name}")
        except TradewindError as error:
            raise Refused(
                "not_allowed",
                f"whether the service account {name} of {space} is this store's cannot be read:"
                f" {error.message}",
                hint=f"{again} gives controllers that right",
            ) from None
        notes = (found.metadata.annotations if found else None) or {}
        if labels.used_by(self._owner) not in notes:
            raise Refused(
                "not_allowed" if found else "not_found",
                f"the service account {name} in namespace {space} of {self.place} "
                + ("was not set up for this store" if found else "is not there"),
                hint=f"nothing is launched by it; {again} notes it there",
            )
        self._checked = True

    def _created(self, order: Order, path: str, doing: str) -> Leg:
        try:
            return self._client.create(self._legs, manifest.made(order), Leg, doing)
        except troubles.Exists:  # another controller was first
            return self._client.get(path, Leg, doing)

    def _check_own(self, order: Order, leg: Leg) -> None:
        if leg.metadata.deletion_timestamp:
            raise Refused("throttled", f"{order.name} is being removed, from an earlier launch")
        if launch_of(leg) != labels.launch_of(order.labels, order.stamps):
            raise Refused(
                "not_allowed",
                f"namespace {self.cluster.namespace} has a job {order.name} that is not ours",
                hint=f"kubectl delete job {order.name} -n {self.cluster.namespace}",
            )

    def _complete(self, order: Order, leg: Leg, files: Mapping[str, str], words: str) -> None:
        for kind, body in beside.made(order, leg.metadata.uid, files):
            doing = f"launching {words}, its {kind[:-1]}"
            try:
                self._client.create(self._paths[kind], body, Any, doing)
            except troubles.Exists:  # of a launch that was cut off; perhaps for a Job that is gone
                own = f"{self._paths[kind]}/{order.name}"
                self._client.patch(own, body, Any, doing)
        path = f"{self._legs}/{order.name}"
        self._client.patch(path, manifest.let_go(self.cluster), Leg, f"launching {words}")

    def _machines_of(self, leg: Leg, request: Request) -> tuple[Machine, ...]:
        mine = selector(labels.of_launch(self._owner, request.launch_id))
        pods = self._client.all(self._paths["pods"], Pod, "listing pods", labels=mine)
        launch = launch_of(leg)
        assert launch is not None
        at_s = self._client.at_s()
        found = legs.view(self.place, leg, launch, by_rank(pods), ranks.Nodes(None), at_s)
        return () if found.queued else found.machines

    # Ending.

    def taken(self, name: str, ended: Mapping[int, str]) -> None:
        """Ranks whose machines are about to be taken, and why one knows: the notice is passed on to
        their pods, as SIGTERM and with their grace."""
        self.terminate(name, ended, TAKEN, ended)

    def terminate(
        self, name: str, ended: Iterable[int], by: str = "", why: Mapping[int, str] | None = None
    ) -> None:
        """Ranks of a leg: what is known of them is written down first, then their pods go."""
        wanted = set(ended)
        path = f"{self._legs}/{name}"
        for left in reversed(range(_PATCHES)):
            leg = self._client.find(path, Leg, f"looking for {name}")
            if leg is not None and (leg.metadata.labels or {}).get(labels.OWNER) != self._owner:
                return
            pods = self._pods_of(name)
            going = {
                rank: pod
                for rank, pod in pods.items()
                if rank in wanted and not ranks.end(pod, ranks.Nodes(None), self._client.at_s())
            }
            if leg is None:
                break
            news = {
                rank: self._ending(pod, by, (why or {}).get(rank, ""))
                for rank, pod in going.items()
            }
            kept = records.read(leg.metadata.annotations)
            try:
                if records.merged(kept, news) != kept:
                    self._write(leg, news)
                break
            except troubles.Conflict:
                if not left:
                    raise
        for pod in going.values():
            self._remove_pod(pod)

    def _ending(self, pod: Pod, by: str, why: str) -> Record:
        launched_s = ranks.bound_s(pod) if ranks.has_begun(pod) else None
        mark = records.mark(pod.metadata.uid)
        return Record(launched_s, self._client.at_s(), by, why, mark)

    def _pods_of(self, name: str) -> dict[int, Pod]:
        mine = selector(labels.of_owner(self._owner), manifest.pods_of(name))
        pods = self._client.all(self._paths["pods"], Pod, "listing pods", labels=mine)
        return by_rank(pods)

    def _remove_pod(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            return
        path = f"{self._paths['pods']}/{pod.metadata.name}"
        self._client.delete(path, f"ending pod {pod.metadata.name}", uid=pod.metadata.uid)

    def withdraw(self, launch_id: str) -> None:
        """What has not begun goes as if it never was; of what has, the end is written down."""
        mine = selector(labels.of_launch(self._owner, launch_id))
        for leg in self._client.all(self._legs, Leg, "listing jobs", labels=mine):
            launch = launch_of(leg)
            if launch is None or launch.launch_id != launch_id:
                continue
            pods = self._pods_of(leg.metadata.name)
            begun = [rank for rank, pod in pods.items() if ranks.has_begun(pod)]
            if begun or records.read(leg.metadata.annotations):
                path = f"{self._legs}/{leg.metadata.name}"
                mark = {"metadata": {"annotations": {labels.WITHDRAWN: "true"}}}
                self._client.patch(path, mark, Leg, f"withdrawing {leg.metadata.name}")
                self.terminate(leg.metadata.name, range(launch.nodes))
            else:
                self.remove(leg)

    def remove(self, leg: Leg, *, as_it_was: bool = False) -> bool:
        """With all that belongs to it. `as_it_was`: not if it has changed since it was listed."""
        meta = leg.metadata
        version = meta.resource_version if as_it_was else ""
        return self._client.delete(
            f"{self._legs}/{meta.name}", f"removing {meta.name}", uid=meta.uid, version=version
        )

    def let_go(self, name: str) -> None:
        """A pod that our gate has held back: the scheduler looks at it from now on."""
        path = f"{self._paths['pods']}/{name}"
        body = {"spec": {"schedulingGates": None}}
        with suppress(troubles.Missing):
            self._client.patch(path, body, Pod, f"letting pod {name} go")

    def force(self, name: str) -> None:
        """A pod on a node that is gone or dead: nobody there will ever say that it has ended."""
        path = f"{self._paths['pods']}/{name}"
        self._client.delete(path, f"removing pod {name}", grace_s=0)

    def _write(self, leg: Leg, news: Records) -> None:
        meta = leg.metadata
        both = records.merged(records.read(meta.annotations), news)
        body = {
            "metadata": {
                "resourceVersion": meta.resource_version,
                "annotations": records.written(both),
            }
        }
        self._client.patch(f"{self._legs}/{meta.name}", body, Leg, f"writing down {meta.name}")
