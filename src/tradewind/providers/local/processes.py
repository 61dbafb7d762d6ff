"""What runs of a machine, and how all of it is killed.

Every process of a machine has the machine's folder in its environment, and descends from its host,
which adopts what its descendants orphan (it is a child subreaper).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tradewind.base import processes
from tradewind.base.clock import sleep, stopwatch
from tradewind.base.errors import TradewindError
from tradewind.providers.base import OutcomeUnknown

MARK = "TRADEWIND_MACHINE"
"""The machine's id, for people and jobs."""
MARK_FOLDER = "TRADEWIND_MACHINE_FOLDER"
"""What tells it from a machine of that id in another home."""
_PATIENCE_S = 30.0
_PAUSE_S = 0.005


def need_linux() -> None:
    if os.uname().sysname != "Linux" or not hasattr(os, "pidfd_open"):
        raise TradewindError(
            "local machines need Linux: nothing else tells which processes are a machine's",
            hint="submit to a cloud's machines from here",
        )


def marked(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {**env, MARK: folder.name, MARK_FOLDER: str(folder)}


def living(folder: Path) -> dict[int, int]:
    """pid → start time of all that runs of the machine, its host too."""
    return processes.family(f"{MARK_FOLDER}={folder}".encode())


def marked_below(machines: Path) -> dict[str, list[int]]:
    """pids by machine, of all that has the mark of a machine below this folder."""
    mark = f"{MARK_FOLDER}={machines}/".encode()
    found: dict[str, list[int]] = {}
    for path in Path("/proc").iterdir():
        pid = int(path.name) if path.name.isdigit() else 0
        if not pid or processes.descent(pid) is None:
            continue
        for entry in processes.environ(pid):
            if entry.startswith(mark):
                found.setdefault(entry[len(mark) :].decode("utf-8", "replace"), []).append(pid)
    return found


def kill_all(folder: Path, *, spare: int = 0) -> None:
    """Returns when nothing runs of the machine but for the process `spare`. OutcomeUnknown: some of
    it would not die (it hangs in the kernel, or is another user's)."""
    begun = stopwatch()
    # What is forked while we look is found by the next look: until one finds nothing.
    while left := [both for both in living(folder).items() if both[0] != spare]:
        for pid, birth in left:
            processes.kill(pid, birth)
        if stopwatch() - begun > _PATIENCE_S:
            pids = ", ".join(str(pid) for pid, _ in left)
            raise OutcomeUnknown(f"of {folder.name} there are still processes: {pids}")
        sleep(_PAUSE_S)


def kill_with_host(folder: Path, host: int) -> None:
    """The same, for anyone but the host. It is killed last, so that orphans stay its children and
    can be found. Its pid says only that: should it be another's by now, nothing else is hit."""
    kill_all(folder, spare=host)
    kill_all(folder)
