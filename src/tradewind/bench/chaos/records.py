"""What the jobs have put down about their own output and steps, against what there is at the end.

A line is **lost** if the job's write of it returned and `tradewind logs` does not print it. Where
its machine was destroyed (its host was killed, or all of it), the line was only on that machine's
disk and is **gone** with it, as on a cloud; the oldest of these tells how far sending was behind.
A line that is there twice, or is none of ours in one piece, is counted too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from tradewind.bench.chaos.job import is_line

_OTHERS = (b"tradewind: ", b"Killed")
"""What supervisors say, and what a shell says of a job that was killed."""


class Line(Struct, frozen=True):
    at_s: float
    step: int
    data: bytes


class Try(Struct, frozen=True):
    """One process of a job, from its start to its end."""

    run_id: str
    machine: str
    lines: list[Line]


class Verdict(Struct):
    lines: int = 0
    lost_bytes: int = 0
    gone_bytes: int = 0
    oldest_gone_s: float = 0.0
    doubled: int = 0
    torn: int = 0


def read(records: Path) -> list[Try]:
    tries = []
    for path in sorted(records.iterdir()):
        run_id, _, machine, _ = path.name.split(" ")
        lines = []
        for each in path.read_bytes().split(b"\n")[:-1]:  # what follows the last end is cut
            at_s, written, data = each.split(b" ", 2)
            if int(written) == len(data) + 1:
                step = int(data.split(b" step=")[1].split(b" ")[0])
                lines.append(Line(float(at_s), step, data))
        tries.append(Try(run_id, machine, lines))
    return tries


def judged(tries: Iterable[Try], logs: dict[str, bytes], gone: dict[str, float]) -> Verdict:
    """`logs` are the runs' outputs, and `gone` when which machines were destroyed."""
    verdict = Verdict()
    there: dict[str, Counter[bytes]] = {}
    for run_id, log in logs.items():
        there[run_id] = Counter(log.split(b"\n")[:-1])
        for text, times in there[run_id].items():
            if is_line(text):
                verdict.doubled += times - 1
            elif not text.startswith(_OTHERS):
                verdict.torn += times
    for each in tries:
        for line in each.lines:
            verdict.lines += 1
            if not there[each.run_id][line.data]:
                if each.machine in gone:
                    verdict.gone_bytes += len(line.data) + 1
                    age_s = gone[each.machine] - line.at_s
                    verdict.oldest_gone_s = max(verdict.oldest_gone_s, age_s)
                else:
                    verdict.lost_bytes += len(line.data) + 1
    return verdict


def recoveries_s(
    tries: Sequence[Try], moments: Iterable[tuple[float, frozenset[str]]]
) -> list[float]:
    """For each kill that stopped a run's work: until another process of the job has done a step
    that none had done before. A run that was already stopped is not stopped again. Of several
    machines the first tells: the others may go on for a while."""
    found = []
    tries = [each for each in tries if each.machine.endswith("-0")]
    for run_id in sorted({each.run_id for each in tries}):
        times = _further(each for each in tries if each.run_id == run_id)
        works_s = 0.0
        for at_s, runs in moments:
            before = bisect_left(times, (at_s,))
            if run_id not in runs or at_s < works_s or not before:
                continue
            worker = times[before - 1][1]
            again = next((at for at, number in times[before:] if number != worker), None)
            if again is not None:
                works_s = again
                found.append(again - at_s)
    return found


def _further(tries: Iterable[Try]) -> list[tuple[float, int]]:
    """When each step was done for the first time, and by which try, in order."""
    done, reached = [], 0
    lines = [(line.at_s, number, line.step) for number, t in enumerate(tries) for line in t.lines]
    for at_s, number, step in sorted(lines):
        if step > reached:
            reached = step
            done.append((at_s, number))
    return done


def middle(values: list[float]) -> float | None:
    return round(median(values), 2) if values else None
