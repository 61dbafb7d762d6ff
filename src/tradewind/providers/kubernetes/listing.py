"""What a cluster has of ours, by its objects.

Pods are listed first, then Jobs, then nodes: a Job whose pod is not in an older list has lost it,
and a node that is not in a newer one is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.model.run import Listing, Machine, Queued
from tradewind.providers.kubernetes import asking, labels, legs, marks, ranks, troubles
from tradewind.providers.kubernetes.client import JSON, TABLE, Client, paths, selector
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.gatekeeper import Gatekeeper
from tradewind.providers.kubernetes.labels import Launch
from tradewind.providers.kubernetes.legs import View
from tradewind.providers.kubernetes.manifests.leg import REPLICATED
from tradewind.providers.kubernetes.objects import Event, Leg, Nodes, Pod, Workload, moment
from tradewind.providers.kubernetes.rights import KUEUE
from tradewind.providers.kubernetes.waits import Said, is_gated

FEW_NODES, MARKS_S = 200, 20
"""Of more nodes than that, taints are looked at only so often: a node is ten kilobytes with them,
and a hundred bytes without. The notices that they are ahead of are of two minutes."""
INERT_S = 900
"""A Job that was never let go is removed after so long: whoever made it was cut off."""
_MOST_ASKED = 20
"""So many launches that are stuck are asked about in one listing, besides what lists tell."""
_PODS_S, _EVENTS_S = 2, 20
"""Pods that are not made for so long, and containers that are not, are asked about."""


class Found(NamedTuple):
    """A leg, as it was listed."""

    leg: Leg
    launch: Launch
    pods: dict[int, Pod]
    view: View


class Listed(NamedTuple):
    at_s: int
    legs: list[Found]
    orphans: list[Machine]
    """Pods whose Job is gone, and that have not ended."""
    stuck: list[str]
    """Pods that should be gone, and whose node will not see to it."""
    inert: list[Leg]
    marked: dict[str, dict[int, str]]
    """By Job and rank: machines whose nodes are about to be taken, and why one knows."""
    released: list[str]
    """Pods of gangs that fit now."""

    def listing(self) -> Listing:
        queued: list[Queued] = [each.view.queued for each in self.legs if each.view.queued]
        machines = [machine for each in self.legs for machine in each.view.machines]
        return Listing(at_s=self.at_s, machines=(*machines, *self.orphans), queued=tuple(queued))


class Lister:
    """Safe from several threads."""

    def __init__(self, place: str, cluster: Cluster, owner: str, client: Client) -> None:
        self._place, self._cluster, self._owner, self._client = place, cluster, owner, client
        self._paths = paths(cluster.namespace)
        self._legs = self._paths["jobsets" if cluster.jobset else "jobs"]
        self._marked: tuple[float, dict[str, str]] = (float("-inf"), {})
        """When taints were looked at last, and what was found."""
        self._count = 0
        """Of nodes, at the last look."""
        self._gatekeeper = Gatekeeper(client)

    def listed(self) -> Listed:
        client, mine = self._client, selector(labels.of_owner(self._owner))
        pods = client.all(self._paths["pods"], Pod, "listing pods", labels=mine)
        found = client.all(self._legs, Leg, "listing jobs", labels=mine)
        nodes = self._nodes(pods)
        at_s = client.at_s()
        by_launch = _by_launch(pods)
        known = [
            (leg, launch)
            for leg in found
            if (launch := launch_of(leg)) is not None and _is_named(self._owner, leg, launch)
        ]
        workloads = self._workloads(leg for leg, _ in known)
        gangs = {leg.metadata.name: held for leg, one in known if (held := _held(by_launch, one))}
        rooms = self._gatekeeper.rooms(gangs)
        asked = 0
        legs_found: list[Found] = []
        for leg, launch in known:
            own = by_rank(by_launch.pop(launch.launch_id, []))
            room, _ = rooms.get(leg.metadata.name, (None, False))
            said = Said(workloads.get(leg.metadata.uid, ()), room=room)
            view = legs.view(self._place, leg, launch, own, nodes, at_s, said)
            if view.queued and asked < _MOST_ASKED and _is_held_up(leg, launch, own, at_s):
                asked += 1
                said = said._replace(events=self._events(leg, launch, own))
                view = legs.view(self._place, leg, launch, own, nodes, at_s, said)
            legs_found.append(Found(leg, launch, own, view))
        return Listed(
            at_s,
            legs_found,
            [each for pods in by_launch.values() for each in self._orphans(pods, nodes, at_s)],
            [pod.metadata.name for pod in pods if ranks.is_stuck(pod, nodes, at_s)],
            [leg for leg, _ in known if _is_inert(leg, at_s)],
            {
                each.leg.metadata.name: going
                for each in legs_found
                if (going := _marked(each, nodes))
            },
            [
                pod.metadata.name
                for name, (_, goes) in rooms.items()
                for pod in gangs.get(name, ())
                if goes
            ],
        )

    def _nodes(self, pods: Iterable[Pod]) -> ranks.Nodes:
        """Asked for only where a pod of ours may be on one that is gone, or goes."""
        if not self._cluster.nodes or not any(_is_at_work(pod) for pod in pods):
            return ranks.Nodes(None)
        looked, marked = self._marked
        now = clock.monotonic()
        whole = self._count <= FEW_NODES or now - looked >= MARKS_S
        ready: dict[str, bool] = {}
        fresh: dict[str, str] = {}
        query = {"limit": "500"} if whole else {"limit": "1000", "includeObject": "None"}
        accept = JSON if whole else TABLE
        try:
            while True:
                page = self._client.get("/api/v1/nodes", Nodes, "listing nodes", query, accept)
                ready |= page.ready()
                for node in page.items or ():
                    if found := marks.of(node.spec.taints or ()):
                        fresh[node.metadata.name] = found
                token = page.metadata.get("continue")
                if not token:
                    break
                query = {**query, "continue": str(token)}
        except TradewindError:
            return ranks.Nodes(None)  # pods tell it too, later
        self._count = len(ready)
        if whole:
            self._marked, marked = (now, fresh), fresh
        return ranks.Nodes(ready, marked)

    def _workloads(self, found: Iterable[Leg]) -> dict[str, Any]:
        """What Kueue says of Jobs that wait, by the Job's uid."""
        if not self._cluster.queue or not any(leg.spec.suspend for leg in found):
            return {}
        told: dict[str, Any] = {}
        for version in asking.KUEUES:
            path = f"/apis/{KUEUE}/{version}/namespaces/{self._cluster.namespace}/workloads"
            try:
                for each in self._client.all(path, Workload, "listing Kueue's workloads"):
                    for owner in each.metadata.owner_references or ():
                        told[owner.uid] = each.status.conditions or ()
                break
            except troubles.Missing:
                continue
            except TradewindError:
                break
        return told

    def _events(self, leg: Leg, launch: Launch, pods: Mapping[int, Pod]) -> list[str]:
        """The newest first."""
        held = next((pod for pod in pods.values() if not ranks.has_begun(pod)), None)
        about = held.metadata.name if len(pods) == launch.nodes and held else leg.metadata.name
        if about == leg.metadata.name and self._cluster.jobset:
            about = f"{about}-{REPLICATED}-0"
        path = self._paths["pods"].removesuffix("/pods") + "/events"
        try:
            found = self._client.all(
                path, Event, "listing events", fields=f"involvedObject.name={about},type=Warning"
            )
        except TradewindError:
            return []
        return [" ".join((each.message or "").split()) for each in reversed(found) if each.message]

    def _orphans(self, pods: Iterable[Pod], nodes: ranks.Nodes, at_s: int) -> Iterable[Machine]:
        """A Job that was deleted leaves its pods for as long as their grace lasts."""
        for pod in pods:
            rank, launch = labels.rank_of(pod.metadata.labels or {}), launch_of(pod)
            since_s, end = ranks.bound_s(pod), ranks.end(pod, nodes, at_s)
            if rank is None or launch is None or since_s is None or end:
                continue
            if ranks.has_begun(pod):
                name = labels.named(self._owner, launch)
                yield Machine(
                    machine_id=labels.machine_id(self._place, name, rank),
                    launch_id=launch.launch_id,
                    run_id=launch.run_id,
                    leg=launch.leg,
                    rank=rank,
                    launched_s=since_s,
                )


