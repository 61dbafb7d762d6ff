"""How to come to a shell on one of a run's machines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.base.errors import BadFile, MissingExtra, NotFound
from tradewind.providers import registry
from tradewind.providers.cloud import Reached

if TYPE_CHECKING:
    from tradewind.model.run import Machine
    from tradewind.store.base import Store


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,511}")


def machine(store: Store, run_id: str, rank: int) -> Machine:
    """The one of this rank that lives."""
    from tradewind.journal import runs_store

    state = runs_store.load(store, run_id).state
    living = [each.machine for each in state.machines.values() if not each.ended]
    found = [each for each in living if each.rank == rank and each.machine_id in state.claimed]
    if found:
        return found[-1]
    ranks = sorted({each.rank for each in living if each.machine_id in state.claimed})
    raise NotFound(
        f"{run_id} has no machine of rank {rank} now",
        hint=f"it has {', '.join(map(str, ranks))}" if ranks else f"tradewind show {run_id}",
    )


def command(
    machine: Machine, key: str = "", words: Sequence[str] = (), store: Store | None = None
) -> list[str]:
    """What to run to be there; `words` are run there instead of a shell."""
    if not _ID.fullmatch(machine.machine_id) or ".." in machine.machine_id:
        raise BadFile(f"the journal has a machine {machine.machine_id!r}, which no cloud calls so")
    cloud = registry.of_machine(machine.machine_id)
    if store is not None and isinstance(cloud, Reached):
        from tradewind.api import clouds

        _, record = clouds.needed(store, cloud.name)
        return cloud.shell_at(record, machine, key, words)
    return cloud.shell(machine, key, words)


def needed(machine: Machine, command: Sequence[str]) -> None:
    """Raises what is missing on this computer."""
    registry.of_machine(machine.machine_id).check_shell(command)
    if shutil.which(command[0]) is None:
        raise MissingExtra(f"{command[0]} is not installed here", hint=f"install {command[0]}")
