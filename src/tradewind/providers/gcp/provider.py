"""Machines of Google Cloud, for whoever owns a store.

A leg is one call: `instances.insert` for one machine, `instances.bulkInsert` for several, all or
none. Google knows the call again by its request id, gives a machine's name once in a zone, and puts
all labels on at once. It answers before it has looked for machines, so nothing counts as bought
before the operation is done; one that fails then is refused as if Google had said so at once.

TPU slices are another API's: ways whose type is a TPU go to `tpu`, where there is one, and listings
are both together (`Both`).

Safe from several threads and processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.model.finding import Finding
from tradewind.model.run import Listing, Machine, Queued, Request
from tradewind.providers.base import Leftover, OutcomeUnknown, Provider, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage, Pack
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.api import Compute, Instance
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.footprint import Footprint, owner_of
from tradewind.providers.gcp.machines import ends, listing, order, placement, reservations
from tradewind.providers.gcp.machines.listing import Seen
from tradewind.providers.gcp.machines.order import Order
from tradewind.providers.gcp.machines.types import Kind, kind
from tradewind.providers.gcp.operations import Operation, at_s
from tradewind.providers.gcp.tpu.listing import ID_PREFIX as WORKER
from tradewind.providers.gcp.tpu.provider import TpuProvider
from tradewind.providers.gcp.troubles import VAGUE, AlreadyThere, of_operation

WHO = "tradewind.providers.gcp"
POLICY = "placement policy"
_WAIT_S = 20.0
"""For what was bought to be listed."""
_PAUSE_S = 0.5
_ENDING = frozenset({"STOPPING", *listing.STOPPED})
_REUSED = "'requestId'"
"""In what Google says to a request id that came before, with another body."""


class ComputeProvider:
    def __init__(self, compute: Compute, footprint: Footprint, owner: str, luggage: Pack) -> None:
        """`owner` is the store's URL. `luggage` puts together what machines of a request, and of
        this architecture, take along."""
        self._compute, self._footprint, self._store_url = compute, footprint, owner
        self._owner, self._luggage = owner_of(owner), luggage
        self._known: dict[str, Seen] = {}
        """What was listed before: when a machine is gone, Google tells little of it."""
        self._over: dict[str, set[str]] = {}
        """By region, the stems of launches of several machines that have all ended, as last
        listed."""
        self._tidied: set[str] = set()

    # -- what a Provider does ----------------------------------------------------------------------

    def list_machines(self) -> Listing:
        """Deletes what has stopped: its disk would be paid for as long as it is there."""
        instances = self._compute.instances(labels.of_owner(self._owner))
        operations = self._compute.operations(ends.having(self._owner))
        now_s = self._compute.at_s()
        machines, queued = self._machines(instances, operations, now_s)
        self._over = _over(machines)
        return Listing(at_s=now_s, machines=tuple(machines), queued=tuple(queued))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        found = self._bought(request)
        if found is not None:
            return found
        of = kind(request.way.instance_type)
        reservation = reservations.find(self._compute, request, of)
        luggage = self._luggage(request, of.architecture)
        policy = ""
        try:
            asked = self._order(
                request, of, self._script(request, after, key, luggage), reservation
            )
            if order.wants_policy(request, of, reservation):
                policy = placement.create(self._compute, request, self._store_url)
                properties = asked.body["instanceProperties"]
                properties["resourcePolicies"] = [policy]
            return self._buy(request, asked)
        except Refused:
            # Nothing was bought, and the next try may be another leg, elsewhere.
            if policy:
                self._removed(request.way.region, policy)
            raise

    def terminate(self, machine_ids: Sequence[str]) -> None:
        """Only ours, whatever ids we are given: a name says whose it is."""
        going = {
            (parts[0], parts[1].text)
            for each in machine_ids
            if (parts := labels.parted(each)) and parts[1].owner == self._owner
        }
        self._delete(going)

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        wanted = set(launch_ids)
        waiting = {
            (instance.zone_name, instance.name)
            for instance in self._compute.instances(labels.of_owner(self._owner))
            if instance.status == listing.PENDING
            and (seen := listing.seen(instance)) is not None
            and seen.machine.launch_id in wanted
        }
        self._delete(waiting)

    # -- upkeep ------------------------------------------------------------------------------------

    def checks(self) -> Sequence[Finding]:
        return ()  # `tradewind doctor gcp` asks far more than one would want to wait for each time

    def leftovers(self) -> Sequence[Leftover]:
        """Placement policies of legs that have no machine any more."""
        living = {
            parts[1].stem
            for machine in self.list_machines().machines
            if machine.ended_s is None and (parts := labels.parted(machine.machine_id))
        }
        return [
            Leftover(
                kind=POLICY,
                name=f"{region}/{name}",
                words="belongs to a leg that has ended",
                run_id=parsed.run_id or "",
            )
            for region in sorted(self._footprint.subnets)
            for name, parsed in placement.owned(self._compute, region, self._owner)
            if name not in living
        ]

    def remove(self, leftover: Leftover) -> bool:
        region, _, name = leftover.name.partition("/")
        return placement.remove(self._compute, region, name)

    def tidy(self) -> None:
        for region, stems in self._over.items():
            left = stems - self._tidied
            if not left:
                continue
            there = {name for name, _ in placement.owned(self._compute, region, self._owner)}
            done = [self._removed(region, name) for name in sorted(there & left)]
            if all(done):
                self._tidied |= left

    def _removed(self, region: str, name: str) -> bool:
        """False: it could not be now, and is for the sweep."""
        try:
            return placement.remove(self._compute, region, name)
        except TradewindError:
            return False

    # -- buying ------------------------------------------------------------------------------------

    def _order(
        self, request: Request, of: Kind, script: str, reservation: order.Reserved | None
    ) -> Order:
        return order.order(
            request,
            self._store_url,
            self._footprint,
            kind=of,
            script=script,
            reservation=reservation,
        )

    def _buy(self, request: Request, asked: Order) -> list[Machine]:
        doing = f"launching {request.way.words}"
        try:
            # Sent once: the controller asks again with the same request id where nobody knows.
            if asked.bulk:
                operation = self._compute.bulk_insert(
                    asked.place, asked.body, asked.request_id, doing
                )
            else:
                operation = self._compute.insert(
                    request.way.zone, asked.body, asked.request_id, doing
                )
            if order.waits(request):
                return self._in_queue(request, asked, operation, doing)
            self._compute.done(operation, doing)
        except AlreadyThere as error:  # bought before, and Google has forgotten the request id
            return self._await(request, asked, error)
        except Refused as error:
            if _REUSED in error.message:  # bought before, with links of then
                return self._await(request, asked, error)
            raise self._because(request, error, doing) from error
        return self._there(request, asked)

    def _because(self, request: Request, error: Refused, doing: str) -> TradewindError:
        """Where Google says of many machines only that not all could be had: why, as it says of
        each."""
        if not any(code in error.message for code in VAGUE):
            return error
        try:
            told = self._compute.operations(ends.having(self._owner, request))
        except TradewindError:
            return error
        failed = [each for each in told if each.failed and each.error]
        if not failed:
            return error
        errors = [trouble for each in failed if each.error for trouble in each.error.errors]
        return of_operation(doing, errors, failed[0].http_error_status_code)

    def _there(self, request: Request, asked: Order) -> list[Machine]:
        """What the operation has made."""
        return self._named(request, asked) or self._await(request, asked, None)

    def _named(self, request: Request, asked: Order) -> list[Machine]:
        """All of them, asked for by name, since listings may lag; empty: they are not all there."""
        found: list[Machine] = []
        for name in asked.names if request.way.zone else ():
            instance = self._compute.instance(request.way.zone, name)
            seen = listing.seen(instance) if instance else None
            if instance is None or seen is None or instance.status in _ENDING:
                return []
            self._known[seen.machine.machine_id] = seen
            found.append(seen.machine)
        return found

    def _in_queue(
        self, request: Request, asked: Order, operation: Operation, doing: str
    ) -> list[Machine]:
        """None while its machine is waited for."""
        until = clock.monotonic() + _WAIT_S
        while clock.monotonic() < until:
            if operation.done:
                self._compute.done(operation, doing)
            instance = self._compute.instance(request.way.zone, asked.names[0])
            if instance is not None and instance.status == listing.PENDING:
                return []
            if operation.done:
                return self._there(request, asked)
            clock.sleep(_PAUSE_S)
            operation = self._compute.operation(operation, doing)
        raise OutcomeUnknown(f"{doing}: Google has accepted it, and does not list it yet")

    def _bought(self, request: Request) -> list[Machine] | None:
        """By an earlier try, or another controller's; empty: it waits. None: nothing was."""
        instances = self._compute.instances(labels.of_launch(self._owner, request.launch_id))
        operations = self._compute.operations(ends.having(self._owner, request))
        machines, queued = self._machines(instances, operations, self._compute.at_s())
        found = [
            each
            for each in machines
            if each.launch_id == request.launch_id and not ends.never_was(each)
        ]
        if not found:
            return [] if queued else None
        if len(found) < request.way.nodes:
            raise OutcomeUnknown(
                f"of {request.way.nodes} machines of {request.launch_id} Google lists {len(found)}"
            )
        return sorted(found, key=lambda each: each.rank)

    def _await(
        self, request: Request, asked: Order, trouble: TradewindError | None
    ) -> list[Machine]:
        """What was bought before, or just now."""
        until = clock.monotonic() + _WAIT_S
        while True:
            try:
                found = self._bought(request)
            except OutcomeUnknown:
                found = None
            if found is None:
                found = self._named(request, asked) or None
            if found is not None:
                return found
            if clock.monotonic() >= until:
                words = trouble.message if trouble else f"launching {request.way.words}"
                raise OutcomeUnknown(words, hint="it was bought, and is not listed yet")
            clock.sleep(_PAUSE_S)

    def _script(self, request: Request, after: int, key: str, luggage: Luggage) -> str:
        boot = told.boot(request, self._store_url, after, key, "gcp")
        return told.script(boot, luggage, WHO)

    # -- seeing ------------------------------------------------------------------------------------

    def _machines(
        self, instances: Sequence[Instance], operations: Sequence[Operation], now_s: int
    ) -> tuple[list[Machine], list[Queued]]:
        found: dict[str, Machine] = {}
        queued: list[Queued] = []
        for instance in instances:
            seen = listing.seen(instance)
            if seen is None:
                continue
            if instance.status == listing.PENDING:
                queued.append(listing.queued(seen, instance))
                continue
            self._known[seen.machine.machine_id] = seen
            stopped = instance.status in listing.STOPPED
            found[seen.machine.machine_id] = (
                self._stopped(instance, seen) if stopped else seen.machine
            )
        ended = ends.ended(operations, self._known, now_s)
        for machine_id in ends.ending(operations) & self._known.keys():
            ended.setdefault(machine_id, self._known[machine_id].machine)
        for machine_id, machine in ended.items():
            found.setdefault(machine_id, machine)
        self._forget(found, now_s)
        return list(found.values()), queued

    def _stopped(self, instance: Instance, seen: Seen) -> Machine:
        stopped_s = at_s(instance.last_stop_timestamp) or self._compute.at_s()
        gone_s = stopped_s
        try:
            operation = self._compute.delete(
                instance.zone_name, instance.name, f"deleting {instance.name}, which has stopped"
            )
            gone_s = at_s(operation.insert_time) or self._compute.at_s()
        except Refused as error:
            if error.kind == "not_found":  # another's; the next look at operations tells when
                return seen.machine
        except TradewindError:
            pass  # it is tried again, and costs little
        return listing.stopped(seen.machine, stopped_s, gone_s)

    def _forget(self, found: dict[str, Machine], now_s: int) -> None:
        for machine_id, seen in list(self._known.items()):
            if machine_id not in found and now_s - seen.machine.launched_s > ends.LATELY_S:
                self._known.pop(machine_id, None)

    def _delete(self, going: set[tuple[str, str]]) -> None:
        """Sent, and not waited for: the next listing tells."""
        if not going:
            return

        def one(place: tuple[str, str]) -> None:
            zone, name = place
            try:
                self._compute.delete(zone, name, f"terminating {name}")
            except Refused as error:
                if error.kind == "not_found":
                    return
                instance = self._compute.instance(zone, name)
                if instance is not None and instance.status != "STOPPING":
                    raise

        with ThreadPoolExecutor(min(len(going), 16), thread_name_prefix="gcp") as pool:
            list(pool.map(one, sorted(going)))