def launch_of(found: Leg | Pod) -> Launch | None:
    meta = found.metadata
    return labels.launch_of(meta.labels or {}, meta.annotations or {})


def _is_named(owner: str, leg: Leg, launch: Launch) -> bool:
    """A copy that somebody made by hand, say, is not ours."""
    return leg.metadata.name == labels.named(owner, launch)


def _by_launch(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        launch_id = (pod.metadata.annotations or {}).get(labels.LAUNCH_ID, "")
        found.setdefault(launch_id, []).append(pod)
    return found


def by_rank(pods: Iterable[Pod]) -> dict[int, Pod]:
    """Where there are several of a rank, the first one: no rank begins twice."""
    found: dict[int, Pod] = {}
    for pod in sorted(pods, key=lambda each: each.metadata.creation_timestamp or ""):
        rank = labels.rank_of(pod.metadata.labels or {})
        if rank is not None:
            found.setdefault(rank, pod)
    return found


def _held(by_launch: Mapping[str, list[Pod]], launch: Launch) -> list[Pod]:
    """Pods of a launch that have our gate, where all of its pods are there."""
    own = [
        pod for pod in by_launch.get(launch.launch_id, ()) if not pod.metadata.deletion_timestamp
    ]
    return [pod for pod in own if is_gated(pod)] if len(by_rank(own)) == launch.nodes else []


def _marked(found: Found, nodes: ranks.Nodes) -> dict[int, str]:
    living = {each.rank for each in found.view.machines if each.ended_s is None}
    return {
        rank: troubles.sentence("NodeMarked", f"node {pod.spec.node_name} has the taint {mark}")
        for rank, pod in found.pods.items()
        if rank in living and (mark := ranks.mark(pod, nodes))
    }


def _is_at_work(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase not in ("Succeeded", "Failed")


def _is_held_up(leg: Leg, launch: Launch, pods: Mapping[int, Pod], at_s: int) -> bool:
    """Whether only events can tell why: pods that are not made, and containers that are not."""
    if leg.spec.suspend:
        return False
    if len(pods) < launch.nodes:
        since_s = moment(leg.status.start_time or leg.metadata.creation_timestamp)
        return since_s is not None and at_s - since_s >= _PODS_S
    bound = [
        since_s
        for pod in pods.values()
        if (since_s := ranks.bound_s(pod)) is not None and not ranks.has_begun(pod)
    ]
    return bool(bound) and at_s - min(bound) >= _EVENTS_S


def _is_inert(leg: Leg, at_s: int) -> bool:
    made_s = moment(leg.metadata.creation_timestamp)
    return not legs.is_ready(leg) and made_s is not None and at_s - made_s >= INERT_S
