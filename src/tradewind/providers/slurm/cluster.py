"""What a cluster has, as Slurm's own commands tell it: partitions, nodes, QOS and limits."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.providers.slurm import parsing, troubles
from tradewind.providers.slurm.facts import OLDEST
from tradewind.providers.slurm.login import Answer, Login

ASKS = f"""\
ask who id -un
ask groups id -Gn
ask home sh -c 'echo "$HOME"'
ask config scontrol show config
ask partitions scontrol -a -o show partition
ask nodes scontrol -a -o show node
ask book sacct -nPX -u "$(id -un)" -S now -o JobIDRaw
ask assoc sacctmgr -nP show assoc user="$(id -un)" \\
  format=cluster,account,partition,maxwall,maxtres,grptres
ask qos sacctmgr -nP show qos format=name,gracetime,preempt,maxwall,maxtres,maxtrespu,grptres
ask own sacctmgr -nP show user "$(id -un)" format=defaultaccount
ask hours sshare -nP -o {parsing.HOURS_FIELDS}
"""
_OFF = ("DOWN", "DRAIN", "FAIL", "MAINT", "FUTURE", "NOT_RESPONDING", "REBOOT", "PLANNED_DOWN")


class Node(Struct, frozen=True, kw_only=True):
    name: str
    arch: str
    gpus: tuple[tuple[str, int], ...]
    """Type and number; the type may be ""."""
    gpus_used: int
    cpus: int
    cpus_used: int
    mem_mb: int
    partitions: tuple[str, ...]
    features: tuple[str, ...]
    up: bool


class Partition(Struct, frozen=True, kw_only=True):
    name: str
    up: bool
    groups: tuple[str, ...]
    """That are admitted; none: all."""
    accounts: tuple[str, ...]
    qos: tuple[str, ...]
    own_qos: str
    """Whose limits hold for all its jobs."""
    limit_s: int | None
    most_nodes: int | None
    tier: int
    preempt: str
    """What happens to a job that another preempts: OFF, CANCEL, REQUEUE, SUSPEND …"""
    grace_s: int
    weights: dict[str, float]
    """Billing units by what is used: cpu, mem (a MiB), gres/gpu …"""


class Qos(Struct, frozen=True, kw_only=True):
    name: str
    grace_s: int
    preempts: tuple[str, ...]
    limit_s: int | None
    most_gpus: int | None
    """Of a job, or of all jobs of a user."""


class Sight(Struct, frozen=True, kw_only=True):
    name: str
    version: str
    user: str
    groups: tuple[str, ...]
    home: str
    preempt_type: str
    preempt_mode: str
    linear: bool
    """It gives whole nodes only."""
    proctrack: str
    partitions: dict[str, Partition]
    nodes: tuple[Node, ...]
    qos: dict[str, Qos]
    accounts: tuple[str, ...]
    limits_s: dict[str, int]
    """The longest job of an account."""
    most_gpus: dict[str, int]
    """Of an account."""
    own_account: str
    """Of jobs that name none; "": unknown."""
    spent: dict[str, str]
    """Accounts that Slurm starts no job of, as their hours are used up, with figures."""


def look(login: Login) -> Sight:
    return read(login.ask(ASKS), login.shown)


def read(answers: Mapping[str, Answer], where: str) -> Sight:
    config = parsing.settings(troubles.asked(answers.get("config"), "scontrol show config", where))
    version = config.get("SLURM_VERSION", "")
    check_version(version, where)
    book = answers.get("book")
    if config.get("AccountingStorageType", "").endswith("none") or book is None or book.code:
        raise InvalidValue(
            f"{where}: this cluster keeps no accounting that can be read"
            + (f": {book.words}" if book and book.code else ""),
            hint="that a job is over needs sacct's word: whoever runs the cluster sets up slurmdbd"
            " (AccountingStorageType=accounting_storage/slurmdbd)",
        )
    partitions = parsing.records(
        troubles.asked(answers.get("partitions"), "scontrol show partition", where)
    )
    nodes = parsing.records(troubles.asked(answers.get("nodes"), "scontrol show node", where))
    assoc = [line.split("|") for line in _optional(answers, "assoc")]
    name = config.get("ClusterName", "slurm")
    ours = [each for each in assoc if len(each) == 6 and each[0] in (name, "")]
    return Sight(
        name=name,
        version=version,
        user=troubles.asked(answers.get("who"), "id", where).strip(),
        groups=tuple(troubles.asked(answers.get("groups"), "id", where).split()),
        home=troubles.asked(answers.get("home"), "echo $HOME", where).strip(),
        preempt_type=config.get("PreemptType", "(null)"),
        preempt_mode=config.get("PreemptMode", "OFF"),
        linear=config.get("SelectType", "").endswith("linear"),
        proctrack=config.get("ProctrackType", "").partition("/")[2],
        partitions={each["PartitionName"]: _partition(each) for each in partitions},
        nodes=tuple(_node(each) for each in nodes if "NodeName" in each),
        qos={each.name: each for each in map(_qos, _optional(answers, "qos"))},
        accounts=tuple(dict.fromkeys(each[1] for each in ours)),
        limits_s={each[1]: s for each in ours if (s := parsing.lasts_s(each[3])) is not None},
        most_gpus={each[1]: n for each in ours if (n := _gpus_of(each[4], each[5])) is not None},
        own_account=next(iter(_optional(answers, "own")), "").strip(),
        spent=parsing.spent("\n".join(_optional(answers, "hours"))) if _enforced(config) else {},
    )


def check_version(text: str, where: str) -> None:
    parts = tuple(int(each) for each in text.split(".")[:2] if each.isdecimal())
    if len(parts) == 2 and parts < OLDEST:
        raise InvalidValue(
            f"{where} has Slurm {text}; {OLDEST[0]}.{OLDEST[1]} or newer is needed",
            hint="`sinfo --version` tells it; whoever runs the cluster can renew it, and"
            " --login names a login node of another",
        )


def _optional(answers: Mapping[str, Answer], name: str) -> list[str]:
    """What not every user may ask: then nothing is known of it."""
    answer = answers.get(name)
    return [] if answer is None or answer.code else [e for e in answer.text.splitlines() if e]


def _enforced(config: Mapping[str, str]) -> bool:
    """Whether limits of accounts are more than figures."""
    told = config.get("AccountingStorageEnforce", "").lower()
    return "limits" in told or "safe" in told


def _names(text: str) -> tuple[str, ...]:
    return () if text.upper() in ("ALL", "N/A", "(NULL)", "") else tuple(text.split(","))


def _partition(told: Mapping[str, str]) -> Partition:
    most = told.get("MaxNodes", "UNLIMITED")
    return Partition(
        name=told["PartitionName"],
        up=told.get("State") == "UP" and told.get("RootOnly") != "YES"
        and told.get("ReqResv") != "YES",
        groups=_names(told.get("AllowGroups", "ALL")),
        accounts=_names(told.get("AllowAccounts", "ALL")),
        qos=_names(told.get("AllowQos", "ALL")),
        own_qos="" if told.get("QoS", "N/A") == "N/A" else told["QoS"],
        limit_s=parsing.lasts_s(told.get("MaxTime", "UNLIMITED")),
        most_nodes=int(most) if most.isdecimal() else None,
        tier=int(told.get("PriorityTier", "1") or 1),
        preempt=told.get("PreemptMode", "OFF").split(",")[-1],
        grace_s=int(told.get("GraceTime", "0") or 0),
        weights=_weights(told.get("TRESBillingWeights", "")),
    )  # fmt: skip


def _weights(text: str) -> dict[str, float]:
    found = {}
    for name, value in parsing.tres(text).items():
        if name == "mem" and value[-1:] in "KMGTkmgt":  # for each of that unit
            found[name] = float(value[:-1]) / parsing.mebibytes(f"1{value[-1].upper()}")
        else:
            found[name] = float(value)
    return found


def _node(told: Mapping[str, str]) -> Node:
    used = parsing.tres(told.get("AllocTRES", ""))
    state = told.get("State", "").upper().rstrip("*~#!%$@^-")
    return Node(
        name=told["NodeName"],
        arch=told.get("Arch", "x86_64"),
        gpus=tuple(parsing.gpus(told.get("Gres", ""))),
        gpus_used=int(used.get("gres/gpu", "0")),
        cpus=int(told.get("CPUEfctv") or told.get("CPUTot") or 1),
        cpus_used=int(told.get("CPUAlloc") or 0),
        mem_mb=int(told.get("RealMemory") or 1),
        partitions=_names(told.get("Partitions", "")),
        features=_names(told.get("AvailableFeatures", "")),
        up=not any(each in state for each in _OFF),
    )


def _qos(line: str) -> Qos:
    name, grace, preempts, limit, job, user, group = (line.split("|") + [""] * 7)[:7]
    return Qos(
        name=name,
        grace_s=parsing.lasts_s(grace) or 0,
        preempts=_names(preempts),
        limit_s=parsing.lasts_s(limit),
        most_gpus=_gpus_of(job, user, group),
    )


def _gpus_of(*limits: str) -> int | None:
    counts = [parsing.tres(each).get("gres/gpu", "") for each in limits]
    return min((int(each) for each in counts if each.isdecimal()), default=None)
