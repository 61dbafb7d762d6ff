"""What runs stand on: the store, the clocks, this computer."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tradewind.base import clock, endpoints
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.ownfiles import home, replace
from tradewind.base.units import format_bytes
from tradewind.model import buckets
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.model.run import Listing
from tradewind.store.base import Dated, Store
from tradewind.store.probe import probe
from tradewind.upkeep import demos

_SLOW_S, _TOO_SLOW_S = 1.0, 10.0
_SKEW_S, _FAR_S = 30.0, 900.0
_LITTLE, _TOO_LITTLE = 2 << 30, 64 << 20
_WHY_SKEW = (
    "deadlines are by the world's clock, and buckets refuse requests that are 15 minutes wrong"
)
_WHY_SLOW = "every pass over runs waits for it, and machines that cannot reach it stop their job"


def refused(about: str, what: str, error: TradewindError) -> Finding:
    return Finding(
        about=about,
        level=BROKEN,
        what=what,
        why=error.message,
        todo=error.hint or "",
        measured={"error": type(error).__name__},
    )


def store_checks(store: Store) -> Iterator[Finding]:
    """In a folder of its own, which is removed."""
    try:
        store.list_after("live/")
    except TradewindError as error:
        yield refused("store", f"{store.url} cannot be read", error)
        return
    name = clock.new_id("doctor")
    try:
        checks = probe(store, name)
    except TradewindError as error:
        yield refused("store", f"{store.url} can be read and not written", error)
        return
    broken = [check for check in checks if not check.kept]
    for check in broken:
        yield Finding(
            about="store",
            level=BROKEN,
            what=f"{store.url} does not keep a promise: {check.promise}",
            why=f"{check.saw}; two controllers could both believe that they own a run",
            todo="choose another store; tradewind init tries it first",
        )
    if not broken:
        yield Finding(
            about="store", level=OK, what=f"{store.url} reads, writes, and creates only once"
        )
    yield from _round_trip(store, f"probe/{name}/trip")


def _round_trip(store: Store, key: str) -> Iterator[Finding]:
    """A write and a read; of three, the fastest: a laden computer is not a slow store."""
    taken = []
    for number in range(3):
        start = clock.stopwatch()
        store.replace(key, b"%d" % number)
        store.get(key)
        taken.append(clock.stopwatch() - start)
    store.delete(key)
    best = min(taken)
    level = OK if best < _SLOW_S else WARNING if best < _TOO_SLOW_S else BROKEN
    yield Finding(
        about="store",
        level=level,
        what="answers in time" if level == OK else f"takes {best:.1f} s to write and to read",
        why="" if level == OK else _WHY_SLOW,
        todo="" if level == OK else "choose a store that is nearer, or look at the network",
        measured={"round_trip_s": round(best, 6)},
    )


def credential_checks(
    url: str, troubles: Sequence[str], env: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """Who we are to a bucket, and whether it believes us: `troubles` are the errors that the
    store's own checks met."""
    scheme = url.partition("://")[0]
    if scheme not in buckets.STORES:
        return
    given = [name for name in buckets.STORES[scheme].credentials if env.get(name)]
    told = f"of {', '.join(given)}" if given else "that the cloud's own tools have kept"
    measured = {"store": scheme, "variables": given}
    if NoAccess.__name__ in troubles:
        yield Finding(
            about="credentials",
            level=BROKEN,
            what=f"{scheme}: those {told} were refused",
            why="without them neither you nor a machine reaches the runs",
            todo="docs/store.md has the variables, and what a bucket must permit",
            measured=measured | {"accepted": False},
        )
    elif troubles:
        yield Finding(
            about="credentials",
            level=WARNING,
            what=f"{scheme}: unknown whether those {told} are accepted",
            why="the store could not be asked",
            todo="fix the store first",
            measured=measured | {"accepted": None},
        )
    else:
        what = f"{scheme}: those {told} are accepted"
        yield Finding(
            about="credentials", level=OK, what=what, measured=measured | {"accepted": True}
        )


def clock_checks(store: Store, listings: Mapping[str, Listing]) -> Iterator[Finding]:
    held = os.environ.get("TRADEWIND_NOW")
    if held:
        yield Finding(
            about="clocks",
            level=WARNING,
            what=f"TRADEWIND_NOW holds this computer's clock at {held}",
            why="no deadline comes nearer, and what runs have cost stands still",
            todo="unset TRADEWIND_NOW where controllers run",
        )
    else:
        for name, listing in listings.items():
            # The listing has whole seconds.
            yield _skew(f"that of {name}", clock.epoch() - listing.at_s - 0.5)
    if isinstance(store, Dated):
        key = f"probe/{clock.new_id('clock')}"
        before = clock.epoch()
        store.replace(key, b"now")
        after = clock.epoch()
        try:
            skew = (before + after) / 2 - store.written_s(key)
        finally:
            store.delete(key)
        yield _skew("the store's", skew)


