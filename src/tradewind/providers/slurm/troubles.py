"""Slurm's states of jobs, its reasons for waiting and its errors, each in one table, and what they
mean to us. From the manual page of squeue ("JOB STATE CODES", "JOB REASON CODES") and from
slurm_errno.h.
"""

from __future__ import annotations

import re

from tradewind.model.run import JOB, TAKEN
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.slurm.login import Answer, Unreachable

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
LIVING = (
    "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "RESIZING", "SIGNALING", "STAGE_OUT",
    "STOPPED", "POWER_UP_NODE",
)  # fmt: skip

ENDS: dict[str, tuple[str, str]] = {
    "COMPLETED": ("", ""),
    "CANCELLED": ("", ""),
    "PREEMPTED": (TAKEN, "another job has preempted it"),
    "NODE_FAIL": (TAKEN, "one of its nodes has failed"),
    "BOOT_FAIL": (TAKEN, "one of its nodes did not come up"),
    "REVOKED": (TAKEN, "a cluster of the federation has it now"),
    "TIMEOUT": (TAKEN, "its time limit was reached"),
    "DEADLINE": (TAKEN, "its deadline in Slurm has passed"),
    "OUT_OF_MEMORY": (JOB, "it has used more memory than it asked for"),
    "FAILED": (JOB, "its batch script has failed"),
}
"""How a job is over: whom that is owed to, and in words. A cancelled one is our own doing, unless
another user was it. A preempted one that saves and ends within its grace is COMPLETED: what its
supervisors have told says why."""


def ended(state: str, by: str, uid: str) -> tuple[str, str]:
    """`by`: the number of the user who has cancelled it; `uid`: ours."""
    if state == "CANCELLED" and by and by != uid:
        return TAKEN, f"the user with the number {by} has cancelled it"
    return ENDS.get(state, ("", f"Slurm calls it {state}"))


_LIMITS = "`sacctmgr show qos` and `sacctmgr show assoc` tell the limits"
HOURS = (
    "`sshare -l` tells what is left of each account, `tradewind setup slurm --account NAME` chooses"
    " another"
)
_NEVER: dict[str, tuple[str, str, str]] = {
    "PartitionTimeLimit": (
        "not_allowed", "it asks for more time than its partition allows", "tradewind doctor slurm"
    ),
    "PartitionNodeLimit": (
        "not_found", "it asks for more nodes than its partition allows", "tradewind doctor slurm"
    ),
    "PartitionInactive": (
        "not_found", "its partition takes no jobs to run", "`sinfo` lists the partitions"
    ),
    "InvalidAccount": (
        "not_allowed", "its account is not valid", "--account of tradewind setup slurm"
    ),
    "InvalidQOS": ("not_allowed", "its QOS is not valid", "--qos of tradewind setup slurm"),
    "QOSNotAllowed": (
        "not_allowed", "its partition does not admit the QOS", "--qos of tradewind setup slurm"
    ),
    "AccountNotAllowed": (
        "not_allowed",
        "its partition does not admit the account",
        "--account of tradewind setup slurm",
    ),
    "BadConstraints": (
        "not_found", "no nodes have what it asks for", "--constraint of tradewind setup slurm"
    ),
    "DependencyNeverSatisfied": ("not_allowed", "it waits for what will never be", ""),
    "JobHeldAdmin": (
        "not_allowed", "an administrator holds it back", "whoever runs the cluster knows why"
    ),
    "JobLaunchFailure": (
        "not_allowed", "it could not be started", "whoever runs the cluster finds why in its log"
    ),
    "launch failed requeued held": (
        "not_allowed", "it could not be started", "whoever runs the cluster finds why in its log"
    ),
    "AssociationJobLimit": ("no_quota", "the account's limit of jobs is reached", _LIMITS),
}  # fmt: skip
"""What it comes to, in words, and what to do."""
_SPENT = re.compile(r"(QOS|Assoc)Grp\w*((?<!Run)Minutes(Limit)?|Wall(Limit)?)")
"""An account, or a QOS, without hours left. Of minutes that are being run (`RunMinutes`) some are
free again when other jobs end."""
_TOO_LARGE = re.compile(r"(QOS|Assoc)\w*Per(Job|Node)(Limit)?|QOSMin\w+")
"""A limit that a job of this size can never keep."""


