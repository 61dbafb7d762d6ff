"""All processes of a machine, and how they are killed.

Each has the machine's folder in its environment, and descends from its keeper, which adopts what
its descendants orphan.
"""

from __future__ import annotations

from pathlib import Path

from tradewind.base import processes
from tradewind.providers.ssh.there import folder as folders
from tradewind.providers.ssh.there import moments

KEEPER = "keeper.json"
MARK = "TRADEWIND_MACHINE_FOLDER"
_PATIENCE_S = 20.0


def living(folder: Path) -> dict[int, int]:
    """pid → start time, of all that runs of the machine, its keeper too."""
    return processes.family(f"{MARK}={folder}".encode(), keeper_of(folder))


def keeper_of(path: Path) -> tuple[int, int] | None:
    """The pid of its keeper, and when that was started."""
    told = folders.read(path / KEEPER)
    return (int(told["pid"]), int(told["birth"])) if told else None


def kill_all(folder: Path, *, spare: int = 0) -> bool:
    """Whether nothing runs of the machine any more but for `spare`. What is forked while we look is
    found by the next look: until one finds nothing."""
    until = moments.since_boot() + _PATIENCE_S
    while left := [both for both in living(folder).items() if both[0] != spare]:
        for pid, birth in left:
            processes.kill(pid, birth)
        if moments.since_boot() > until:
            return False
        moments.sleep(0.01)
    return True


def user_of(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
