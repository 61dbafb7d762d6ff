"""A pass of the controller for real: one look, then every run's tick, many at once.

A tick mostly waits for the store's answers, so threads do: each drives one tick after another to
its end. The store and the providers must be safe from several threads, and so must the controller's
`clock`, `watch`, `offers` and `policy`. Two passes of one controller may not overlap.

What goes wrong with one run ends its tick, is returned, and touches no other run. That holds for
bugs too: what a tick raises that is none of our errors becomes a TradewindError with it as cause.
A look that fails is raised, and no run is touched: the next pass will look again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tradewind.base import steps
from tradewind.base.errors import TradewindError, bug
from tradewind.controller.controller import Controller
from tradewind.controller.purse import AskMonth, Purse
from tradewind.providers.base import LaunchMachines, ListMachines, Provider, TerminateMachines
from tradewind.store import steps as store_steps
from tradewind.store.base import Store

WORKERS = 256
"""Twice as many are no faster on two cores, half as many slower: docs/benchmarks.md has figures."""


def performer(
    store: Store, providers: Mapping[str, Provider], purse: Purse | None = None
) -> Callable[[Any], Any]:
    """Does one step of a controller on these, at once."""
    in_store = store_steps.performer(store)

    def launch(step: LaunchMachines) -> Any:
        return providers[step.request.way.provider].launch(step.request, step.after, step.key)

    def terminate(step: TerminateMachines) -> None:
        providers[step.provider].terminate(step.machine_ids)

    doers: dict[type, Callable[[Any], Any]] = {
        ListMachines: lambda step: providers[step.provider].list_machines(),
        LaunchMachines: launch,
        TerminateMachines: terminate,
    }

    if purse is not None:
        doers[AskMonth] = purse.month

    def perform(step: Any) -> Any:
        if purse is not None and isinstance(step, ListMachines | LaunchMachines):
            purse.done()  # the purchase is recorded, and making it may take minutes
        return doers.get(type(step), in_store)(step)

    return perform


def whole_pass(
    controller: Controller,
    perform: Callable[[Any], Any],
    *,
    workers: int = WORKERS,
    done: Callable[[], None] = lambda: None,
) -> list[tuple[str, TradewindError]]:
    """What went wrong with which provider or run, in the order of the look. `done` is called after
    each tick, on its thread."""
    sight = steps.run(controller.look(), perform)
    left = deque(sight.runs)  # whose ends may be taken by several threads at once
    troubles: dict[str, TradewindError] = {}

    def work() -> None:
        while True:
            try:
                run_id = left.popleft()
            except IndexError:
                return
            try:
                steps.run(controller.tick(run_id, sight), perform)
            except TradewindError as error:
                troubles[run_id] = error
            except Exception as error:
                troubles[run_id] = bug(run_id, error)
            finally:
                done()

    many = min(workers, len(sight.runs))
    if many:
        with ThreadPoolExecutor(many, thread_name_prefix="tick") as pool:
            try:
                for worker in [pool.submit(work) for _ in range(many)]:
                    worker.result()
            finally:
                left.clear()  # interrupted: the ticks that have begun end, and no other begins
    found = [(run_id, troubles[run_id]) for run_id in sight.runs if run_id in troubles]
    return sight.troubles + found
