"""Slices of TPUs, for whoever owns a store.

A leg is one slice: `nodes.create`, which Google grants or refuses as a whole, or a queued resource,
which waits until there is one. A node's name is given once in a zone, so that a launch which is
repeated finds what there is; of one that has ended, Google's record of operations tells.

Workers are machines to us, and one thing to Google: terminating one of them ends the slice, and
listings then have all of them as ended.

Safe from several threads and processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage, Pack
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.facts import QUEUED
from tradewind.providers.gcp.footprint import Footprint, owner_of
from tradewind.providers.gcp.machines.ends import LATELY_S
from tradewind.providers.gcp.tpu import listing, order
from tradewind.providers.gcp.tpu.api import Node, Operation, QueuedResource, Tpu
from tradewind.providers.gcp.tpu.kinds import kind
from tradewind.providers.gcp.tpu.listing import Place
from tradewind.providers.gcp.tpu.troubles import failed
from tradewind.providers.gcp.troubles import AlreadyThere, is_off

WHO = "tradewind.providers.gcp"
_WAIT_S = 20.0
"""For what was bought to be listed, and for a queue to say more than that it was accepted."""
_PAUSE_S = 0.5


class TpuProvider:
    def __init__(self, tpu: Tpu, footprint: Footprint, owner: str, luggage: Pack) -> None:
        """`owner` is the store's URL. `luggage` puts together what machines of a request take
        along."""
        self._tpu, self._footprint, self._store_url = tpu, footprint, owner
        self._owner, self._luggage = owner_of(owner), luggage
        self._known: dict[Place, list[Machine]] = {}
        """What was listed before: when a slice is gone, Google tells little of it."""
        self._taken_s: dict[Place, int] = {}

    # -- what a Provider does ----------------------------------------------------------------------

    def list_machines(self) -> Listing:
        """Deletes slices that were taken, and queued resources that are done with."""
        try:
            nodes = self._ours(self._tpu.nodes())
            history = listing.by_slice(self._tpu.operations())
        except TradewindError as error:
            if not is_off(error):
                raise
            return Listing(at_s=self._tpu.at_s(), machines=())
        now_s = self._tpu.at_s()
        machines = self._machines(nodes, history, now_s)
        queue = self._queue()
        self._tidy(nodes, queue)
        waiting = [each for one in queue if (each := listing.queued(one)) is not None]
        return Listing(at_s=now_s, machines=tuple(machines), queued=tuple(waiting))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        found = self._bought(request)
        if found is not None:
            return found
        script = self._script(request, after, key, self._luggage(request, "x86_64"))
        doing = f"launching {request.way.words}"
        try:
            if request.way.market == QUEUED:
                return self._enqueue(request, script, doing)
            return self._create(request, script, doing)
        except AlreadyThere as error:  # by another controller, a moment ago
            return self._await(request, error)

    def terminate(self, machine_ids: Sequence[str]) -> None:
        """Only ours, whatever ids we are given: a name says whose it is."""
        self._each(
            self._end,
            {
                parts[0]
                for each in machine_ids
                if (parts := listing.parted(each)) and parts[1].owner == self._owner
            },
        )

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        wanted = set(launch_ids)
        self._each(
            self._dequeue,
            {
                (each.zone, each.short)
                for each in self._queue()
                if (found := listing.queued(each)) and found.launch_id in wanted
            },
        )

    # -- buying ------------------------------------------------------------------------------------

    def _create(self, request: Request, script: str, doing: str) -> list[Machine]:
        place = self._place(request)
        body = order.node(request, self._store_url, self._footprint, script)
        operation = self._tpu.done(self._tpu.create(*place, body, doing), doing)
        node = self._tpu.node(*place)
        if node is None:
            raise OutcomeUnknown(f"{doing}: it was bought, and is not there")
        return self._checked(request, node, [operation])

    def _enqueue(self, request: Request, script: str, doing: str) -> list[Machine]:
        """None while its slice is waited for."""
        place = self._place(request)
        body = order.queued(request, self._store_url, self._footprint, script)
        request_id = labels.request_id(self._owner, request)
        self._tpu.done(self._tpu.enqueue(*place, body, request_id, doing), doing)
        until = clock.monotonic() + _WAIT_S
        while True:
            found = self._tpu.queued(*place)
            state = found.state.state if found else ""
            if found is not None and state == "FAILED":
                self._dequeue(place)
                error = found.state.failed_data.error
                raise failed(doing, error.code, error.message)
            if state in ("ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING"):
                return []
            if state == "ACTIVE" and (node := self._tpu.node(*place)) is not None:
                return self._checked(request, node, self._operations(place))
            if clock.monotonic() >= until:
                raise OutcomeUnknown(f"{doing}: Google has accepted it, and does not list it yet")
            clock.sleep(_PAUSE_S)

    def _checked(
        self, request: Request, node: Node, operations: Sequence[Operation]
    ) -> list[Machine]:
        """What was bought. A slice with more or fewer workers than were asked for would be waited
        for in vain."""
        has, wanted = len(node.network_endpoints), request.way.nodes
        if has and has != wanted:
            self._end((node.zone, node.short))
            raise Refused(
                "not_allowed",
                f"{request.way.instance_type} has {has} workers at Google, and not {wanted}",
                hint="this is a bug: please report it",
            )
        found = listing.workers(node, operations)
        self._known[node.zone, node.short] = found
        return found

    def _bought(self, request: Request) -> list[Machine] | None:
        """By an earlier try, or another controller's; empty: it waits. None: nothing was."""
        place = self._place(request)
        node = self._tpu.node(*place)
        if node is not None:
            now_s = self._tpu.at_s()
            history = {place: self._operations(place)}
            return self._machines(self._ours([node]), history, now_s)
        if request.way.market == QUEUED and (queued := self._tpu.queued(*place)) is not None:
            return [] if listing.queued(queued) else None
        operations = self._operations(place)
        if any(not each.done and each.metadata.verb == "create" for each in operations):
            raise OutcomeUnknown(f"{place[1]} is being made, and is not listed yet")
        if not any(each.metadata.verb == "create" and not each.error for each in operations):
            return None  # or it was refused after it was accepted
        known, taken_s = self._known.get(place, ()), self._taken_s.get(place)
        return listing.gone(place, operations, known, taken_s) or None

    def _await(self, request: Request, trouble: TradewindError) -> list[Machine]:
        until = clock.monotonic() + _WAIT_S
        while True:
            with suppress(OutcomeUnknown):
                found = self._bought(request)
                if found is not None:
                    return found
            if clock.monotonic() >= until:
                raise OutcomeUnknown(trouble.message, hint="it was bought, and is not listed yet")
            clock.sleep(_PAUSE_S)

    def _place(self, request: Request) -> Place:
        kind(request.way.instance_type)  # raises where it is no slice
        if not request.way.zone:
            raise Refused("not_found", "a TPU slice is asked for in a zone, and none is named")
        return request.way.zone, order.name(request, self._store_url)

    def _script(self, request: Request, after: int, key: str, luggage: Luggage) -> str:
        boot = told.boot(request, self._store_url, after, key, "gcp")
        return told.script(boot, luggage, WHO)

    # -- seeing ------------------------------------------------------------------------------------

    def _ours(self, nodes: Sequence[Node]) -> list[Node]:
        return [each for each in nodes if each.labels.get(labels.OWNER) == self._owner]

    def _machines(
        self, nodes: Sequence[Node], history: Mapping[Place, Sequence[Operation]], now_s: int
    ) -> list[Machine]:
        found: list[Machine] = []
        seen: set[Place] = set()
        for node in nodes:
            place = (node.zone, node.short)
            seen.add(place)
            if node.state == listing.CREATING and node.queued_resource:
                continue  # it is listed as waiting
            machines = listing.workers(node, history.get(place, ()))
            self._known[place] = machines
            if node.state in listing.OVER:
                taken_s = self._taken_s.setdefault(place, now_s)
                machines = [_ended(each, taken_s) for each in machines]
            found += machines
        for place, operations in history.items():
            name = labels.parsed(place[1])
            if place in seen or name is None or name.owner != self._owner:
                continue
            known = self._known.get(place, ())
            over = listing.gone(place, operations, known, self._taken_s.get(place))
            # What is being deleted is listed as it was, until it is gone.
            found += [each for each in over or known if now_s - (each.ended_s or now_s) <= LATELY_S]
        return found

    def _operations(self, place: Place) -> list[Operation]:
        history = listing.by_slice(self._tpu.operations(place[0]))
        return list(history.get(place, ()))

    def _queue(self) -> list[QueuedResource]:
        """Ours. Who may not look has put nothing there."""
        try:
            found = self._tpu.queue()
        except Refused as error:
            if error.kind != "not_allowed":
                raise
            return []
        return [
            each
            for each in found
            if (name := labels.parsed(each.short)) and name.owner == self._owner
        ]

    # -- ending ------------------------------------------------------------------------------------

    def _tidy(self, nodes: Sequence[Node], queue: Sequence[QueuedResource]) -> None:
        """What cannot be removed now is tried again: it costs nothing."""
        done = {(e.zone, e.short) for e in queue if e.state.state in listing.DONE_WITH}
        over = {(e.zone, e.short) for e in nodes if e.state in listing.OVER}
        with suppress(TradewindError):
            self._each(self._dequeue, done)
            self._each(self._end, over - done)

    def _end(self, place: Place) -> None:
        """With the queued resource that it came by, if any: else that would stay."""
        node = self._tpu.node(*place)
        if node is not None and node.queued_resource:
            self._dequeue(place)
        elif node is not None and node.state != "DELETING":
            _send(lambda: self._tpu.delete(*place, f"terminating {place[1]}"))

    def _dequeue(self, place: Place) -> None:
        _send(lambda: self._tpu.dequeue(*place, f"withdrawing {place[1]}"))

    @staticmethod
    def _each(act: Callable[[Place], None], places: set[Place]) -> None:
        """Sent, and not waited for: the next listing tells."""
        if places:
            with ThreadPoolExecutor(min(len(places), 16), thread_name_prefix="tpu") as pool:
                list(pool.map(act, sorted(places)))


def _send(act: Callable[[], object]) -> None:
    """To end what may be gone, or going."""
    try:
        act()
    except Refused as error:
        if error.kind != "not_found" and "DELETING" not in error.message:
            raise


def _ended(machine: Machine, ended_s: int) -> Machine:
    return replace(machine, ended_s=max(ended_s, machine.launched_s))
