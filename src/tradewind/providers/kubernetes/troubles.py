"""What clusters say when something is wrong, in one place, and what each means to us.

Two tables. `REFUSALS`: answers of the API server to a request (Status objects: `reason`, and, where
one reason has many causes, words of the message). `CAUSES`: why a pod waits, or has ended (reasons
of its status, of its container and of its conditions). Each row on which the user can act says how;
of a machine that was taken there is nothing to do, since another leg resumes.

Of Kubernetes' sources and pages: apimachinery's StatusReason, the kubelet's container reasons, the
conditions of "Pod disruption conditions". A reason that is in no row is shown as it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import TradewindError
from tradewind.model.run import JOB, TAKEN
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.rest import Row, Said, Table

UNKNOWN = "unknown whether it was done; the next pass checks before trying again"
LOGIN = "log in to the cluster again, as kubectl needs it; `tradewind doctor kubernetes` tries it"


class Exists(Refused):
    """There is an object of that name."""


class Conflict(Refused):
    """It has changed since it was read, or another is there under its name."""


class Missing(Refused):
    """There is no such object, or nothing of its kind."""


class Expired(OutcomeUnknown):
    """The pages of a listing are not kept any more: it is to be begun anew."""


# Answers to requests.

_SETUP = "tradewind setup kubernetes makes it, `tradewind doctor kubernetes` looks at it"
REFUSALS: dict[str, Row] = {
    "Unauthorized": Row("no_access", LOGIN),
    "Forbidden": Row(
        "not_allowed",
        "these credentials lack the right; `tradewind setup kubernetes --print yaml` prints the"
        " Role that is needed",
    ),
    "quota": Row(
        "no_quota",
        "the namespace's ResourceQuota is used up or too small: kubectl describe resourcequota",
    ),
    "limits": Row(
        "not_allowed", "the namespace's LimitRange does not allow it: kubectl describe limitrange"
    ),
    "terminating": Row("not_found", f"the namespace is being deleted; {_SETUP}"),
    "namespace": Row("not_found", f"the namespace is not there; {_SETUP}"),
    "service_account": Row("not_found", f"the pods' service account is not there; {_SETUP}"),
    "pod_security": Row(
        "not_allowed",
        "the namespace's pod security level does not allow it; host networking and the like need"
        " a namespace that does",
    ),
    "webhook": Row(
        "not_allowed", "a rule of the cluster says no; whoever runs the cluster can make exceptions"
    ),
    "webhook_down": Row("throttled", "an admission webhook of the cluster does not answer"),
    "NotFound": Row("not_found"),
    "AlreadyExists": Row("not_allowed"),
    "Conflict": Row("throttled"),
    "Invalid": Row("not_allowed"),
    "BadRequest": Row("not_allowed"),
    "MethodNotAllowed": Row("not_allowed"),
    "UnsupportedMediaType": Row("not_allowed"),
    "RequestEntityTooLarge": Row("not_allowed"),
    "TooManyRequests": Row("throttled", "the API server is busy; it is tried again later"),
    "Gone": Row("unknown"),
    "Expired": Row("unknown"),
    "ServerTimeout": Row("unknown"),
    "Timeout": Row("unknown"),
    "InternalError": Row("unknown"),
    "ServiceUnavailable": Row("unknown"),
}
_MEANT = (
    ("Forbidden", re.compile(r"exceeded quota|failed quota|insufficient quota"), "quota"),
    ("Forbidden", re.compile(r"because it is being terminated"), "terminating"),
    ("Forbidden", re.compile(r"violates PodSecurity"), "pod_security"),
    ("Forbidden", re.compile(r"(maximum|minimum) \S+ usage per"), "limits"),
    ("Forbidden", re.compile(r"error looking up service account"), "service_account"),
    ("Forbidden", re.compile(r"serviceaccount \S+ not found"), "service_account"),
    ("NotFound", re.compile(r"^namespaces \S+ not found"), "namespace"),
    ("InternalError", re.compile(r"failed calling webhook"), "webhook_down"),
    ("", re.compile(r"\badmission webhook \S+ denied"), "webhook"),
    ("", re.compile(r"\bValidatingAdmissionPolicy \S+ .*denied request"), "webhook"),
)
"""Causes that share a reason, by words of the message."""


class _Status(Struct):
    reason: str | None = None
    message: str | None = None


def _reads(body: bytes) -> Said:
    try:
        status = json.decode(body, type=_Status)
    except UNREADABLE:
        return Said("", body.decode("utf-8", "replace")[:400])  # of a proxy before the server
    code, words = status.reason or "", status.message or ""
    for of, pattern, meant in _MEANT:
        if of in ("", code) and pattern.search(words):
            return Said(meant, words)
    return Said(code, words)


TABLE = Table(codes=REFUSALS, reads=_reads, key_hint=LOGIN)


def error(doing: str, status: int, body: bytes) -> TradewindError:
    said = _reads(body)
    found = TABLE.error(doing, status, body)
    if status == 410:
        return Expired(found.message, hint=found.hint)
    if not isinstance(found, Refused):
        return found
    special: type[Refused] | None = None
    if status == 404 and said.code not in ("namespace",):
        special = Missing
    elif status == 409:
        special = Exists if said.code == "AlreadyExists" else Conflict
    return special(found.kind, found.message, hint=found.hint) if special else found


def refusal(message: str) -> Row | None:
    """Of what an event says that somebody was refused for us; None: it is no refusal."""
    for of, pattern, meant in _MEANT:
        if of != "NotFound" and pattern.search(message):
            return REFUSALS[meant]
    return REFUSALS["Invalid"] if "is forbidden" in message or "is invalid" in message else None


# Why a pod waits, or has ended.


class Cause(NamedTuple):
    words: str
    by: str = ""
    """Of a pod that has ended: JOB where the job itself is to blame, TAKEN where the cluster has
    taken the machine, "" where it is nobody's fault that we know."""
    never: str = ""
    """Of a pod that waits: it will never start, which is a refusal of this kind; "": it may."""
    at_once: bool = False
    """It need not be waited for: trying again changes nothing."""
    hint: str = ""