def refused(reason: str) -> tuple[str, str]:
    """Of one that waits: the kind of refusal that it comes to, and in words, with what to do;
    ("", ""): it may yet begin."""
    kind, words, todo = "", "", ""
    if reason in _NEVER:
        kind, words, todo = _NEVER[reason]
    elif _SPENT.fullmatch(reason):
        kind, words, todo = "no_quota", "no hours are left in its account or QOS", HOURS
    elif _TOO_LARGE.fullmatch(reason):
        kind, words, todo = "no_quota", "it is over a limit of its account or QOS", _LIMITS
    return kind, f"{words}; {todo}" if todo else words


_ROOM = (
    "make room in your home of the cluster (`quota -s` or `df` there tell), or tradewind setup"
    " slurm --folder PATH"
)
_SUBMIT: tuple[tuple[str, str, str], ...] = (
    ("Invalid partition name specified", "not_found", "`sinfo` lists the partitions"),
    ("Invalid account or account/partition", "not_allowed", "--account of tradewind setup slurm"),
    ("Invalid qos specification", "not_allowed", "--qos of tradewind setup slurm"),
    ("Invalid feature specification", "not_found", "--constraint of tradewind setup slurm"),
    ("Requested node configuration is not available", "not_found", "tradewind doctor slurm"),
    ("Node count specification invalid", "not_found", "tradewind doctor slurm"),
    ("Requested time limit is invalid", "not_allowed", "tradewind doctor slurm"),
    ("Invalid generic resource", "not_found", "tradewind doctor slurm"),
    ("Memory specification can not be satisfied", "not_found", "tradewind doctor slurm"),
    ("Job violates accounting/QOS policy", "no_quota", "`sacctmgr show assoc` tells the limits"),
    ("does not have enough", "no_quota", "`sshare` tells what is left of the account's hours"),
    ("User's group not permitted", "not_allowed", "another partition: --partition"),
    ("Access/permission denied", "not_allowed", "whoever runs the cluster admits users"),
    ("Required partition not available", "no_capacity", ""),
    ("unable to accept job", "throttled", ""),
    ("Resource temporarily unavailable", "throttled", ""),
    ("No space left on device", "not_allowed", _ROOM),
    ("Disk quota exceeded", "not_allowed", _ROOM),
)
_DOWN = re.compile(r"Unable to contact slurm controller \(connect failure\)|Connection refused")
"""Nobody has heard us."""


def submitting(answer: Answer, doing: str) -> Exception:
    """What sbatch has answered."""
    words = answer.words
    for said, kind, hint in _SUBMIT:
        if said in answer.errors:
            return Refused(kind, f"{doing}: {words}", hint=hint or None)
    if _DOWN.search(answer.errors):
        return Unreachable(f"{doing}: {words}", hint="`scontrol ping` tells whether Slurm is up")
    if "Batch job submission failed: " in answer.errors and "timed out" not in answer.errors:
        return Refused("not_allowed", f"{doing}: {words}", hint="tradewind doctor slurm")
    return OutcomeUnknown(f"{doing}: {words}", hint="`squeue --me` shows whether it was taken")


def unprepared(answer: Answer, doing: str) -> Exception:
    """What has kept a launch's folder from being made: nothing was submitted."""
    for said, kind, hint in _SUBMIT:
        if said in answer.errors:
            return Refused(kind, f"{doing}: {answer.words}", hint=hint)
    return Unreachable(f"{doing}: {answer.words}", hint="`tradewind doctor slurm` looks at it")


def asked(answer: Answer | None, what: str, where: str) -> str:
    """What was printed; raises where the command has failed: an error is no empty answer."""
    if answer is None:
        raise Unreachable(f"{where} has not answered {what}")
    if answer.code == 127:
        raise Unreachable(
            f"{where} has no {what.split()[0]}",
            hint="a login node of a Slurm cluster has it: --login user@host names one",
        )
    if answer.code:
        raise Unreachable(
            f"{where}: {what}: {answer.words}", hint="`scontrol ping` tells whether Slurm is up"
        )
    return answer.text
