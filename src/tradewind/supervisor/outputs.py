"""The job's own output files: from its folder into the run's store, and back after an interruption.

`Outputs` looks at the files that the workload's patterns name (model/globs.py) when the job has
saved, every EVERY_S, when it is asked to save, and when it has ended, on a thread of its own: a
store that hangs keeps nobody waiting. What has changed goes into a new object, whole; then the list
(model/outputs.py) is replaced, and objects that it no longer names are deleted. A file that is
written while it is read is left for the next look, so what is in the store was once a whole file.

The list is signed with the key that all launches of the run share, so a leg takes over what an
earlier leg of its own run has brought, and nothing that a machine of another run has put there. A
file that came with the job, or that its setup has made, is never replaced.

Small files first: should the time be over, most are there. Links are not followed, and nothing
outside of the job's folder is read or written. What cannot be brought is said in the job's log, and
is no reason for it to end.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import json

from tradewind.base import clock, signing
from tradewind.base.decoding import decoder
from tradewind.base.errors import BadFile, NoAccess, NotFound, TooLarge, TradewindError
from tradewind.base.units import format_bytes, format_names
from tradewind.model import bounds, globs, places
from tradewind.model.outputs import MOST_BYTES, MOST_FILES, OutputFile, problem
from tradewind.model.outputs import Outputs as Listed
from tradewind.store.base import Store

EVERY_S = 600.0
"""A job that tells nothing of its saves is looked at so often."""
LEAST_S = 20.0
"""Between two looks, however often the job saves."""
END_S = 900.0
"""After a job that has ended: then it is told that some are missing."""
_IN_MEMORY = 16 << 20
_CHUNK = 1 << 20
_NEWS_S = 5.0
"""While many files are brought, the list is renewed so often."""
_decode = decoder(Listed)
_Mark = tuple[int, int, int]
"""What of a file changes when its content does: bytes, time and inode."""


class Outputs:
    def __init__(
        self,
        store: Store,
        run_id: str,
        leg: int,
        rank: int,
        *,
        patterns: Sequence[str],
        folder: Path,
        remark: Callable[[str], None],
        key: str = "",
    ) -> None:
        """`key`: what this machine signs with."""
        self._key = key
        self._store, self._leg, self._rank = store, leg, rank
        self._run_id, self._patterns, self._folder = run_id, tuple(patterns), folder
        self._remark = remark
        self._list = places.outputs(run_id, rank, leg)
        self._objects = places.output_files(run_id, rank)
        self._life = clock.secret(6).hex()
        self._count = 0
        self._known: dict[str, OutputFile] = {}
        self._marks: dict[str, _Mark] = {}
        self._said: set[str] = set()
        self._saved, self._looked_s = 0.0, 0.0
        self._step = 0.0
        self._changed = threading.Condition()
        self._asked = self._done = 0
        self._over = False
        self._thread: threading.Thread | None = None

    # -- back, before the job starts ---------------------------------------------------------------

    def take_over(self) -> Listed | None:
        """What this leg has brought itself, by a supervisor before this one, or else the newest
        before it."""
        return self._take_over(self._leg + 1)

    def _take_over(self, before: int) -> Listed | None:
        """What the newest leg has brought of this rank, as far as the workload's patterns name
        it."""
        found = newest(self._store, self._run_id, self._rank, before=before, key=self._key)
        if found is not None:
            files = [each for each in found.files if globs.fits(each.path, self._patterns)]
            self._known = {each.path: each for each in files}
        return found

    def put_back(self) -> None:
        """What earlier legs have brought into the job's folder; a first leg has none before it.
        Files that are there stay as they are, and what was brought of them stays in the list until
        the job changes them."""
        found = self._take_over(self._leg)
        if found is None:
            return
        many = 0
        for each in self._known.values():
            target = self._folder / each.path
            if os.path.lexists(target):
                self._say(f"{each.path} came with the job, and is not replaced by its output")
                self._marks[each.path] = _mark(target.lstat())
                continue
            download(self._store, self._run_id, self._rank, each, self._folder)
            self._marks[each.path] = _mark(target.lstat())
            many += 1
        if many:
            self._remark(
                f"{many:,} output file{'s' if many > 1 else ''} of leg {found.leg} put back"
            )
        with suppress(TradewindError):  # of uploads that nobody finished
            named = {each.name for each in found.files}
            for key in self._store.list_after(self._objects):
                if key.removeprefix(self._objects) not in named:
                    self._store.delete(key)

    # -- there, while it runs ----------------------------------------------------------------------

    def seen(self, step: float, saved: float, uptime_s: float) -> None:
        """By the supervisor's loop, at every look."""
        self._step = step
        since_s = uptime_s - self._looked_s
        if since_s >= EVERY_S or (saved > self._saved and since_s >= LEAST_S):
            self._saved, self._looked_s = saved, uptime_s
            self.look()

    def look(self) -> None:
        """Soon, and without waiting for it."""
        with self._changed:
            self._asked += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="outputs", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def finish(self, timeout_s: float) -> None:
        """Once more, now that the job has ended, for so long at most."""
        self.look()
        with self._changed:
            wanted = self._asked
            done = self._changed.wait_for(lambda: self._done >= wanted or self._over, timeout_s)
        if not done or self._over:
            self._remark("time ran out before all output files were in the store")

    def give_up(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked > self._done or self._over)
                wanted, over = self._asked, self._over
            if over:
                return
            try:
                self._bring()
            except (TradewindError, OSError) as error:
                self._say(f"output files could not be brought: {error}")
            except Exception as error:
                self._say(f"output files: this is a bug: {type(error).__name__}: {error}")
            with self._changed:
                self._done = max(self._done, wanted)
                self._changed.notify_all()

    def _bring(self) -> None:
        there = dict(self._found())
        gone = set(self._known) - set(there)
        old = [self._known.pop(path).name for path in gone]
        renewed_s, changed = clock.stopwatch(), bool(gone)
        for path, mark in sorted(there.items(), key=lambda item: item[1][0]):
            if self._over:
                break
            if self._marks.get(path) == mark and path in self._known:
                continue
            before = self._known.get(path)
            new = self._sent(path, mark, before)
            if new is None:
                continue
            self._marks[path] = mark
            if new == before:
                continue
            self._known[path], changed = new, True
            old += [before.name] if before else []
            if clock.stopwatch() - renewed_s >= _NEWS_S:
                self._list_them()
                renewed_s, changed = clock.stopwatch(), False
        if changed:
            self._list_them()
        for name in old:  # not before nobody finds it in the list
            with suppress(TradewindError):
                self._store.delete(self._objects + name)

    def _list_them(self) -> None:
        files = tuple(self._known[path] for path in sorted(self._known))
        data = json.encode(Listed(self._leg, self._rank, self._step, files))
        self._store.replace(self._list, signing.signed(data, self._key, signing.OUTPUTS))

    def _sent(self, path: str, mark: _Mark, before: OutputFile | None) -> OutputFile | None:
        """Its object, made if its content is new; None: it changes just now, and comes later."""
        file = self._folder / path
        data: bytes | None = None
        try:
            # Not through a link, wherever on the way: what it names may be anybody's.
            handle = _open_below(self._folder, path)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            if mark[0] <= _IN_MEMORY:
                data = stream.read(_IN_MEMORY + 1)
                digest = hashlib.sha256(data).hexdigest()
            else:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if _mark(os.fstat(handle)) != mark:
                return None
            if before is not None and (before.sha256, before.size) == (digest, mark[0]):
                return before
            self._count += 1
            name = f"{self._leg}-{self._life}-{self._count}"
            if data is not None:
                self._store.replace(self._objects + name, data)
            else:
                # By its handle: what has the name by now may be another file, or a link.
                self._store.upload(self._objects + name, Path(f"/proc/self/fd/{handle}"))
            if _mark(os.fstat(handle)) != mark or not file.exists():
                with suppress(TradewindError):
                    self._store.delete(self._objects + name)
                return None
        return OutputFile(path, mark[0], digest, name)

    def _found(self) -> Iterator[tuple[str, _Mark]]:
        """Those that are named, as far as they may be brought: within what is kept at most."""
        total = many = 0
        refused, too_much = [], []
        for path, mark in sorted(self._walk(""), key=lambda item: item[1][0]):
            if problem(path):
                refused.append(path)
            elif many >= MOST_FILES or total + mark[0] > MOST_BYTES:
                too_much.append(path)
            else:
                many, total = many + 1, total + mark[0]
                yield path, mark
        if refused:
            self._say(f"not brought: {format_names(refused)}, since {problem(refused[0])}")
        if too_much:
            most = f"{MOST_FILES:,} files and {format_bytes(MOST_BYTES)}"
            self._say(f"not brought: {format_names(too_much)}; a machine's outputs are {most}")

    def _walk(self, below: str) -> Iterator[tuple[str, _Mark]]:
        with os.scandir(self._folder / below) as entries:
            for entry in entries:
                path = below + entry.name
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:  # removed since
                    continue
                if stat.S_ISDIR(info.st_mode):
                    if globs.may_hold(path, self._patterns):
                        with suppress(FileNotFoundError):
                            yield from self._walk(path + "/")
                elif stat.S_ISREG(info.st_mode) and globs.fits(path, self._patterns):
                    yield path, _mark(info)

    def _say(self, words: str) -> None:
        """Once: the next look finds the same."""
        if words not in self._said:
            self._said.add(words)
            self._remark(words)


