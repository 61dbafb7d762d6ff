"""What local machines leave behind, and how this computer is as a provider.

token    tokens/<launch-id> of a purchase that is forgotten or was refused. It keeps a late launch
         from buying again, and nobody launches for a run that is over.
folder   machines/<machine-id> without a purchase: forgetting it was cut off.
process  runs with the mark of a machine that has ended or never was. Ending a machine kills all of
         it; only who ran with an empty environment below a host that was killed gets away.

What is removed is looked at again under the token's lock, which whoever buys or ends holds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tradewind.model.finding import OK, Finding
from tradewind.providers.base import Leftover
from tradewind.providers.local import processes
from tradewind.providers.local.files import SPENT, MachineFolder, is_name

_LEAVING_S = 60
"""A host tells the end of its machine a moment before it leaves itself."""


def checks(root: Path) -> Sequence[Finding]:
    up = sum(1 for _ in root.glob("machines/*/host.json")) - sum(
        1 for _ in root.glob("machines/*/ended.json")
    )
    many = f"{up} machine{'s' if up != 1 else ''} up" if up > 0 else "no machine up"
    return [
        Finding(
            about="credentials",
            level=OK,
            what=f"local: this computer can be rented, {many}",
            measured={"provider": "local", "machines_up": max(up, 0)},
        )
    ]


def found(root: Path, now: float) -> list[Leftover]:
    return [*_processes(root, now), *_folders(root), *_tokens(root)]


def remove(root: Path, leftover: Leftover, token: BinaryIO) -> bool:
    """By the holder of its token. False: it is needed after all."""
    if leftover.kind == "token":
        return _remove_token(root, leftover.name, token)
    folder = root / "machines" / leftover.name
    if _bought(root, leftover.name) and not MachineFolder(folder).ended.exists():
        return False
    processes.kill_all(folder)
    if leftover.kind == "folder":
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _remove_token(root: Path, launch_id: str, token: BinaryIO) -> bool:
    token.seek(0)
    if token.read() not in (b"", SPENT) or (root / "launches" / f"{launch_id}.json").exists():
        return False
    # Whoever waits for the lock has the old file open, and is refused by what it says.
    token.truncate(0)
    token.write(SPENT)
    token.flush()
    (root / "tokens" / launch_id).unlink(missing_ok=True)
    return True


def _tokens(root: Path) -> Iterator[Leftover]:
    for path in sorted(root.glob("tokens/*")):
        run_id = path.name.rpartition("-")[0]
        if run_id and is_name(path.name) and not (root / "launches" / f"{path.name}.json").exists():
            words = "the lock of a finished launch"
            yield Leftover(kind="token", name=path.name, words=words, run_id=run_id)


def _folders(root: Path) -> Iterator[Leftover]:
    for path in sorted(root.glob("machines/*")):
        if not _bought(root, path.name):
            yield Leftover(kind="folder", name=path.name, words="files of a machine that is gone")


def _processes(root: Path, now: float) -> Iterator[Leftover]:
    for name, pids in sorted(processes.marked_below(root / "machines").items()):
        if os.getpid() in pids:
            continue  # whoever asks runs on it
        end = MachineFolder(root / "machines" / name).end()
        if _bought(root, name) and (end is None or now - end.ended_s < _LEAVING_S):
            continue
        many = ", ".join(map(str, sorted(pids)))
        words = f"runs on after its machine has ended: process {many}"
        yield Leftover(kind="process", name=name, words=words)


def _bought(root: Path, machine_id: str) -> bool:
    launch_id = machine_id.removeprefix("local-").rpartition("-")[0]
    return is_name(launch_id) and (root / "launches" / f"{launch_id}.json").exists()
