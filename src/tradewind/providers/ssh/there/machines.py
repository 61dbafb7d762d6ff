"""Launch, list and end machines of one owner on this host.

A machine is a folder that is renamed to its name once all is in it and its leases are held: it is
launched or not, whenever the connection is cut. What its keeper could not say because it was
killed, whoever asks next finds out: nothing holds the lock, so nothing of it may run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

from tradewind.providers.ssh.there import drivers, gpus, keeper, moments, processes
from tradewind.providers.ssh.there import folder as folders

LISTED_S = 3600
"""An ended machine is listed for so long, and then forgotten."""
LEAST_FREE = 1 << 30
"""Bytes of disk, without which nothing is begun."""
_PAUSE_S = 0.05
_WORDS = 4000
"""Bytes of what a machine has printed that are told."""
_MARGIN_S = 5.0
Answer = dict[str, Any]


def launch(owned: Path, asked: Answer) -> Answer:
    told = asked["machine"]
    machines = owned / "machines"
    if not owned.is_dir():  # setup makes it: whoever has another write down this host has not
        return _refused("not_allowed", "it was not set up for this store: it has no folder of it")
    machines.mkdir(mode=0o700, exist_ok=True)
    final = machines / folders.check(told["machine_id"])
    with folders.alone(owned / "launching"):
        for each in _folders(machines):
            _settle(each)
        if final.exists():
            return {"machine": _seen(final)}
        if shutil.disk_usage(machines).free < LEAST_FREE:
            return _refused("no_capacity", f"less than 1 GB is free at {machines}")
        new = machines / f".new-{told['machine_id']}"
        shutil.rmtree(new, ignore_errors=True)  # of one that was cut off
        try:
            return _launched(new, final, asked)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _launched(new: Path, final: Path, asked: Answer) -> Answer:
    (new / "told").mkdir(mode=0o700, parents=True)
    new.chmod(0o700)
    for name, text in asked["files"].items():
        path = new / "told" / folders.check(name)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    lock = folders.lock(new / "keeper.lock")
    assert lock is not None  # it was just made
    leases = gpus.Leases()
    try:
        if not leases.take(asked["model"], asked["count"], asked["machine"]["machine_id"]):
            return _refused(
                "no_capacity", f"fewer than {asked['count']} of its {asked['model']} are free"
            )
        record = {
            **asked["machine"],
            "hard_stop_s": asked["hard_stop_s"],
            "env": asked["env"],
            "gpus": leases.uuids,
            "boot_id": moments.boot_id(),
            "since_boot_s": moments.since_boot(),
            "wall_s": moments.wall(),
        }
        folders.write(new / "machine.json", record)
        new.rename(final)
        if not keeper.start(final, record, leases, lock):
            leases.let_go()
            os.close(lock)
            _settle(final)
            return _refused("not_allowed", f"it could not be started: see {final}/keeper.log")
        return {"machine": _seen(final)}
    finally:
        for handle in leases.handles:
            os.close(handle)
        with contextlib.suppress(OSError):
            os.close(lock)


def _refused(kind: str, words: str) -> Answer:
    return {"refused": kind, "words": words}


def listed(owned: Path) -> list[Answer]:
    found = []
    for each in _folders(owned / "machines"):
        _settle(each)
        if not _forgotten(each) and (seen := _seen(each)):
            found.append(seen)
    return found


def end(owned: Path, machine_ids: list[str]) -> list[str]:
    """Those that have not ended."""
    there = [
        path
        for name in dict.fromkeys(machine_ids)
        if folders.is_name(name) and (path := owned / "machines" / name).is_dir()
    ]
    for each in there:
        if not (each / "ended.json").exists():
            (each / "ending").touch()
    until = moments.since_boot() + keeper.STOP_S + _MARGIN_S
    while moments.since_boot() < until and any(map(_lives, there)):
        moments.sleep(_PAUSE_S)
    for each in there:
        if _lives(each):  # its keeper was killed, or hangs
            own = processes.keeper_of(each)
            # It last: orphans stay its children, and are found by that.
            processes.kill_all(each, spare=own[0] if own else 0)
            processes.kill_all(each)
        _settle(each)
    return [each.name for each in there if _lives(each)]


def removed(root: Path, owned: Path) -> list[str]:
    """Everything of an owner's, unless machines live: those."""
    living = [each.name for each in _folders(owned / "machines") if _lives(each)]
    if living:
        return living
    for each in _folders(owned / "machines"):
        _settle(each)
    shutil.rmtree(owned, ignore_errors=True)
    with contextlib.suppress(OSError):  # other owners have something there
        root.rmdir()
    return []


def _folders(machines: Path) -> list[Path]:
    try:
        return sorted(each for each in machines.iterdir() if folders.is_name(each.name))
    except FileNotFoundError:
        return []


def _lives(folder: Path) -> bool:
    return folders.is_held(folder / "keeper.lock")


def _settle(folder: Path) -> None:
    """Of one that nobody keeps any more, what its keeper would have done."""
    if (folder / "ended.json").exists() or _lives(folder):
        return
    record = folders.read(folder / "machine.json")
    if record is None:  # a disk has lost it
        shutil.rmtree(folder, ignore_errors=True)
        return
    handle = folders.lock(folder / "keeper.lock")
    if handle is None:
        return  # another settles it
    try:
        last_s = os.fstat(handle).st_mtime
        if not processes.kill_all(folder):
            return
        folders.emptied(folder)
        gpus.clear(record.get("gpus") or ())
        folders.write(folder / "ended.json", _end(folder, record, last_s))
    except (OSError, drivers.NoGpus):
        return  # a full disk, say: the next to look tries again
    finally:
        os.close(handle)


def _end(folder: Path, record: Answer, last_s: float) -> Answer:
    if (folder / "ending").exists():
        return {"after_s": _elapsed_s(record), "why": keeper.TERMINATED}
    after_s = max(int(last_s - record["wall_s"]), 0)
    if record["boot_id"] != moments.boot_id():
        return {"after_s": after_s, "why": "the host was restarted", "taken": True}
    if not (folder / processes.KEEPER).exists():
        return {"after_s": 0, "why": "it was never started"}
    return {"after_s": after_s, "why": "its processes on the host were killed", "taken": True}


def _elapsed_s(record: Answer) -> int:
    if record["boot_id"] == moments.boot_id():
        return max(int(moments.since_boot() - record["since_boot_s"]), 0)
    return max(int(moments.wall() - record["wall_s"]), 0)


def _seen(folder: Path) -> Answer:
    record = folders.read(folder / "machine.json") or {}
    told = ("machine_id", "launch_id", "run_id", "leg", "rank", "launched_s", "gpus")
    seen: Answer = {name: record[name] for name in told if name in record}
    ended = folders.read(folder / "ended.json")
    if ended is not None and seen and not _lives(folder):
        seen["ended_s"] = record["launched_s"] + ended["after_s"]
        seen["taken"], seen["why"] = bool(ended.get("taken")), str(ended.get("why", ""))
        if ended.get("failed"):
            seen["said"] = _last_words(folder / "first.log")
    return seen


def _last_words(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(os.fstat(stream.fileno()).st_size - _WORDS, 0))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _forgotten(folder: Path) -> bool:
    try:
        ended_s = (folder / "ended.json").stat().st_mtime
    except OSError:
        return False
    if moments.wall() - ended_s < LISTED_S:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True
