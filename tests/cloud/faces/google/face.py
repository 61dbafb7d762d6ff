"""Google's face: one address for all its APIs, each request checked against the discovery
documents, then against who asks and what they may, and carried out by the service that it is for.

Known lies: `fields` and `alt` are read and not followed, batch requests are not taken; a service's
quotas of requests are not there (`pace_s` is the dial for it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from tests.cloud.controls import Controls
from tests.cloud.face import Answer, Billing, Call, Face, Refusal
from tests.cloud.faces.google import discovery, needs, places, problems, tputypes
from tests.cloud.faces.google.admin import Admin
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.consumed import Consumed
from tests.cloud.faces.google.controls import GoogleControls
from tests.cloud.faces.google.instances import Instances
from tests.cloud.faces.google.metadata import MetadataServer
from tests.cloud.faces.google.operations import Operations
from tests.cloud.faces.google.problems import Problem
from tests.cloud.faces.google.quotainfos import QuotaInfos
from tests.cloud.faces.google.shelves import Shelves
from tests.cloud.faces.google.state import ALWAYS, GoogleDials, State
from tests.cloud.faces.google.storage import Storage
from tests.cloud.faces.google.tpu import Slices, Worker
from tests.cloud.faces.google.trees import of_instance, of_worker
from tests.cloud.world import Machine, World

_JSON = [("Content-Type", "application/json; charset=UTF-8")]
_READS = ("get", "list", "aggregatedList", "getFromFamily", "wait")


class Google(Face):
    name = "google"
    notice_s = 30.0
    billing = Billing(least_s=60.0, from_running=True, free_s=60.0)
    quotas: Mapping[str, str] = {**places.QUOTAS, **dict.fromkeys(tputypes.LIMITS, "")}
    statuses: Mapping[str, int] = problems.STATUSES
    metadata_names = ("metadata.google.internal", "metadata")
    dials = GoogleDials

    def opened(self, world: World) -> None:
        super().opened(world)
        self.state = State(world)
        self.shelves = Shelves(self.state)
        self.instances = Instances(self.state, self.shelves)
        self.slices = Slices(self.state, self.shelves)
        self.admin = Admin(self.state)
        self.shelves.used_by = self._users
        self.shelves.usage = self.instances.used
        self.storage = Storage(self.state)
        self._metadata = MetadataServer(self.state, self._tree)
        self._does: dict[str, Callable[[GoogleCall], Any]] = {
            **self.shelves.does(),
            **self.instances.does(),
            **Operations(self.state).does(),
            **self.slices.does(),
            **self.admin.does(),
            **QuotaInfos(self.state).does(),
            **Consumed(self.state).does(),
        }

    def controls(self) -> Controls:
        return GoogleControls(self)

    # -- the API -----------------------------------------------------------------------------------

    def read(self, environ: dict[str, Any], body: bytes) -> GoogleCall:
        http = str(environ["REQUEST_METHOD"])
        path = str(environ.get("RAW_URI") or environ.get("PATH_INFO", "")).partition("?")[0]
        query = dict(parse_qsl(str(environ.get("QUERY_STRING", "")), True))
        where = {"method": http, "path": path}
        if path in ("/token", "/sts/v1/token"):
            action = "oauth2.token" if path == "/token" else "sts.token"
            return GoogleCall(action, environ, body, where)
        found = discovery.match(http, path)
        if found is None:
            return GoogleCall("", environ, body, where)
        method, params = found
        where |= {"api": method.api, "member": self._caller(environ)}
        call = GoogleCall(method.id, environ, body, where, method, {**query, **params}, query)
        call.project = _project(call)
        return call

    def _caller(self, environ: Mapping[str, Any]) -> str:
        token = self.state.identities.known(_bearer(environ))
        return token.who.email if token else ""

    def answer(self, call: Call) -> Answer:
        assert isinstance(call, GoogleCall)
        if call.action in ("oauth2.token", "sts.token"):
            return self._token(call)
        if call.method is None:
            words = f"The requested URL {call.where['path']} was not found on this server."
            return Answer(404, [("Content-Type", "text/html")], words.encode())
        if not call.passed:
            self._checked(call)
            self._allowed(call)
            call.passed = True
        does = self._does.get(call.action)
        if does is None:
            raise Problem(501, f"equipment: {call.action} is not made here", name="UNIMPLEMENTED")
        return _told(does(call))

    def _token(self, call: GoogleCall) -> Answer:
        try:
            form = dict(parse_qsl(call.body.decode()))
            identities = self.state.identities
            exchange = call.action == "sts.token"
            return _told(identities.exchanged(form) if exchange else identities.granted(form))
        except Problem as problem:
            told = {"error": problem.reason, "error_description": problem.words}
            return Answer(problem.status, _JSON, json.dumps(told).encode())

    def _checked(self, call: GoogleCall) -> None:
        """Who asks, and whether it can be read."""
        assert call.method is not None
        token = self.state.identities.known(_bearer(call.environ))
        if token is None:
            raise problems.nobody()
        if self.state.identities.expired(token):
            raise problems.nobody(expired=True)
        call.who = token.who
        try:
            call.json = json.loads(call.body) if call.body else None
        except ValueError:
            raise Problem(
                400, "Invalid JSON payload received. Parse error.", "parseError"
            ) from None
        try:
            discovery.check_query(call.method, call.query)
            body = call.json if call.json is not None else {}
            if call.method.http in ("POST", "PUT", "PATCH"):
                discovery.check_body(call.method, body)
                call.json = body
        except discovery.Invalid as invalid:
            raise Problem(400, str(invalid)) from None

    def _allowed(self, call: GoogleCall) -> None:
        """Whether the project is there, has the service on, and grants what is needed."""
        assert call.method is not None
        api = call.method.api
        looks = ("compute.images.get", "compute.images.getFromFamily", "compute.images.list")
        if call.action in looks and call.project not in self.state.projects:
            return  # everybody may look at images that are for everybody
        if call.project:
            try:
                project = self.state.found(call.project)
            except Problem:
                if api in ("cloudresourcemanager", "serviceusage", "cloudbilling", "iam"):
                    raise Problem(403, "The caller does not have permission") from None
                raise
            call.project = project.id
            if f"{api}.googleapis.com" not in project.services and api not in ALWAYS:
                service = f"{api}.googleapis.com"
                raise problems.disabled(call.method.title, service, project.id, project.number)
            verb = call.action.rpartition(".")[2]
            if not project.billing and api in ("compute", "tpu") and verb not in _READS:
                raise _no_billing(project.number)
        counted = str(call.environ.get("HTTP_X_GOOG_USER_PROJECT", ""))
        needed = needs.needed(call.method, call.params, call.json, call.project)
        if counted:
            needed = [("serviceusage.services.use", f"projects/{counted}"), *needed]
        for permission, resource in needed:
            held = needs.parents(resource, call.project)
            seen = {"name": resource, "service": f"{api}.googleapis.com"}
            if not self.state.policies.ask(call.who, permission, held, call.action, seen):
                raise problems.denied(permission, resource, api)

    def error(self, call: Call, code: str, words: str, status: int) -> Answer:
        reason = code if code[:1].islower() else ""
        name = "" if reason else code
        return problems.answer(Problem(status, words, reason, name))

    def refused(self, call: Call, refusal: Refusal) -> Answer:
        if isinstance(refusal, Problem):
            return problems.answer(refusal)
        assert refusal.sort == "pace"
        words = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'"
        return problems.answer(Problem(403, words, "rateLimitExceeded", domain="usageLimits"))

    # -- machines ----------------------------------------------------------------------------------

    def size(self, kind: str) -> tuple[int, int]:
        return places.size(kind)

    def after_shutdown(self, machine: Machine) -> str:
        return "billed" if isinstance(machine.record, Worker) else "stopped"

    def shown(self, machine: Machine) -> None:
        if isinstance(machine.record, Worker):
            self.slices.shown(machine)
        else:
            self.instances.shown(machine.record)

    def noticed(self, machine: Machine) -> None:
        if isinstance(machine.record, Worker):
            self.slices.noticed(machine)
        else:
            self.instances.noticed(machine.record)

    def ended(self, machine: Machine) -> None:
        if isinstance(machine.record, Worker):
            self.slices.ended(machine)
        else:
            self.instances.ended(machine.record, machine.ended_by)

    def billed_until(self, machine: Machine) -> float | None:
        """An operation ends a machine, and the bill with it."""
        if isinstance(machine.record, Worker):
            return machine.ended
        until: float | None = machine.record.billed_until
        return until

    def _users(self, path: str) -> list[str]:
        short = path.partition("/global/")[2] or path.partition("/regions/")[2]
        found = []
        for each in self.instances.all:
            text = json.dumps(each.order.told)
            if not each.gone and (f'{path}"' in text or f'{short}"' in text):
                found.append(each.path)
        return found

    def metadata_asked(
        self, machine: Machine, method: str, target: str, headers: Mapping[str, str]
    ) -> Answer | None:
        return self._metadata.answer(machine, method, target, headers)

    def metadata_found_by(self, host: str, port: int) -> dict[str, str]:
        there = f"{host}:{port}"
        names = ("GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT")
        return dict.fromkeys(names, there)

    def _tree(self, machine: Machine) -> dict[str, Any]:
        if isinstance(machine.record, Worker):
            return of_worker(self.state, machine)
        return of_instance(self.state, machine)


def _bearer(environ: Mapping[str, Any]) -> str:
    scheme, _, token = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _project(call: GoogleCall) -> str:
    for name in ("project", "projectId"):
        if name in call.params:
            return call.params[name]
    for name in ("name", "parent", "resource"):
        value = call.params.get(name, "")
        if enabling := re.match(r"operations/acat\.p2-(\d+)-", value):
            return enabling[1]
        found = re.match(r"projects/([^/:]+)", value)
        if found and found[1] == "-":
            email = re.search(r"serviceAccounts/[^@]+@([^.]+)\.iam", value)
            return email[1] if email else ""
        if found:
            return found[1]
        if value and "/" not in value and call.action.startswith("cloudresourcemanager."):
            return value
    return ""


def _no_billing(number: str) -> Problem:
    page = f"https://console.developers.google.com/billing/enable?project={number}"
    words = (
        "This API method requires billing to be enabled. Please enable billing on project"
        f" #{number} by visiting {page} then retry. If you enabled billing for this project"
        " recently, wait a few minutes for the action to propagate to our systems and retry."
    )
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "BILLING_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": "compute.googleapis.com", "consumer": f"projects/{number}"},
    }
    return Problem(403, words, "forbidden", details=[info])


def _told(value: Any) -> Answer:
    return Answer(200, list(_JSON), json.dumps(value).encode())


FACE = Google()
