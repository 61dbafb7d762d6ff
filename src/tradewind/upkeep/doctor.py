"""Every check there is. What breaks one is what it has found: the others go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tradewind import store as stores
from tradewind.base.errors import TradewindError
from tradewind.base.plaintext import one_line
from tradewind.base.units import format_names
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers import registry
from tradewind.providers.base import Provider, Upkeep
from tradewind.store.base import Store
from tradewind.upkeep import attended, checks, clouds, gpus, parts
from tradewind.upkeep.about import ABOUT
from tradewind.upkeep.survey import Survey, survey

_NEWEST = 20
"""So many of the newest runs are opened to see whether we can read them."""
_MOST = 200
"""So many are asked whether they were ever submitted; `sweep` asks all."""
_IN_RUNS = {"clocks", "runs", "orphans"}
_IN_A_STORE = _IN_RUNS | {"store", "credentials", *registry.RENTED}


def examine(
    url: str | None,
    providers: Callable[[Store], Mapping[str, Provider]],
    *,
    only: Collection[str] = ABOUT,
    sources: Callable[[], Mapping[str, Sequence[str]]] = dict,
) -> list[Finding]:
    """`only` of these is told, and a store without which that cannot be known. `sources` names the
    variables that each source of prices needs."""
    found: list[Finding] = []

    def collect(about: str, check: Callable[[], Iterable[Finding]]) -> None:
        if about not in only:
            return
        try:
            found.extend(check())
        except TradewindError as error:
            found.append(checks.refused(about, "could not be looked at", error))
        except Exception as error:  # what asks how everything is must not die of it
            found.append(_bug(about, error))

    collect("computer", checks.computer_checks)
    collect("parts", parts.part_checks)
    collect("gpus", gpus.gpu_checks)
    collect("prices", lambda: parts.price_checks(sources(), os.environ))
    collect("budgets", checks.budget_checks)
    if not _IN_A_STORE & set(only):
        return found
    store: Store | None = None

    asked = set(only) != set(ABOUT)

    def look_at_clouds(opened: Store | None) -> None:
        for name in registry.RENTED:
            look = partial(clouds.cloud_checks, name, opened, asked=asked)
            collect(name, partial(look, env=os.environ, user=Path.home()))

    try:
        store = stores.open(url)
        opened = store
        collect("store", lambda: checks.store_checks(opened))
        collect("store", lambda: checks.folder_checks(opened.url))
        collect("store", lambda: checks.endpoint_checks(opened.url, os.environ))
        met = [f.measured.get("error", "") for f in found if f.about == "store"]
        met = [name for name in met if name]
        collect("credentials", lambda: checks.credential_checks(opened.url, met))
        collect("credentials", lambda: parts.bucket_checks(opened.url, os.environ, Path.home()))
    except TradewindError as error:
        found.append(checks.refused("store", f"{url or 'the store'} cannot be opened", error))
    if store is None or any(f.about == "store" and f.level == BROKEN for f in found):
        if only != ("store",):
            found.append(_unseen())
        if asked:
            look_at_clouds(None)
        return found
    whole = store
    rented: dict[str, Provider] = {}
    found += [f for f in _providers(whole, providers, rented) if f.about in only]
    look_at_clouds(whole)
    sight = Survey()
    if _IN_RUNS & set(only):
        try:
            sight = survey(whole, rented)
        except TradewindError as error:
            found.append(checks.refused("runs", "they cannot be looked through", error))
    collect("clocks", lambda: checks.clock_checks(whole, sight.listings))
    collect("runs", lambda: _runs(whole, sight))
    collect("orphans", lambda: _orphans(whole, sight, rented))
    return found


def _bug(about: str, error: Exception) -> Finding:
    if os.environ.get("TRADEWIND_DEBUG"):
        raise error
    return Finding(
        about=about,
        level=BROKEN,
        what="the check itself failed",
        why=f"this is a bug in Tradewind: {type(error).__name__}: {error}",
        todo="run it again with TRADEWIND_DEBUG=1 for the traceback, and please report it",
    )


def _unseen() -> Finding:
    return Finding(
        about="runs",
        level=WARNING,
        what="clocks, runs and orphans were not looked at",
        why="all that is known of them is in the store",
        todo="fix the store first",
    )


def _providers(
    store: Store, make: Callable[[Store], Mapping[str, Provider]], into: dict[str, Provider]
) -> Iterator[Finding]:
    try:
        into.update(make(store))
    except TradewindError as error:
        yield Finding(
            about="credentials",
            level=WARNING,
            what="no machine can be rented from here",
            why=error.message,
            todo=error.hint or "",
        )
    for provider in into.values():
        if isinstance(provider, Upkeep):
            yield from provider.checks()


def _runs(store: Store, sight: Survey) -> Iterator[Finding]:
    from tradewind.journal import runs_store

    read = set(sight.states) | {name for name, _ in sight.troubles}
    ids = runs_store.by_age(runs_store.run_ids(store))
    newest = [name for name in ids[-_NEWEST:] if name not in read]
    _, troubles = runs_store.load_all(store, newest)
    for name, error in [*sight.troubles, *troubles]:
        yield Finding(
            about="runs",
            level=BROKEN,
            what=f"{name} cannot be read",
            why=error.message,
            todo=error.hint or "",
        )
    others = [one_line(name) for name in runs_store.other_folders(store)]
    if others:
        yield Finding(
            about="runs",
            level=WARNING,
            what=f"below runs/ in the store, but not a run: {format_names(others)}",
            why="Tradewind makes no such folder, and passes over it; a machine or a person did",
            todo="look into it, and delete it",
        )
    yield _attended(store, sight)


def _attended(store: Store, sight: Survey) -> Finding:
    live = [n for n in sight.live if n in sight.states and sight.states[n].phase]
    many, them = (f"{len(live)} runs", "them") if len(live) != 1 else ("1 run", "it")
    if not live:
        return Finding(about="runs", level=OK, what="no run is running", measured={"live": 0})
    found = attended.attention(store)
    ago_s = None if found.ago_s is None else round(found.ago_s, 1)
    measured = {"live": len(live), "attended_s_ago": ago_s}
    if not found.is_overdue:
        return Finding(
            about="runs",
            level=OK,
            what=f"{many} running, and a controller for {them}",
            measured=measured,
        )
    return Finding(
        about="runs",
        level=WARNING,
        what=f"{many} running, and no controller for {them}: {format_names(live)}",
        why="interrupted machines are not replaced, and finished ones not terminated, until it is"
        " seen; each machine still stops at its own hard stop",
        todo="tradewind watch, or tradewind tick from cron",
        measured=measured,
    )


def _orphans(store: Store, sight: Survey, providers: Mapping[str, Provider]) -> Iterator[Finding]:
    from tradewind.upkeep.sweep import unsubmitted

    for stray in sight.strays:
        yield Finding(
            about="orphans",
            level=WARNING,
            what=f"{stray.machine.machine_id} is up, and {stray.why}",
            why="it costs money and does no run any good",
            todo="tradewind sweep" if stray.due else "look again in five minutes",
            measured={"machine": stray.machine.machine_id, "age_s": stray.age_s},
        )
    begun = unsubmitted(store, most=_MOST)
    if begun:
        yield Finding(
            about="orphans",
            level=WARNING,
            what=f"begun over an hour ago and never submitted: {format_names(begun)}",
            why="what was sent for it takes room, and it is looked at again and again",
            todo="tradewind sweep",
        )
    gone = [
        left
        for provider in providers.values()
        if isinstance(provider, Upkeep)
        for left in provider.leftovers()
        if left.kind == "process"
    ]
    for left in gone:
        yield Finding(
            about="orphans",
            level=WARNING,
            what=f"{left.name} {left.words}",
            why="it takes memory and accelerators from others",
            todo="tradewind sweep",
        )
    if not (sight.strays or begun or gone):
        yield Finding(about="orphans", level=OK, what="none")