def _over(machines: Sequence[Machine]) -> dict[str, set[str]]:
    """By region, launches of several machines, none of which is up."""
    launches: dict[tuple[str, str], list[Machine]] = {}
    for machine in machines:
        parts = labels.parted(machine.machine_id)
        if parts is not None:
            region = parts[0].rpartition("-")[0]
            launches.setdefault((region, parts[1].stem), []).append(machine)
    found: dict[str, set[str]] = {}
    for (region, stem), of_it in launches.items():
        if len(of_it) > 1 and all(machine.ended_s is not None for machine in of_it):
            found.setdefault(region, set()).add(stem)
    return found


class Both:
    """Compute Engine's machines and TPU slices, as one provider. Without `tpu`, of the first
    alone. An id says which of the two a machine is of."""

    def __init__(self, compute: ComputeProvider, tpu: TpuProvider | None = None) -> None:
        self._compute, self._tpu = compute, tpu
        self._others: list[TpuProvider] = [] if tpu is None else [tpu]

    def _for(self, request: Request) -> Provider:
        if not request.way.instance_type.startswith(TPU):
            return self._compute
        if self._tpu is None:
            raise Refused("not_found", "TPUs are not rented from here")
        return self._tpu

    def list_machines(self) -> Listing:
        both = [self._compute.list_machines(), *(each.list_machines() for each in self._others)]
        return Listing(
            at_s=min(each.at_s for each in both),
            machines=tuple(machine for each in both for machine in each.machines),
            queued=tuple(queued for each in both for queued in each.queued),
        )

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        return self._for(request).launch(request, after, key)

    def terminate(self, machine_ids: Sequence[str]) -> None:
        workers = [each for each in machine_ids if each.startswith(WORKER)]
        self._compute.terminate([each for each in machine_ids if each not in workers])
        for each in self._others:
            each.terminate(workers)

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        self._compute.withdraw(launch_ids)
        for each in self._others:
            each.withdraw(launch_ids)

    def checks(self) -> Sequence[Finding]:
        return ()

    def leftovers(self) -> Sequence[Leftover]:
        return self._compute.leftovers()

    def remove(self, leftover: Leftover) -> bool:
        return self._compute.remove(leftover)

    def tidy(self) -> None:
        self._compute.tidy()
