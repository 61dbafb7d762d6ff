"""The processes of one home folder, as /proc shows them: which there are, and what each is.

All that is started for the runs of a home has `TRADEWIND_HOME` in its environment, and children
inherit it. Whoever looks has it not, or not from its start, and does not find itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tradewind.base import processes as base
from tradewind.providers.local import processes


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    birth: int
    parent: int
    kind: str
    """controller, host, supervisor, keeper, job, child, other"""
    machine: str
    """The id of its machine; empty for those of none."""

    @property
    def run_id(self) -> str:
        return self.machine.removeprefix("local-").rsplit("-", 2)[0]


def all_of(home: Path) -> list[Process]:
    mark = f"TRADEWIND_HOME={home}".encode()
    found: dict[int, Process] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        pid = int(path.name)
        environ = base.environ(pid)
        stat = base.descent(pid) if mark in environ else None
        if stat is None:
            continue
        machine = next(
            (
                each.partition(b"=")[2].decode()
                for each in environ
                if each.startswith(processes.MARK.encode() + b"=")
            ),
            "",
        )
        found[pid] = Process(pid, stat[1], stat[0], _kind(_arguments(pid)), machine)
    return [_told_apart(process, found) for process in found.values()]


def _told_apart(process: Process, found: dict[int, Process]) -> Process:
    """A job's child has the same command line as the job."""
    parent = found.get(process.parent)
    if process.kind == "job" and parent and parent.kind == "job" and parent.parent in found:
        above = found[parent.parent]
        if above.kind == "job":  # its shell, then the job, then its child
            return Process(process.pid, process.birth, process.parent, "child", process.machine)
    return process


def _kind(arguments: list[str]) -> str:
    words = " ".join(arguments)
    if "tradewind.providers.local.host" in arguments:
        return "host"
    if "tradewind.supervisor" in arguments:
        return "supervisor"
    if any(each.endswith("keeper.py") for each in arguments[:3]):
        return "keeper"
    if "job.py" in words:
        return "job"
    if "tradewind" in arguments and {"watch", "tick"} & set(arguments):
        return "controller"
    return "other"


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []
