"""What Slurm's commands print, as values.

Text of fields that are asked for by name, which has been the same since long before 20.11; the JSON
of newer versions has another shape in almost each of them. Moments are seconds since 1970:
`SLURM_TIME_FORMAT=%s` is set where they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from tradewind.base.errors import SourceFailed
from tradewind.providers.slurm.names import Name, nodes_in, parsed

QUEUE_FIELDS = "%i|%T|%V|%S|%e|%D|%N|%r|%k|%j"
"""Of squeue. Comment and name come last: those of others may have anything in them."""
BOOK_FIELDS = "JobIDRaw,State,Submit,Start,End,NNodes,NodeList,JobName"
"""Of sacct."""
LINE_FIELDS = "%A|%P"
"""Of squeue, for all jobs that wait."""
HOURS_FIELDS = "Account,User,GrpTRESMins,GrpTRESRaw"
"""Of sshare."""
_UNLIMITED = ("UNLIMITED", "INFINITE", "NONE", "N/A", "")
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_GRES = re.compile(r"gpu(?::([A-Za-z][\w.+-]*))?(?::(\d+))?(?:\(.*\))?")


class Row(Struct, frozen=True, kw_only=True):
    """A job, as one of the two tells of it."""

    job_id: int
    state: str
    """Its first word: `CANCELLED by 1000` is CANCELLED."""
    submitted_s: int | None
    started_s: int | None
    """Of one that waits: when it will likely start."""
    ended_s: int | None
    nodes: int
    placed: bool
    """It has, or had, nodes."""
    reason: str = ""
    by: str = ""
    """Of a cancelled one: the number of the user who has done that."""
    name: Name


def queue(text: str, owner: str) -> list[Row]:
    """Of squeue with QUEUE_FIELDS: what is this owner's."""
    found = []
    for fields in _lines(text, 10, "squeue"):
        job_id, state, submitted, started, ended, nodes, where, reason, comment, title = fields
        name = parsed(title)
        if name is None or name.owner != owner or not job_id.isdecimal():
            continue
        found.append(
            Row(
                job_id=int(job_id),
                state=state.strip(),
                submitted_s=_moment(submitted),
                started_s=_moment(started),
                ended_s=_moment(ended),
                # Of a job that is completing, only the nodes that are not done yet are counted.
                nodes=max(_count(nodes), nodes_in(comment)),
                placed=bool(where.strip()),
                reason="" if reason.strip() in ("None", "") else reason.strip(),
                name=name,
            )
        )
    return found


def book(text: str, owner: str) -> list[Row]:
    """Of sacct with BOOK_FIELDS: what is this owner's."""
    found = []
    for fields in _lines(text, 8, "sacct"):
        job_id, told, submitted, started, ended, nodes, where, title = fields
        name = parsed(title)
        if name is None or name.owner != owner or not job_id.isdecimal():
            continue
        state, _, by = told.partition(" by ")
        found.append(
            Row(
                job_id=int(job_id),
                state=state.strip().rstrip("+"),
                submitted_s=_moment(submitted),
                started_s=_moment(started),
                ended_s=_moment(ended),
                nodes=_count(nodes),
                placed=where.strip() not in ("", "None assigned", "None"),
                by=by.strip(),
                name=name,
            )
        )
    return found


def _lines(text: str, fields: int, whose: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if not line.strip():
            continue
        parts = line.split("|", fields - 1)
        if len(parts) != fields:
            raise SourceFailed(f"{whose} has printed a line that cannot be read: {line[:120]!r}")
        yield parts


def _moment(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _count(text: str) -> int:
    """`2`, or `2-4` of one that waits."""
    found = re.match(r"\d+", text.strip())
    return int(found[0]) if found else 0


def places(text: str) -> dict[int, int]:
    """Of squeue with LINE_FIELDS, first come first: the place of each job among those that wait for
    the same partition. Of jobs that their owners alone may see nobody knows."""
    before: dict[str, int] = {}
    found: dict[int, int] = {}
    for job_id, partitions in _lines(text, 2, "squeue"):
        for each in partitions.split(","):
            before[each] = before.get(each, 0) + 1
        if job_id.isdecimal():
            found[int(job_id)] = min(before[each] for each in partitions.split(","))
    return found


def records(text: str) -> list[dict[str, str]]:
    """Of `scontrol -o show …`: a line each, of words `Key=value`; values may have blanks."""
    found = []
    for line in text.splitlines():
        parts = re.split(r"(?:^|\s)([A-Z][A-Za-z0-9_/:]*)=", line.strip())
        pairs = {key: value.strip() for key, value in zip(parts[1::2], parts[2::2], strict=True)}
        if pairs:
            found.append(pairs)
    return found


def settings(text: str) -> dict[str, str]:
    """Of `scontrol show config`: a line each, `Key = value`."""
    return {
        key.strip(): value.strip()
        for key, sign, value in (line.partition("=") for line in text.splitlines())
        if sign and " " not in key.strip()
    }


def lasts_s(text: str) -> int | None:
    """`2-00:00:00`, `12:00:00`, `30:00` or `30`, which are minutes; None: without end."""
    text = text.strip()
    if text.upper() in _UNLIMITED:
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if found is None:
        raise SourceFailed(f"{text!r} is no time limit that Slurm documents")
    days, *parts = (int(each) if each else None for each in found.groups())
    first, second, third = parts
    if days is not None:  # days-hours:minutes:seconds
        return days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    if second is not None:
        return (first or 0) * 60 + second
    return (first or 0) * 60


def mebibytes(text: str) -> float:
    """`4000M`, `1.5T`; a bare number has this unit."""
    found = re.fullmatch(r"([\d.]+)([KMGT]?)[Bbnc]?", text.strip())
    return float(found[1]) * _MIB[found[2]] if found else 0.0


def tres(text: str) -> dict[str, str]:
    """`cpu=2,mem=1000M,gres/gpu=2,gres/gpu:a100=2`, by name."""
    return {
        key.strip().lower(): value.strip()
        for key, sign, value in (each.partition("=") for each in text.split(","))
        if sign
    }


_OURS = ("cpu", "mem", "node", "billing", "gres/gpu")
"""What each of our jobs uses some of."""


def spent(text: str) -> dict[str, str]:
    """Of sshare with HOURS_FIELDS: accounts without hours left, and in words what is used up. A
    line that is further in is of an account, or of a user, below the one before it."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for account, _, limits, used in _lines(text, 4, "sshare"):
        name = account.strip()
        depth = len(account) - len(account.lstrip())
        above = [each for each in above if each[0] < depth]
        words = _used_up(tres(limits), tres(used)) or (above[-1][1] if above else "")
        above.append((depth, words))
        if words:
            found.setdefault(name, words)
    return found


def _used_up(limits: dict[str, str], used: dict[str, str]) -> str:
    for name, limit in limits.items():
        minutes = used.get(name, "0")
        known = limit.isdecimal() and minutes.isdecimal() and name.partition(":")[0] in _OURS
        if known and int(minutes) >= int(limit):
            return f"{minutes} of {limit} minutes of {name} are used"
    return ""


def gpus(text: str) -> list[tuple[str, int]]:
    """Of a node's Gres: `gpu:a100:4(S:0-1),shard:8` has four of a type; "": of no named type."""
    found = []
    for each in re.split(r",(?![^(]*\))", text):
        match = _GRES.fullmatch(each.strip())
        if match and (count := int(match[2] or 1)):
            found.append((match[1] or "", count))
    return found
