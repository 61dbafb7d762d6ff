"""When machines ended that Compute Engine lists no more. Pure.

It forgets an instance as soon as it is deleted. What stays, for two weeks or so, is its record of
operations, on which this is built: `insert` by us, `delete` by us or by Google,
`compute.instances.preempted` when a spot machine was taken, `compute.instances.guestTerminate` when
one shut itself down, and Google's other `compute.instances.…` that stop one. A machine was paid
until the last of these was done; where it had stopped before it was deleted, its disk alone was
paid in between.

An `insert` that failed after it was accepted left a machine that may have been listed for a moment:
it has ended when it began, and cost nothing.

What is not known: under what name Google records that it has deleted a machine by its time limit;
`deferredDelete` is a guess. Where nothing is recorded, the machine is not listed, and runs estimate
its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from tradewind.model.run import Machine, Request
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.machines.listing import Seen, stopped
from tradewind.providers.gcp.operations import Operation, at_s, last

DELETED = "delete"
_INSERTED = ("insert", "bulkInsert", "compute.instances.insert", "compute.instances.bulkInsert")
_PREEMPTED = "compute.instances.preempted"
_STOPS = (
    DELETED,
    "stop",
    "suspend",
    _PREEMPTED,
    "compute.instances.guestTerminate",
    "compute.instances.hostError",
    "compute.instances.terminateOnHostMaintenance",
    "compute.instances.deferredDelete",
    "compute.instances.deferredStop",
)
_FREE_S = 60
"""A spot machine that Google takes in its first minute costs nothing."""
LATELY_S = 3 * 86_400


def having(owner: str, request: Request | None = None) -> str:
    """A filter for the operations on an owner's instances, or on those of one request."""
    stem = labels.made(owner, request, 0).stem if request else f"{labels.PREFIX}{owner}"
    return f'targetLink eq ".*/instances/{stem}-.*"'


def ended(
    operations: Iterable[Operation], known: Mapping[str, Seen], now_s: int
) -> dict[str, Machine]:
    """By its id, each machine that the operations say has ended lately. `known`: what was listed
    before; its times and prices are better than what can be concluded here."""
    of: dict[str, list[Operation]] = {}
    for each in operations:
        parts = each.target_link.split("/")
        if len(parts) > 4 and parts[-2] == "instances":
            name = labels.machine_id(last(each.zone) or parts[-3], parts[-1])
            of.setdefault(name, []).append(each)
    found: dict[str, Machine] = {}
    for machine_id, history in of.items():
        machine = _ended(machine_id, history, known.get(machine_id))
        if machine is not None and now_s - (machine.ended_s or 0) <= LATELY_S:
            found[machine_id] = machine
    return found


def _ended(machine_id: str, history: list[Operation], known: Seen | None) -> Machine | None:
    stops = [
        (moment, each)
        for each in history
        if each.operation_type in _STOPS
        and each.done
        and not each.failed
        and (moment := at_s(each.end_time) or at_s(each.start_time) or at_s(each.insert_time))
    ]
    if not stops:
        never = any(each.operation_type in _INSERTED and each.failed for each in history)
        return _free(known.machine, known.machine.launched_s) if never and known else None
    first_s, gone_s = min(at for at, _ in stops), max(at for at, _ in stops)
    machine = known.machine if known else _concluded(machine_id, history)
    if machine is None:
        return None
    taken = any(each.operation_type == _PREEMPTED for _, each in stops)
    if taken and first_s - machine.launched_s < _FREE_S:
        return _free(machine, max(first_s, machine.launched_s))
    return stopped(machine, first_s, gone_s)


def _concluded(machine_id: str, history: list[Operation]) -> Machine | None:
    """Of one that was never listed to us: by its name, and when it was asked for."""
    parts = labels.parted(machine_id)
    begun = [
        moment
        for each in history
        if each.operation_type in _INSERTED
        and not each.failed
        and (moment := at_s(each.start_time) or at_s(each.insert_time))
    ]
    if parts is None or not begun or (run_id := parts[1].run_id) is None:
        return None
    name = parts[1]
    return Machine(
        machine_id=machine_id,
        launch_id=f"{run_id}-{name.leg}",
        run_id=run_id,
        leg=name.leg,
        rank=name.rank,
        launched_s=min(begun),
    )


def _free(machine: Machine, ended_s: int) -> Machine:
    return replace(machine, ended_s=ended_s, prices=((machine.launched_s, 0),))


def never_was(machine: Machine) -> bool:
    """It was refused after it had been listed."""
    return machine.ended_s == machine.launched_s and machine.prices == ((machine.launched_s, 0),)


def ending(operations: Iterable[Operation]) -> set[str]:
    """Machines that Google has not done deleting."""
    return {
        labels.machine_id(last(each.zone), last(each.target_link))
        for each in operations
        if each.operation_type == DELETED and not each.done
    }
