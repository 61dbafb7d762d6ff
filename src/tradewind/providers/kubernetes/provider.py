"""Pods of clusters as machines, for whoever owns a store.

A launch is a Job whose name is its token (labels.py); it waits in the queue until its pods have
begun (legs.py). All clusters of the footprint are listed at once; one that cannot be listed leaves
what there is unknown, as a region of a cloud does.

A Job stays until all its machines have ended, and until this object has listed them so in an
earlier pass, or a while ago: whoever records it has had the time. Then it goes, with all that
belongs to it.

Safe from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from tradewind.base.errors import TradewindError
from tradewind.model.finding import Finding
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import Leftover, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Pack
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.cluster import OneCluster
from tradewind.providers.kubernetes.footprint import Footprint, setup_command
from tradewind.providers.kubernetes.listing import Found, Listed
from tradewind.providers.kubernetes.manifests.order import Order

NAME = "kubernetes"
_WHO = "tradewind.providers.kubernetes"
_MOST_BYTES = 900_000
"""A Secret has a megabyte at most."""
OVER_S = 60
"""What has ended so long ago is in its journal, whoever looks after it."""
_MOST_AT_ONCE = 16

K = TypeVar("K")
T = TypeVar("T")


class KubernetesProvider:
    def __init__(self, footprint: Footprint, owner: str, pack: Pack) -> None:
        """`owner` is the store's URL. `pack` puts together what machines of a request take
        along."""
        self._footprint, self._store_url, self._pack = footprint, owner, pack
        self._owner = labels.owner_of(owner)
        self._opened: dict[str, OneCluster] = {}
        self._lock = threading.Lock()
        self._last: dict[str, Listed] = {}
        self._over: set[str] = set()
        """Jobs that were over at the listing before the last tidying, by uid."""

    def list_machines(self) -> Listing:
        listed = _at_once({place: self._lister(place) for place in self._footprint.clusters})
        self._last = listed
        found = [each.listing() for each in listed.values()]
        return Listing(
            at_s=max((each.at_s for each in found), default=0),
            machines=tuple(machine for each in found for machine in each.machines),
            queued=tuple(queued for each in found for queued in each.queued),
        )

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        place = request.way.region
        if place not in self._footprint.clusters:
            raise Refused(
                "not_found",
                f"no cluster {place} is set up for this store",
                hint=setup_command(self._store_url, place),
            )
        cluster = self._cluster(place)
        order = Order(place, cluster.cluster, self._owner, request)

        def files() -> Mapping[str, str]:
            luggage = self._pack(request, order.placement.architecture)
            boot = told.boot(request, self._store_url, after, key, NAME)
            made = told.files(boot, luggage, _WHO)
            if sum(len(text.encode()) for text in made.values()) > _MOST_BYTES:
                raise Refused("not_allowed", "what pods are told is more than a Secret takes")
            return made

        return cluster.launch(order, files)

    def terminate(self, machine_ids: Sequence[str]) -> None:
        wanted: dict[tuple[str, str], set[int]] = {}
        for each in machine_ids:
            parts = labels.parted(each, self._footprint.clusters)
            if parts is not None:
                place, job, rank = parts
                wanted.setdefault((place, job), set()).add(rank)

        def ender(place: str, job: str, ranks: set[int]) -> Callable[[], None]:
            return lambda: self._cluster(place).terminate(job, ranks)

        _at_once({key: ender(*key, ranks) for key, ranks in wanted.items()})

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        def withdrawer(place: str, launch_id: str) -> Callable[[], None]:
            return lambda: self._cluster(place).withdraw(launch_id)

        _at_once(
            {
                (place, launch_id): withdrawer(place, launch_id)
                for launch_id in dict.fromkeys(launch_ids)
                for place in self._footprint.clusters
            }
        )

    # Tidy.

    def tidy(self) -> None:
        over: set[str] = set()
        for place, listed in self._last.items():
            for each in listed.legs:
                uid = each.leg.metadata.uid
                if not each.view.over:
                    continue
                over.add(uid)
                if uid in self._over or _is_old(each, listed.at_s):
                    with suppress(TradewindError):
                        self._cluster(place).remove(each.leg)
            for leg in listed.inert:
                with suppress(TradewindError):
                    self._cluster(place).remove(leg, as_it_was=True)
            for name, ended in listed.marked.items():
                with suppress(TradewindError):
                    self._cluster(place).taken(name, ended)
            for name in listed.released:
                with suppress(TradewindError):
                    self._cluster(place).let_go(name)
            for name in listed.stuck:
                with suppress(TradewindError):
                    self._cluster(place).force(name)
        self._over = over

    # Upkeep.

    def checks(self) -> Sequence[Finding]:
        return ()  # `tradewind doctor kubernetes` asks far more than one would want each time

    def leftovers(self) -> Sequence[Leftover]:
        self.list_machines()
        return [
            Leftover(
                kind="job",
                name=f"{place}/{each.leg.metadata.name}",
                words="belongs to a leg that has ended",
                run_id=each.launch.run_id,
            )
            for place, listed in self._last.items()
            for each in listed.legs
            if each.view.over
        ]

    def remove(self, leftover: Leftover) -> bool:
        place, _, name = leftover.name.partition("/")
        listed = self._last.get(place)
        for each in listed.legs if listed else ():
            if each.leg.metadata.name == name and each.view.over:
                return self._cluster(place).remove(each.leg)
        return False

    # Several clusters.

    def _cluster(self, place: str) -> OneCluster:
        with self._lock:
            if place not in self._opened:
                cluster = self._footprint.clusters[place]
                client = Client(cluster.context, server=cluster.server)
                self._opened[place] = OneCluster(place, cluster, self._owner, client)
            return self._opened[place]

    def _lister(self, place: str) -> Callable[[], Listed]:
        return lambda: self._cluster(place).listed()


def _at_once(jobs: Mapping[K, Callable[[], T]]) -> dict[K, T]:
    """All are done, whatever becomes of the others; then the first that failed is raised."""
    if len(jobs) < 2:
        return {name: job() for name, job in jobs.items()}
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
    return {name: future.result() for name, future in futures.items()}


def _is_old(found: Found, at_s: int) -> bool:
    ends = [machine.ended_s for machine in found.view.machines if machine.ended_s is not None]
    return at_s - max(ends, default=0) >= OVER_S