def newest(
    store: Store, run_id: str, rank: int, *, before: int, key: str, unsigned: bool = False
) -> Listed | None:
    """What was brought of a rank by the latest leg before that one; None: nothing. What no launch
    of this run has signed is passed over: any machine of the store may have put it there.
    `unsigned`: it is taken nevertheless."""
    folder = places.outputs_of_rank(run_id, rank)
    for place in reversed(store.list_after(folder)):
        name = place.removeprefix(folder).removesuffix(".json")
        if not (len(name) == 6 and name.isdecimal() and 1 <= int(name) < before):
            continue
        with suppress(NotFound, TooLarge):
            data = store.get(place, most=bounds.OUTPUTS)
            body = signing.bare(data) if unsigned else signing.opened(data, key, signing.OUTPUTS)
            found = _decode(body) if body is not None else None
            if found is not None and (found.leg, found.rank) == (int(name), rank):
                return found
    return None


def download(store: Store, run_id: str, rank: int, file: OutputFile, folder: Path) -> None:
    """Into `folder`, never through a link and never beside it; the old file stays until the new
    one is there whole and is what the list says. BadFile: it is not."""
    target = folder.resolve() / file.path
    if problem(file.path):
        raise BadFile(f"{file.path!r} cannot be an output: {problem(file.path)}")
    try:
        _make_parents(folder.resolve(), file.path)
        if target.is_symlink() or target.is_dir():
            raise NoAccess(
                f"{target} is a link or a folder, and an output is to be written there",
                hint="move it away, or choose another folder",
            )
    except OSError as error:
        raise NoAccess(f"{target} cannot be written: {error.strerror or error}") from None
    beside = target.with_name(f".{target.name}.tradewind-{os.getpid()}")
    key = places.output_files(run_id, rank) + file.name
    try:
        beside.unlink(missing_ok=True)
        beside.touch(mode=0o666)  # as whoever asks for it makes files: by their umask
        mode = beside.stat().st_mode & 0o777
        store.download(key, beside, most=file.size)
        with beside.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != file.sha256:
            raise BadFile(
                f"{file.path} in {store.url} is not what the machine has brought: its hash differs",
                hint="someone with write access to the store changed it, or it is damaged",
            )
        beside.chmod(mode)
        beside.replace(target)
    except OSError as error:
        raise NoAccess(f"{target} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _make_parents(folder: Path, path: str) -> None:
    here = folder
    for part in path.split("/")[:-1]:
        here /= part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            raise NoAccess(
                f"{here} is a link or a file, and outputs are to be written below it",
                hint="move it away, or choose another folder",
            )
        here.mkdir(exist_ok=True)


def _open_below(folder: Path, path: str) -> int:
    *above, name = path.split("/")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    at = os.open(folder, flags | os.O_DIRECTORY)
    try:
        for part in above:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def _mark(info: os.stat_result) -> _Mark:
    return info.st_size, info.st_mtime_ns, info.st_ino
