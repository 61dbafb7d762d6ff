"""Which jobs of ours there are, and which of them are over.

squeue is Slurm's controller, which forgets a job minutes after its end; sacct is its accounting,
which learns of it seconds later, and keeps it. A job is over when both say so: one that squeue does
not name as going on, and that accounting has an end of. An empty answer says nothing, and an error
even less. Should the two differ for good, since accounting can miss an end, the controller is asked
for the job by its number: that it does not know the number is an answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tradewind.model.run import Machine, Queued
from tradewind.providers.slurm import parsing, troubles
from tradewind.providers.slurm.login import Answer
from tradewind.providers.slurm.names import Name
from tradewind.providers.slurm.parsing import Row

_BACK = "now-3days"
"""Jobs that ended earlier are not listed any more."""
_UNKNOWN = "Invalid job id specified"


class Job(Struct, frozen=True, kw_only=True):
    job_id: int
    name: Name
    nodes: int
    started_s: int | None = None
    """When it was given its nodes; None: it waits, or never had any."""
    ended_s: int | None = None
    by: str = ""
    why: str = ""
    reason: str = ""
    """Of one that waits."""
    starts_s: int | None = None
    place: int = 0
    """Of one that waits, in its partition's queue; 0: unknown."""

    @property
    def waits(self) -> bool:
        return self.started_s is None and self.ended_s is None

    @property
    def lives(self) -> bool:
        return self.started_s is not None and self.ended_s is None

    def queued(self) -> Queued:
        kind, words = troubles.refused(self.reason)
        told = (self.reason, f"place {self.place} in its queue" if self.place else "")
        return Queued(
            launch_id=self.name.launch_id,
            run_id=self.name.run_id,
            leg=self.name.leg,
            reason=f"{self.reason}: {words}" if words else ", ".join(filter(None, told)),
            starts_s=None if kind else self.starts_s,
            refused=kind,
        )

    def machines(self, cluster: str) -> list[Machine]:
        if self.started_s is None:
            return []
        stem = self.name.stem(cluster)
        return [
            Machine(
                machine_id=f"{stem}-{rank}",
                launch_id=self.name.launch_id,
                run_id=self.name.run_id,
                leg=self.name.leg,
                rank=rank,
                launched_s=self.started_s,
                ended_s=self.ended_s,
                ended_by=self.by,
                ended_why=self.why,
            )
            for rank in range(self.nodes)
        ]


def asking(user: str, name: str = "") -> str:
    """Lines that ask both; with `name`, for jobs of that name alone."""
    who = f"-u {shlex.quote(user)}" + (f" --name={shlex.quote(name)}" if name else "")
    return f"""\
ask now date +%s
ask uid id -u
ask queue squeue -h -a -t all {who} -o {shlex.quote(parsing.QUEUE_FIELDS)}
ask book sacct -nPX {who} -S {_BACK} -o {parsing.BOOK_FIELDS}
"""


def asking_line() -> str:
    """Lines that ask for all jobs of everybody that wait, those first that come first."""
    return f"ask line squeue -h -a -t PD --sort=-p,i -o {shlex.quote(parsing.LINE_FIELDS)}\n"


def asking_for(numbers: Iterable[int]) -> str:
    """Lines that ask the controller for jobs by their numbers."""
    return "\n".join(f"ask job-{each} scontrol -o show job {each}" for each in numbers)


def denied(answers: Mapping[str, Answer]) -> set[int]:
    """Numbers that the controller says there is no job of."""
    return {
        int(name.removeprefix("job-"))
        for name, answer in answers.items()
        if name.startswith("job-") and answer.code and _UNKNOWN in answer.errors
    }


def doubtful(queue: Sequence[Row], book: Sequence[Row]) -> set[int]:
    """Those that squeue does not name, and of whose end accounting has not heard."""
    there = {each.job_id for each in queue}
    return {each.job_id for each in book if each.state not in troubles.ENDS} - there


def agreed(
    queue: Sequence[Row],
    book: Sequence[Row],
    at_s: int,
    *,
    uid: str = "",
    gone: Iterable[int] = (),
) -> list[Job]:
    """`gone`: those that the controller knows nothing of, when asked by number."""
    told = {each.job_id: each for each in book}
    seen = {each.job_id: each for each in queue}
    missing = set(gone)
    found = []
    for job_id in sorted({*told, *seen}):
        row, entry = seen.get(job_id), told.get(job_id)
        if row is not None and row.state not in troubles.ENDS:
            found.append(_going(row, entry))
        elif entry is not None and entry.state in troubles.ENDS:
            found.append(_over(entry, entry.ended_s or at_s, uid))
        elif entry is not None and job_id in missing:
            found.append(_over(entry, at_s, uid))
        else:  # only one of the two says that it is over, or neither
            found.append(_going(row, entry, ending=True))
    return found


def _going(row: Row | None, entry: Row | None, *, ending: bool = False) -> Job:
    nodes = max(each.nodes for each in (row, entry) if each is not None)
    row = row or entry
    assert row is not None
    waits = row.state in troubles.WAITING or (not row.placed and not ending)
    return Job(
        job_id=row.job_id,
        name=row.name,
        nodes=max(nodes, 1),
        started_s=None if waits or not row.placed else row.started_s,
        reason=row.reason if waits else "",
        starts_s=row.started_s if waits else None,
    )


def _over(row: Row, ended_s: int, uid: str) -> Job:
    by, why = troubles.ended(row.state, row.by, uid)
    started_s = row.started_s if row.placed else None
    return Job(
        job_id=row.job_id,
        name=row.name,
        nodes=max(row.nodes, 1),
        started_s=started_s,
        ended_s=max(ended_s, started_s or 0),
        by=by,
        why=why,
    )


def firsts(jobs: Iterable[Job]) -> tuple[list[Job], list[Job]]:
    """Of each name the job that counts, the first that there was; and those that should not be
    there: somebody has submitted the same launch at the same moment."""
    kept: dict[str, Job] = {}
    doubles = []
    for job in sorted(jobs, key=lambda each: each.job_id):
        first = kept.setdefault(job.name.text, job)
        if first is not job:
            doubles.append(job)
    return list(kept.values()), doubles
