"""The output files of a run's job, as its machines have brought them: listed and fetched.

Each machine of a leg brings its own, by its rank. Only lists that a launch of this run has signed
count, and what they name beyond the workload's own patterns is not shown. Nothing is
written outside of the folder that was asked for, and no file there that differs is overwritten
unless that is said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.base.units import format_names
from tradewind.lifecycle.state import RunState
from tradewind.model import globs, places
from tradewind.model.outputs import OutputFile
from tradewind.store.base import Store


class Output(Struct, frozen=True, kw_only=True):
    path: str
    size: int
    rank: int
    leg: int
    """The leg whose list names it."""
    step: float
    file: OutputFile


class Fetched(Struct, frozen=True, kw_only=True):
    output: Output
    path: Path
    new: bool
    """False: the same file was there already."""


def patterns(state: RunState) -> tuple[str, ...]:
    """What the workload names."""
    given = state.spec.job.get("outputs") if state.spec else None
    return tuple(each for each in given or () if isinstance(each, str))


def listed(store: Store, run_id: str, state: RunState, *, unsigned: bool = False) -> list[Output]:
    """By rank and path. `unsigned`: of lists, too, that no launch of this run has signed, as all
    are that an earlier Tradewind has written."""
    from tradewind.supervisor.outputs import newest

    key = "" if unsigned else _key(store, run_id, state)
    wanted, last = patterns(state), max(state.requests, default=0)
    most = max((request.way.nodes for request in state.requests.values()), default=0)
    found = []
    for name in store.folders(places.output_lists(run_id)) if wanted else ():
        rank = int(name) if name.isdecimal() and len(name) == 4 else most
        told = None
        if rank < most:
            told = newest(store, run_id, rank, before=last + 1, key=key, unsigned=unsigned)
        for file in told.files if told is not None else ():
            if globs.fits(file.path, wanted):
                assert told is not None
                found.append(
                    Output(
                        path=file.path,
                        size=file.size,
                        rank=rank,
                        leg=told.leg,
                        step=told.step,
                        file=file,
                    )
                )
    return sorted(found, key=lambda each: (each.rank, each.path))


def _key(store: Store, run_id: str, state: RunState) -> str:
    """Empty where the machines of a run, of an early Tradewind, signed nothing."""
    from tradewind.base import signing
    from tradewind.controller import seed

    if not any(request.signed for request in state.requests.values()):
        return ""
    try:
        found = seed.find(store)
    except NoAccess as error:
        raise NoAccess(
            f"whether machines of {run_id} have brought its output files cannot be checked:"
            f" {error.message}",
            hint="whoever may read keys/ of the store can; --unsigned takes them unchecked",
        ) from None
    # Without a seed nobody has signed anything, and anybody could have.
    return signing.key_of_run(found or clock.secret(signing.SEED_BYTES), run_id)


def chosen(outputs: Sequence[Output], paths: Sequence[str], rank: int) -> list[Output]:
    """Of one machine; by globs, or all. NotFound: there is nothing of that name."""
    own = [each for each in outputs if each.rank == rank]
    if not own:
        ranks = sorted({each.rank for each in outputs})
        known = f"there are some of rank {', '.join(map(str, ranks))}" if ranks else None
        raise NotFound(f"there are no output files of rank {rank}", hint=known)
    for path in paths:
        if not any(globs.fits(each.path, [path]) for each in own):
            raise NotFound(
                f"no output file is called {path}",
                hint=f"there are {format_names([each.path for each in own], 5)}",
            )
    return [each for each in own if not paths or globs.fits(each.path, paths)]


def fetch(
    store: Store,
    run_id: str,
    outputs: Sequence[Output],
    folder: Path,
    *,
    force: bool = False,
    tell: Callable[[Fetched], None] = lambda fetched: None,
) -> list[Fetched]:
    """Into `folder`, at their paths. InvalidValue, before anything is written: files that differ
    are there, and `force` was not said. What the machine has replaced meanwhile is NotFound."""
    from tradewind.store import readers
    from tradewind.supervisor.outputs import download

    readers.note(store, run_id)
    same = {each.path: _is_same(folder / each.path, each.file) for each in outputs}
    differ = [path for path, equal in same.items() if equal is False]
    if differ and not force:
        raise InvalidValue(
            f"files that differ are in {folder} already: {format_names(differ, 5)}",
            hint="--force overwrites them; --to FOLDER puts them elsewhere",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoAccess(f"{folder} cannot be made: {error.strerror or error}") from None
    done = []
    for each in outputs:
        new = not same[each.path]
        if new:
            download(store, run_id, each.rank, each.file, folder)
        done.append(Fetched(output=each, path=folder / each.path, new=new))
        tell(done[-1])
    return done


def _is_same(path: Path, file: OutputFile) -> bool | None:
    """None: there is no such file here."""
    try:
        if not path.is_symlink() and not path.exists():
            return None
        if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size:
            return False
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
