"""A pass of the controller for real: one look, then every run's tick, many at once.

A tick mostly waits for the store's answers, so threads do: each drives one tick after another to
its end. The store and the providers must be safe from several threads, and so must the controller's
`clock`, `watch` and `policy`. Two passes of one controller may not overlap.

What goes wrong with one run ends its tick, is returned, and touches no other run. That holds for
bugs too: what a tick raises that is none of our errors becomes a TradewindError with it as cause.
A look that fails is raised, and no run is touched: the next pass will look again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from tradewind.base import steps
from tradewind.base.errors import InvalidValue, SourceFailed, TradewindError, bug
from tradewind.controller.controller import Controller
from tradewind.controller.listings import Listings
from tradewind.controller.prices import Prices
from tradewind.controller.purse import AskMonth, Purse
from tradewind.controller.services import Services
from tradewind.providers.base import (
    Admits,
    AskPrices,
    DismissCircle,
    LaunchMachines,
    ListAll,
    ListMachines,
    Provider,
    Queue,
    TerminateMachines,
    WithdrawLaunches,
)
from tradewind.services.action import EndFront, LookFront, TendFront
from tradewind.services.seen import FrontSeen
from tradewind.store import steps as store_steps
from tradewind.store.base import Store
from tradewind.store.lending import LendPass, Pass, encoded

WORKERS = 256
"""Twice as many are no faster on two cores, half as many slower: docs/benchmarks.md has figures."""


def no_lender(run_id: str, for_s: int) -> Pass:
    raise InvalidValue("this controller lends no passes to its store")


class Fronts(Protocol):
    """The fronts of services that are ours to keep."""

    def look(self, step: LookFront) -> FrontSeen | None: ...
    def tend(self, step: TendFront) -> None: ...
    def end(self, step: EndFront) -> None: ...


def performer(
    store: Store,
    providers: Mapping[str, Provider],
    purse: Purse | None = None,
    lend: Callable[[str, int], Pass] = no_lender,
    fronts: Fronts | None = None,
) -> Callable[[Any], Any]:
    """Does one step of a controller on these, at once. `lend` makes a pass to the store, of a run
    and for so many seconds."""
    in_store = store_steps.performer(store)

    def launch(step: LaunchMachines) -> Any:
        return providers[step.request.way.provider].launch(step.request, step.after, step.key)

    def terminate(step: TerminateMachines) -> None:
        providers[step.provider].terminate(step.machine_ids)

    def withdraw(step: WithdrawLaunches) -> None:
        provider = providers[step.provider]
        if isinstance(provider, Queue):
            provider.withdraw(step.launch_ids)

    def dismiss(step: DismissCircle) -> bool:
        provider = providers[step.provider]
        if isinstance(provider, Admits):
            return provider.dismiss(step.name)
        return True

    def lend_pass(step: LendPass) -> None:
        store.replace(step.key, encoded(lend(step.run_id, step.for_s)))

    doers: dict[type, Callable[[Any], Any]] = {
        AskPrices: Prices(providers),
        ListAll: Listings(providers),
        ListMachines: lambda step: providers[step.provider].list_machines(),
        LaunchMachines: launch,
        TerminateMachines: terminate,
        WithdrawLaunches: withdraw,
        LendPass: lend_pass,
        DismissCircle: dismiss,
    }

    if fronts is not None:
        doers |= {LookFront: fronts.look, TendFront: fronts.tend, EndFront: fronts.end}
    if purse is not None:
        doers[AskMonth] = purse.month

    def contained(step: Any) -> Any:
        """Of a provider: what nobody has thought of is its trouble, and its outcome is unknown."""
        try:
            return doers[type(step)](step)
        except TradewindError:
            raise
        except Exception as error:
            raise SourceFailed(bug(type(step).__name__, error).message) from error

    def perform(step: Any) -> Any:
        if purse is not None and isinstance(step, ListAll | ListMachines | LaunchMachines):
            purse.done()  # the purchase is recorded, and making it may take minutes
        return contained(step) if type(step) in doers else in_store(step)

    return perform


def whole_pass(
    controller: Controller,
    perform: Callable[[Any], Any],
    *,
    workers: int = WORKERS,
    done: Callable[[], None] = lambda: None,
    services: Services | None = None,
) -> list[tuple[str, TradewindError]]:
    """What went wrong with which provider, run or service, in the order of the look. `done` is
    called after each tick, on its thread. Services come last: their replicas are runs."""
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
    for service_id in sight.services:
        if services is None:
            break
        try:
            steps.run(services.tick(service_id, sight), perform)
        except TradewindError as error:
            found.append((service_id, error))
        except Exception as error:
            found.append((service_id, bug(service_id, error)))
    return sight.troubles + found
