"""What exists at this Google besides machines: projects, operations, networks and the like, who may
do what. One for the equipment; the world's lock guards it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

from tests.cloud.dials import Dials
from tests.cloud.faces.google.identity import Identities, Who
from tests.cloud.faces.google.policies import Policies
from tests.cloud.faces.google.problems import Problem
from tests.cloud.world import World

PROJECT, NUMBER = "equipment-project", "123456789012"
OWNER = f"owner@{PROJECT}.iam.gserviceaccount.com"
LINK = "https://www.googleapis.com/compute/v1/"
SYSTEM = "system"
SERVICES = (
    *("compute", "tpu", "iam", "iamcredentials", "storage", "storage-api", "serviceusage"),
    *("cloudresourcemanager", "cloudbilling", "secretmanager", "iap", "oslogin", "logging"),
)
ALWAYS = ("serviceusage", "cloudresourcemanager", "iam", "storage", "iamcredentials")
"""Nobody is refused here because these are off."""


@dataclass
class GoogleDials(Dials):
    operation_s: float = 0.3
    """What an operation takes."""
    queue_s: float = 0.5
    """What flex-start machines and queued resources wait, at least."""
    iam_lag_s: float = 0.0
    """For so long a new service account is known to IAM alone: neither a policy nor an instance can
    name it."""
    bulk_says_why: bool = True
    """A bulk insert that failed tells the reason beside its own; else only the inserts in it do."""
    tpu_by_zone: bool = False
    """Only nodes are told of all zones at once: queued resources and operations on TPUs are not."""
    enable_s: float = 0.0
    """What enabling an API takes."""
    storage_fails_every: int = 0
    """Each so-manieth request to Cloud Storage fails by 503; 0: none."""
    object_pace_s: float = 0.0
    """How far apart writes to one object must be; else 429."""


@dataclass
class Project:
    id: str
    number: str
    name: str = ""
    billing: bool = True
    services: set[str] = field(default_factory=set)
    state: str = "ACTIVE"


@dataclass
class Operation:
    told: dict[str, Any]
    project: str
    scope: str
    """zones/Z, regions/R or global."""


class State:
    def __init__(self, world: World) -> None:
        self.world = world
        self.identities = Identities()
        self.policies = Policies()
        self.projects: dict[str, Project] = {}
        self.operations: dict[str, Operation] = {}
        self.late: list[dict[str, Any]] = []
        """Errors that operations shall end in: see Controls.fail_late."""
        self.made: dict[str, float] = {}
        """When a service account was, by IAM."""
        self.not_offered: set[tuple[str, str]] = set()
        self.unreachable: list[str] = []
        """Zones that lists over all of them leave out, and say so."""
        self._count = itertools.count(1)
        self.project(PROJECT, NUMBER)
        self.identities.make(OWNER)
        self.policies.grant(f"projects/{PROJECT}", "roles/owner", f"serviceAccount:{OWNER}")

    @property
    def dials(self) -> GoogleDials:
        assert isinstance(self.world.dials, GoogleDials)
        return self.world.dials

    def project(self, name: str, number: str, **more: Any) -> Project:
        on = {f"{each}.googleapis.com" for each in SERVICES}
        made = self.projects[name] = Project(name, number, name, services=on, **more)
        default = f"{number}-compute@developer.gserviceaccount.com"
        self.identities.make(default, display_name="Compute Engine default service account")
        return made

    def found(self, project: str) -> Project:
        for each in self.projects.values():
            if project in (each.id, each.number):
                return each
        raise Problem(404, f"The resource 'projects/{project}' was not found")

    def number(self) -> str:
        """As ids of Google's look."""
        return str(4_611_686_018_427_387_904 + next(self._count) * 7_777_777_777)

    def knows(self, email: str) -> bool:
        """A service account, where others than IAM ask."""
        account = self.identities.accounts.get(email)
        if account is None or account.disabled:
            return False
        return self.world.now() >= self.made.get(email, 0.0) + self.dials.iam_lag_s

    # -- operations of Compute Engine --------------------------------------------------------------

    def begin(
        self,
        project: str,
        scope: str,
        sort: str,
        target: str,
        target_id: str = "",
        who: Who | None = None,
        more: dict[str, Any] | None = None,
    ) -> Operation:
        """It runs until `done` says otherwise."""
        now, number = self.world.now(), self.number()
        name = f"operation-{int(now * 1000)}-{int(number):x}"
        if who is None:
            name = f"systemevent-{int(now * 1000)}-{int(number):x}"
        told: dict[str, Any] = {
            "kind": "compute#operation",
            "id": number,
            "name": name,
            "operationType": sort,
            "targetLink": f"{LINK}projects/{project}/{target}",
            "status": "RUNNING",
            "user": who.email if who else SYSTEM,
            "progress": 0,
            "insertTime": stamp(now),
            "startTime": stamp(now),
            "selfLink": f"{LINK}projects/{project}/{scope}/operations/{name}",
            **({"targetId": target_id} if target_id else {}),
            **(more or {}),
        }
        part, _, place = scope.partition("/")
        if place:
            told[part.removesuffix("s")] = f"{LINK}projects/{project}/{scope}"
        made = self.operations[name] = Operation(told, project, scope)
        return made

    def done(
        self,
        operation: Operation,
        error: dict[str, Any] | None = None,
        at: float | None = None,
    ) -> None:
        told = operation.told
        if told["status"] == "DONE":
            return
        at = self.world.now() if at is None else at
        told |= {"status": "DONE", "progress": 100, "endTime": stamp(at)}
        if error is not None:
            error = dict(error)
            status, message = error.pop("http", (400, "BAD REQUEST"))
            also = error.pop("also", [])
            told |= {"httpErrorStatusCode": status, "httpErrorMessage": message}
            told["error"] = {"errors": [error, *also]}

    def later(
        self, project: str, scope: str, sort: str, target: str, target_id: str, who: Who
    ) -> dict[str, Any]:
        """An operation whose effect is there already, and which ends after a while."""
        operation = self.begin(project, scope, sort, target, target_id, who)
        error = self.late_error(f"compute.{sort}")
        self.after(self.dials.operation_s, partial(self.done, operation, error))
        return operation.told

    def late_error(self, action: str) -> dict[str, Any] | None:
        for each in self.late:
            if each["count"] > 0 and each["action"] in (action, "*"):
                each["count"] -= 1
                http = (int(each["status"]), str(each["name"]))
                return {"code": each["code"], "message": each["message"], "http": http}
        return None

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        if seconds <= 0:
            act()
        else:
            self.world.agenda.at(self.world.now() + seconds, act)


_THERE = timezone(timedelta(hours=-8))


def stamp(seconds: float) -> str:
    """As Compute Engine writes times: in California, with milliseconds."""
    when = datetime.fromtimestamp(seconds, _THERE)
    return when.isoformat(timespec="milliseconds")


def zulu(seconds: float) -> str:
    """As the other APIs do."""
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")
