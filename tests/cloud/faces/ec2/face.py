"""EC2, and what else of AWS is asked beside it: moto's own application, with what it lacks.

Client tokens, dry runs, errors in EC2's form, and moto's records made to follow what is true. Known
lies: signatures are not checked, so whoever asks may do everything; and a token that is known is
answered as it was the first time, states included.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.cloud.controls import Controls
from tests.cloud.face import Answer, Billing, Call, Face, Refusal
from tests.cloud.faces.ec2 import quotas
from tests.cloud.faces.ec2.account import Account, Ec2Dials
from tests.cloud.faces.ec2.checks import unknown_profile
from tests.cloud.faces.ec2.controls import Ec2Controls
from tests.cloud.faces.ec2.imds import Imds
from tests.cloud.faces.ec2.times import gmt
from tests.cloud.world import Machine, World

_STATES = {
    "pending": ("pending", 0),
    "running": ("running", 16),
    "stopping": ("stopping", 64),
    "stopped": ("stopped", 80),
    "ending": ("shutting-down", 32),
    "ended": ("terminated", 48),
}
_SAID = {
    "user": ("Client.UserInitiatedShutdown", "User initiated shutdown"),
    "inside": ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
    "spot": ("Server.SpotInstanceTermination", "Spot instance termination"),
}


@dataclass
class Ec2Call(Call):
    service: str = ""
    region: str = ""
    target: str = ""
    """Of the services that speak JSON."""
    form: dict[str, str] = field(default_factory=dict)


class Ec2(Face):
    name = "ec2"
    notice_s = 120.0
    billing = Billing(least_s=60.0)
    quotas: Mapping[str, str] = {code: name for code, (name, _) in quotas.EVERY.items()}
    statuses: Mapping[str, int] = {
        "DryRunOperation": 412,
        "InsufficientInstanceCapacity": 500,  # so boto3 asks again, as with the real one
        "InsufficientCapacity": 500,
        "InternalError": 500,
        "InternalFailure": 500,
        "RequestLimitExceeded": 503,
        "ServiceUnavailable": 503,
        "Unavailable": 503,
        "UnauthorizedOperation": 403,
        "AccessDenied": 403,
    }
    metadata_variable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
    dials = Ec2Dials

    def opened(self, world: World) -> None:
        super().opened(world)
        os.environ |= {
            "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "1",
            "MOTO_ENABLE_AMI_VALIDATION": "1",
            "MOTO_ENABLE_KEYPAIR_VALIDATION": "1",
            "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
            # What moto itself asks of boto3 must reach nobody.
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        from tests.cloud.faces.ec2 import actions, launches, listings

        self._moto = DomainDispatcherApplication(create_backend_app)
        self._account = Account(world)
        self._imds = Imds(self._account)
        self._tokens: dict[tuple[str, str], tuple[dict[str, str], Answer]] = {}
        listings.install(self._account)
        launches.install(self._account)
        actions.install(self._account)

    def controls(self) -> Controls:
        return Ec2Controls(self._account)

    # -- the API -----------------------------------------------------------------------------------

    def read(self, environ: dict[str, Any], body: bytes) -> Ec2Call:
        service, region = _signed_for(environ)
        target = str(environ.get("HTTP_X_AMZ_TARGET", ""))
        form = {} if target else dict(parse_qsl(body.decode(errors="replace"), True))
        action = target.rpartition(".")[2] or form.get("Action", "")
        where = {"service": service, "region": region}
        return Ec2Call(action, environ, body, where, service, region, target, form)

    def answer(self, call: Call) -> Answer:
        assert isinstance(call, Ec2Call)
        if call.service in ("ec2", "ssm"):
            self._account.images.ready(call.region)
        self._account.asked = call.form
        try:
            return self._carried_out(call)
        finally:
            self._account.asked = {}

    def error(self, call: Call, code: str, words: str, status: int) -> Answer:
        assert isinstance(call, Ec2Call)
        return _error(call.service, call.target, code, words, status)

    def refused(self, call: Call, refusal: Refusal) -> Answer:
        code = {"pace": "RequestLimitExceeded"}[refusal.sort]
        return self.error(call, code, refusal.words, self.statuses[code])

    def _carried_out(self, call: Ec2Call) -> Answer:
        if call.service == "servicequotas":
            asked = json.loads(call.body or b"{}")
            told = quotas.service_quotas(self.world, call.region, call.action, asked)
            if told is not None:
                headers = [("Content-Type", "application/x-amz-json-1.1")]
                return Answer(400 if "__type" in told else 200, headers, json.dumps(told).encode())
        if call.service != "ec2":
            if call.action == "AddRoleToInstanceProfile":
                name = call.form.get("InstanceProfileName", "")
                self._account.profiles[name] = self.world.now()
            return self._ask_moto(call)
        dry = call.form.get("DryRun", "").lower() == "true"
        if dry and call.action != "RunInstances":  # of that, moto looks at a little first
            words = "Request would have succeeded, but DryRun flag is set."
            return self.error(call, "DryRunOperation", words, 412)
        if call.action == "RunInstances" and call.form.get("ClientToken") and not dry:
            return self._once(call)
        return self._ask_moto(call)

    def _once(self, call: Ec2Call) -> Answer:
        """A refusal leaves the token free."""
        key = call.region, call.form["ClientToken"]
        if key in self._tokens:
            before, answer = self._tokens[key]
            if before == call.form:
                return answer
            words = "Arguments on this idempotent request are inconsistent with arguments used in "
            words += "previous request(s)."
            return self.error(call, "IdempotentParameterMismatch", words, 400)
        answer = self._ask_moto(call)
        if b"<Code>NoSuchEntity<" in answer.body:  # IAM's word, where EC2 has its own
            form = call.form
            name = form.get("IamInstanceProfile.Name") or form.get("IamInstanceProfile.Arn", "")
            return self.error(call, *unknown_profile(name), 400)
        if answer.status == 200:
            self._tokens[key] = call.form, answer
        return answer

    def _ask_moto(self, call: Ec2Call) -> Answer:
        told: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            told["status"], told["headers"] = int(status.split()[0]), headers

        body = b"".join(self._moto(call.environ, start))
        status = told["status"]
        if status >= 400:
            code = re.search(rb"<Code>([\w.]+)</Code>", body)
            status = self.statuses.get(code[1].decode(), status) if code else status
        return Answer(status, told["headers"], body)

    # -- machines ----------------------------------------------------------------------------------

    def size(self, kind: str) -> tuple[int, int]:
        from moto.ec2.models.instance_types import INSTANCE_TYPES

        told = INSTANCE_TYPES.get(kind, {})
        cpus = int(told.get("VCpuInfo", {}).get("DefaultVCpus", 1))
        gpus = sum(int(each.get("Count", 0)) for each in told.get("GpuInfo", {}).get("Gpus", []))
        return cpus, gpus

    def counts(self, kind: str, market: str) -> tuple[str, float]:
        return quotas.code(kind, market), self.size(kind)[0]

    def after_shutdown(self, machine: Machine) -> str:
        stops = machine.record.instance_initiated_shutdown_behavior == "stop"
        return "stopped" if stops else "ended"

    def shown(self, machine: Machine) -> None:
        if machine.state in ("stopping", "ending"):
            self._show_end(machine)
        told = machine.record._state
        told.name, told.code = _STATES[machine.state]

    def noticed(self, machine: Machine) -> None:
        self._say(machine, "active", "marked-for-termination")

    def ended(self, machine: Machine) -> None:
        taken = machine.ended_by == "spot"
        code = "instance-terminated-no-capacity" if taken else "instance-terminated-by-user"
        self._say(machine, "closed", code)

    def _say(self, machine: Machine, state: str, code: str) -> None:
        if machine.id in self._account.requests:
            self._account.requests[machine.id].say(state, code, self.world.now())

    def _show_end(self, machine: Machine) -> None:
        from moto.ec2.models.instances import StateReason

        assert machine.ended is not None
        told = machine.record
        self._account.ending_at = machine.ended
        try:
            (told.moto_stop if machine.state == "stopping" else told.moto_terminate)()
        finally:
            self._account.ending_at = None
        by = machine.ended_by if machine.ended_by in _SAID else "user"
        code, words = _SAID[by]
        told._reason = {
            "user": f"User initiated ({gmt(machine.ended)})",
            "inside": "",  # no time: whoever wants one must have another way
            "spot": code,
        }[by]
        told.state_reason = StateReason(f"{code}: {words}", code)

    def metadata(
        self, machine: Machine, method: str, path: str, headers: Mapping[str, str]
    ) -> Answer | None:
        return self._imds.answer(machine, method, path, headers)


def _signed_for(environ: dict[str, Any]) -> tuple[str, str]:
    """Service and region, of the signature."""
    found = re.search(
        r"Credential=[^/]*/\d+/([^/]+)/([^/]+)/", environ.get("HTTP_AUTHORIZATION", "")
    )
    return (found[2], found[1]) if found else ("", "us-east-1")


def _error(service: str, target: str, code: str, words: str, status: int) -> Answer:
    if target:
        body = json.dumps({"__type": code, "message": words})
        return Answer(status, [("Content-Type", "application/x-amz-json-1.1")], body.encode())
    inner = f"<Error><Code>{escape(code)}</Code><Message>{escape(words)}</Message></Error>"
    if service == "ec2":
        inner = f"<Response><Errors>{inner}</Errors><RequestID>{'0' * 8}</RequestID></Response>"
    else:
        inner = f"<ErrorResponse>{inner}<RequestId>{'0' * 8}</RequestId></ErrorResponse>"
    return Answer(status, [("Content-Type", "text/xml")], inner.encode())


FACE = Ec2()