_IMAGE = "check run.image, and whether the pods' account has an imagePullSecret for it"
_MEMORY = "ask for more memory, or a smaller batch"
_DESCRIBE = "kubectl describe pod shows the events of its node"
_PRIORITY = "tradewind setup kubernetes --priority CLASS gives runs a higher one"
_NO_ROOM = Cause("its node had no room for it after all", by=TAKEN)
CAUSES: dict[str, Cause] = {
    # Before it begins.
    "Unschedulable": Cause(
        "no node has room for it", hint="`tradewind doctor kubernetes` shows what is free"
    ),
    "SchedulingGated": Cause(
        "its pods are held back by a scheduling gate",
        hint="kubectl get pods -o yaml names it (spec.schedulingGates); whoever sets it removes it",
    ),
    "ContainerCreating": Cause("its image is being pulled"),
    "PodInitializing": Cause("its image is being pulled"),
    "ErrImagePull": Cause("its image cannot be pulled", never="not_found", hint=_IMAGE),
    "ImagePullBackOff": Cause("its image cannot be pulled", never="not_found", hint=_IMAGE),
    "ErrImageNeverPull": Cause(
        "its image is on no node, and may not be pulled", never="not_found", hint=_IMAGE
    ),
    "RegistryUnavailable": Cause(
        "the image's registry does not answer", never="not_found", hint=_IMAGE
    ),
    "InvalidImageName": Cause(
        "its image's name is no image's name", never="not_allowed", at_once=True, hint=_IMAGE
    ),
    "CreateContainerConfigError": Cause(
        "its container cannot be made as it is described",
        never="not_allowed",
        hint="a Secret or ConfigMap that it names is not there, or its image runs as root",
    ),
    "CreateContainerError": Cause(
        "its container cannot be made", never="not_allowed", hint=_DESCRIBE
    ),
    "RunContainerError": Cause(
        "its container cannot be started", never="not_allowed", hint=_DESCRIBE
    ),
    "StartError": Cause("its container cannot be started", by=JOB, hint="the image needs /bin/sh"),
    "ContainerCannotRun": Cause(
        "its container cannot be started", by=JOB, hint="the image needs /bin/sh"
    ),
    # The job's own doing.
    "OOMKilled": Cause(
        "it used more memory than its container has (OOMKilled)", by=JOB, hint=_MEMORY
    ),
    "OutOfMemory": Cause("its node ran out of memory (OutOfMemory)", by=JOB, hint=_MEMORY),
    "OwnLimit": Cause(
        "its node evicted it for what it used itself",
        by=JOB,
        hint="write less to /tmp, $HOME and the job's folder, or have the limit raised: kubectl"
        " describe limitrange",
    ),
    # By the kubelet or a controller: the machine was taken.
    "Evicted": Cause("its node evicted it", by=TAKEN),
    "NodeLost": Cause("its node was lost", by=TAKEN),
    "NodeShutdown": Cause("its node shut down", by=TAKEN),
    "Shutdown": Cause("its node shut down", by=TAKEN),
    "Terminated": Cause("its node shut down", by=TAKEN),
    "Preempting": Cause("its node made room for a critical pod", by=TAKEN),
    "NodeAffinity": Cause("its node no longer suits it", by=TAKEN),
    "UnexpectedAdmissionError": Cause("its node did not admit it", by=TAKEN),
    "TopologyAffinityError": Cause(
        "its node cannot give it processors and devices that lie together", by=TAKEN
    ),
    # Conditions of the type DisruptionTarget.
    "PreemptionByScheduler": Cause(
        "a pod of higher priority took its place", by=TAKEN, hint=_PRIORITY
    ),
    "PreemptionByKubeScheduler": Cause(
        "a pod of higher priority took its place", by=TAKEN, hint=_PRIORITY
    ),
    "DeletionByTaintManager": Cause("its node was tainted: it is lost, or to be emptied", by=TAKEN),
    "EvictionByEvictionAPI": Cause("it was evicted: its node is being drained", by=TAKEN),
    "DeletionByPodGC": Cause("its node is gone", by=TAKEN),
    "TerminationByKubelet": Cause("its node evicted it, or shut down", by=TAKEN),
    # Ours, for what no reason stands in a status.
    "NodeGone": Cause("its node is gone", by=TAKEN),
    "NodeSilent": Cause("its node does not answer", by=TAKEN),
    "NodeMarked": Cause("its node is about to be taken", by=TAKEN),
    "Suspended": Cause("the cluster's queue took its place back", by=TAKEN),
    "Deleted": Cause("its pod was deleted, by somebody or with its node", by=TAKEN),
    # By time.
    "DeadlineExceeded": Cause("it reached its hard stop (activeDeadlineSeconds)"),
}


def cause(reason: str) -> Cause:
    known = CAUSES.get(reason)
    if known is None and reason.startswith("OutOf"):  # any resource: OutOfcpu, OutOfnvidia.com/gpu
        known = _NO_ROOM
    return known or Cause("")


def sentence(reason: str, message: str) -> str:
    """In words: ours, the cluster's own, and what the user can do."""
    known = cause(reason)
    said = " ".join((message or "").split())
    said = said if len(said) <= 400 else said[:399] + "…"
    head = known.words or reason
    if said and said != head:
        head = f"{head}: {said}" if head else said
    return f"{head}; {known.hint}" if known.hint else head
