"""What one look brings: what the providers list, and which runs there are, in that order.

A look sees all runs and machines at once, so it is also what forgets those that are gone."""

from __future__ import annotations

from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.base.steps import Steps
from tradewind.controller.memory import Memory
from tradewind.model import places
from tradewind.model.run import Machine, Queued
from tradewind.providers.base import ListAll, Listed
from tradewind.store.steps import ListAfter


class Sight:
    """What one look has brought."""

    __slots__ = ("at", "by_run", "clocks", "marked", "queued", "runs", "services", "troubles")

    def __init__(self, at: float) -> None:
        self.at = at
        self.clocks: dict[str, int] = {}
        self.by_run: dict[str, dict[str, tuple[str, Machine]]] = {}
        self.queued: dict[str, dict[str, tuple[str, Queued]]] = {}
        """By run and launch id."""
        self.marked: dict[str, list[int]] = {}
        """The lives of each run that there are marks of."""
        self.runs: list[str] = []
        self.services: list[str] = []
        self.troubles: list[tuple[str, TradewindError]] = []
        """Providers that could not be listed, and why."""


def look(providers: tuple[str, ...], at: float, memory: Memory) -> Steps[Sight]:
    sight = Sight(at)
    listed: Listed
    try:
        listed = yield ListAll(providers)
    except TradewindError as error:
        listed = dict.fromkeys(providers, error)
    for provider in providers:
        listing = listed[provider]
        if isinstance(listing, TradewindError):
            sight.troubles.append((provider, listing))
            continue  # nothing is concluded from what could not be seen
        sight.clocks[provider] = listing.at_s
        for machine in listing.machines:
            of_run = sight.by_run.setdefault(machine.run_id, {})
            if of_run.get(machine.machine_id, (provider,))[0] != provider:
                twice = InvalidValue(
                    f"another provider has a machine {machine.machine_id} too",
                    hint="this is a bug: ids begin with the provider's name",
                )
                sight.troubles.append((provider, twice))
                continue
            of_run[machine.machine_id] = (provider, machine)
        for queued in listing.queued:
            sight.queued.setdefault(queued.run_id, {})[queued.launch_id] = (provider, queued)
    keys: list[str] = yield ListAfter(places.LIVE)
    for key in keys:
        service = places.marked_service(key)
        if service is not None:
            sight.services.append(service)
            continue
        name, life = places.marked(key)
        if not places.is_run_id(name):
            continue  # nobody who submits makes such a mark
        sight.marked.setdefault(name, []).append(life)
    sight.runs = list(sight.marked) + [
        name
        for name, machines in sight.by_run.items()
        if name not in sight.marked and not _settled(memory, name, machines)
    ]
    known = set(sight.runs)
    sight.runs += [name for name in sight.queued if name not in known]
    _forget_others(memory, sight, all_seen=len(sight.clocks) == len(providers))
    return sight


def _settled(memory: Memory, run_id: str, machines: dict[str, tuple[str, Machine]]) -> bool:
    """Whether a run that is over has accounted for all that is listed of it."""
    of_run = memory.runs.get(run_id)
    if of_run is None or of_run.state.phase != "closed":
        return False
    known = of_run.state.machines
    return all(
        name in known and known[name].ended and known[name].machine == machine
        for name, (_, machine) in machines.items()
    )


def _forget_others(memory: Memory, sight: Sight, *, all_seen: bool) -> None:
    for name in [n for n in memory.runs if n not in sight.marked]:
        if name not in sight.by_run and name not in sight.queued:
            del memory.runs[name]
    if memory.unclaimed and all_seen:
        listed = {
            name
            for found in (sight.by_run, sight.queued)
            for of_run in found.values()
            for name in of_run
        }
        for name in [n for n in memory.unclaimed if n not in listed]:
            del memory.unclaimed[name]
