"""Compute Engine's instances as our machines. Pure."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from tradewind.model.run import Machine, Queued
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.api import Instance
from tradewind.providers.gcp.operations import at_s

PENDING = "PENDING"
"""It waits for a machine (flex-start), and nothing is paid."""
STOPPED = ("TERMINATED", "STOPPED", "SUSPENDED")
"""Nothing of it runs, and its disk is paid."""


class Seen(NamedTuple):
    """A machine of ours that Compute Engine lists, or has listed to us before."""

    machine: Machine
    spot: bool


def seen(instance: Instance) -> Seen | None:
    """None: it carries the owner's label, and none of a run's: somebody has put it there."""
    name = labels.parsed(instance.name)
    stamps = {each.key: each.value for each in instance.metadata.items}
    run = labels.run_of(instance.labels, stamps)
    if name is None or run is None:
        return None
    launched_s = at_s(instance.last_start_timestamp) or at_s(instance.creation_timestamp) or 0
    machine = Machine(
        machine_id=labels.machine_id(instance.zone_name, instance.name),
        launch_id=run[1],
        run_id=run[0],
        leg=name.leg,
        rank=name.rank,
        launched_s=launched_s,
    )
    return Seen(machine=machine, spot=instance.scheduling.provisioning_model == "SPOT")


def stopped(machine: Machine, stopped_s: int, gone_s: int) -> Machine:
    """As it has ended: its disk was paid until it was deleted."""
    stopped_s = max(stopped_s, machine.launched_s)
    gone_s = max(gone_s, stopped_s)
    return replace(machine, ended_s=gone_s, off_s=stopped_s if stopped_s < gone_s else None)


def queued(found: Seen, instance: Instance) -> Queued:
    machine = found.machine
    return Queued(
        launch_id=machine.launch_id,
        run_id=machine.run_id,
        leg=machine.leg,
        reason=instance.status_message or "Google looks for a machine",
    )