def _skew(whose: str, skew_s: float) -> Finding:
    far = abs(skew_s)
    level = OK if far < _SKEW_S else WARNING if far < _FAR_S else BROKEN
    side = "ahead of" if skew_s > 0 else "behind"
    return Finding(
        about="clocks",
        level=level,
        what=f"this computer's agrees with {whose}"
        if level == OK
        else f"this computer's is {far:,.0f} s {side} {whose}",
        why="" if level == OK else _WHY_SKEW,
        todo="" if level == OK else "let a time service set this computer's clock (NTP, chrony)",
        measured={"against": whose, "skew_s": round(skew_s, 3)},
    )


def computer_checks() -> Iterator[Finding]:
    folder = home()
    mine = folder / f".doctor-{os.getpid()}"
    try:
        replace(mine, b"")
    except NoAccess as error:
        yield refused("computer", f"{folder} cannot be written", error)
        return
    finally:
        with suppress(OSError):
            mine.unlink()
    yield Finding(about="computer", level=OK, what=f"{folder} can be written")
    yield _room(folder)
    yield from _private(folder)
    yield from _demos()


def _demos() -> Iterator[Finding]:
    for left in demos.left():
        yield Finding(
            about="computer",
            level=WARNING,
            what=f"a demo that was killed has left {left.home}",
            why=f"{len(left.pids)} of its processes still run" if left.pids else "nothing runs",
            todo="the next `tradewind demo` ends and removes it",
        )


def _private(folder: Path) -> Iterator[Finding]:
    if _others(folder):
        yield Finding(
            about="computer",
            level=WARNING,
            what=f"{folder} can be read by other users of this computer",
            why="logs, bundles and what controllers remember of runs lie there",
            todo=f"chmod 700 {shlex.quote(str(folder))}",
        )


def _others(folder: Path) -> int:
    """What users who are neither its owner nor of its group may do there: bits of its mode, 0 where
    they cannot even come there."""
    try:
        place = folder.resolve(strict=True)
        if all(above.stat().st_mode & stat.S_IXOTH for above in place.parents):
            return place.stat().st_mode & stat.S_IRWXO
    except OSError:
        pass  # it is made by who needs it first, for its user alone
    return 0


def folder_checks(url: str) -> Iterator[Finding]:
    """Of a store in a folder: whether everybody may read or write it."""
    if not url.startswith("file:"):
        return
    folder = Path(unquote(urlsplit(url).path))
    others = _others(folder)
    if not others:
        return
    writes = others & stat.S_IWOTH
    yield Finding(
        about="store",
        level=WARNING,
        what=f"{folder} can be {'written' if writes else 'read'} by every user of this computer",
        why="anyone who can write to a store controls its runs"
        if writes
        else "journals, bundles and logs of all its runs are in it",
        todo=f"chmod o-rwx {shlex.quote(str(folder))}",
    )


def endpoint_checks(url: str, env: Mapping[str, str]) -> Iterator[Finding]:
    from tradewind.store.handles import endpoint_of

    endpoint = endpoint_of(url.partition("://")[0], env)
    if endpoints.is_exposed(endpoint):
        yield Finding(
            about="store",
            level=WARNING,
            what=f"{endpoint} is not encrypted",
            why=f"{endpoints.ALLOW} permits it; credentials, journals and bundles can be read on"
            " the way",
            todo=f"use https://, and unset {endpoints.ALLOW}",
        )


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    level = OK if free >= _LITTLE else WARNING if free >= _TOO_LITTLE else BROKEN
    return Finding(
        about="computer",
        level=level,
        what="its disk has room" if level == OK else f"its disk has {format_bytes(free)} left",
        why="" if level == OK else "logs, bundles and checkpoints of local machines go there",
        todo="" if level == OK else "make room, or set TRADEWIND_HOME to another disk",
        measured={"free_bytes": free},
    )


def budget_checks() -> Iterator[Finding]:
    from tradewind.controller import budgetfile

    try:
        budgets = budgetfile.load()
    except TradewindError as error:
        yield refused("budgets", f"{home() / budgetfile.NAME} cannot be used", error)
        return
    many = len(budgets.projects) + (budgets.default is not None)
    words = f"{many} budget{'s' if many != 1 else ''} in {budgetfile.NAME}" if many else "none set"
    yield Finding(about="budgets", level=OK, what=words, measured={"budgets": many})
