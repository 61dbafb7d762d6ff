"""A pod on its node, its containers, and what its status says of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.cloud.faces.kubernetes.cluster import condition
from tests.cloud.faces.kubernetes.runtimes import Handle
from tests.cloud.faces.kubernetes.store import Obj

_OVER = ("Succeeded", "Failed")
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._-]*(:\d+)?(/[a-z0-9._-]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)


@dataclass
class Box:
    """A container, through its restarts."""

    spec: Obj
    init: bool
    handle: Handle | None = None
    state: Obj = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last: Obj = field(default_factory=dict)
    restarts: int = 0
    runs: int = 0
    not_before: float = 0.0
    killed_as: str = ""

    @property
    def running(self) -> bool:
        return "running" in self.state

    @property
    def code(self) -> int | None:
        ended = self.state.get("terminated")
        return ended["exitCode"] if ended else None


@dataclass
class Body:
    """A pod on its node."""

    pod: Obj
    boxes: list[Box]
    address: str
    started: str
    ready: bool = False
    """Its volumes are there."""
    pulls: int = 0
    not_before: float = 0.0
    pulled_at: float = 0.0
    asked_to_end: float = 0.0
    ends_by: float = 0.0
    phase: str = "Pending"
    reason: str = ""
    words: str = ""
    why: tuple[str, str] | None = None
    """The node itself ends it: reason and words."""
    dead: bool = False
    """Its machine is gone: nothing is reported any more."""

    @property
    def mains(self) -> list[Box]:
        return [each for each in self.boxes if not each.init]


def show(new: Obj, body: Body, at: str) -> None:
    status = new["status"]
    over = body.phase in _OVER
    ending = bool(new["metadata"].get("deletionTimestamp")) or body.why is not None
    up = body.phase == "Running" and all(each.running for each in body.mains)
    up = up and not ending
    inits = [each for each in body.boxes if each.init]
    begun = all(each.code == 0 for each in inits)
    ended = "PodCompleted" if body.phase == "Succeeded" else "PodFailed"
    unready = "" if up else (ended if over else "ContainersNotReady")
    names = " ".join(each.spec["name"] for each in body.mains)
    words = "" if up or over else f"containers with unready status: [{names}]"
    condition(status, "PodReadyToStartContainers", body.ready and not over, "", "", at, True)
    lacking = "" if begun else "ContainersNotInitialized"
    done = "PodCompleted" if body.phase == "Succeeded" else ""
    condition(status, "Initialized", begun, lacking or done, "", at, True)
    for sort in ("Ready", "ContainersReady"):
        condition(status, sort, up, unready, words, at, True)
    if body.reason in ("Terminated", "Evicted") or (body.why or ("",))[0] in (
        "Terminated",
        "Evicted",
    ):
        told = (body.why or ("", body.words))[1]
        condition(status, "DisruptionTarget", True, "TerminationByKubelet", told, at, True)
    status["phase"] = body.phase
    if over and body.reason:
        status["reason"], status["message"] = body.reason, body.words
    status |= {
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": body.address,
        "podIPs": [{"ip": body.address}],
        "startTime": body.started,
        "containerStatuses": [_told(each) for each in body.mains],
    }
    if inits:
        status["initContainerStatuses"] = [_told(each) for each in inits]


def _told(box: Box) -> Obj:
    done = box.init and box.code == 0
    return {
        "name": box.spec["name"],
        "state": box.state,
        "lastState": box.last if "terminated" in box.last else {},
        "ready": done or (box.running and not box.init),
        "restartCount": box.restarts,
        "image": box.spec["image"],
        "imageID": f"bodies://{box.spec['image']}" if box.runs else "",
        "started": box.running,
        **({"containerID": box.handle.id} if box.handle is not None else {}),
    }


def image_fault(image: str) -> str:
    if not _IMAGE.fullmatch(image):
        return "InvalidImageName"
    return "ErrImagePull" if "missing" in image else ""
