"""The one HTTP door: moto's own application, behind what it lacks between a request and its answer.

Client tokens, errors on request, answers that get lost, dry runs, the equipment's own `Date`. One
request of AWS is carried out at a time, under the world's lock; control goes through the same door
at /_control/NAME. Known lies: signatures are not checked, so whoever asks may do everything; and a
token that is known is answered as it was the first time, states included.
"""

from __future__ import annotations

import io
import json
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.ec2.checks import unknown_profile
from tests.ec2.controls import Controls
from tests.ec2.dials import STATUS
from tests.ec2.images import Images
from tests.ec2.quotas import service_quotas
from tests.ec2.world import World

Start = Callable[..., Any]


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Front:
    def __init__(self, world: World) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._world = world
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._images = Images()
        self._controls = Controls(world, self._images)
        self._tokens: dict[tuple[str, str], tuple[dict[str, str], Answer]] = {}

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        path = str(environ.get("PATH_INFO", ""))
        lost = False
        if path.startswith("/_control/"):
            answer = self._control(path.removeprefix("/_control/"), body)
        else:
            answer, lost = self._aws(environ, body)
        if lost:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return _send(answer, start, self._world.now())

    # -- control -----------------------------------------------------------------------------------

    def _control(self, name: str, body: bytes) -> Answer:
        try:
            result, status = self._controls.do(name, json.loads(body or b"{}")), 200
        except (ValueError, TypeError, KeyError) as error:
            result, status = {"error": f"{type(error).__name__}: {error}"}, 400
        return Answer(status, [("Content-Type", "application/json")], json.dumps(result).encode())

    # -- AWS ---------------------------------------------------------------------------------------

    def _aws(self, environ: dict[str, Any], body: bytes) -> tuple[Answer, bool]:
        service, region = _signed_for(environ)
        target = str(environ.get("HTTP_X_AMZ_TARGET", ""))
        form = {} if target else dict(parse_qsl(body.decode(errors="replace"), True))
        action = target.rpartition(".")[2] or form.get("Action", "")
        world = self._world
        with world.lock:
            world.settle()
            world.calls.append({"service": service, "region": region, "action": action})
            fault = world.dials.fault(action)
            if fault is not None:
                answer = _error(service, target, fault.code, fault.message, fault.status)
                return answer, False
            lost = world.dials.loses(action)
            if service in ("ec2", "ssm"):
                self._images.ready(region)
            world.asked = form
            try:
                return self._carried_out(environ, service, region, action, form, body), lost
            finally:
                world.asked = {}

    def _carried_out(
        self,
        environ: dict[str, Any],
        service: str,
        region: str,
        action: str,
        form: dict[str, str],
        body: bytes,
    ) -> Answer:
        if service == "servicequotas":
            told = service_quotas(self._world, region, action, json.loads(body or b"{}"))
            if told is not None:
                headers = [("Content-Type", "application/x-amz-json-1.1")]
                return Answer(400 if "__type" in told else 200, headers, json.dumps(told).encode())
        if service != "ec2":
            if action == "AddRoleToInstanceProfile":
                self._world.profiles[form.get("InstanceProfileName", "")] = self._world.now()
            return self._ask_moto(environ)
        dry = form.get("DryRun", "").lower() == "true"
        if dry and action != "RunInstances":  # of that, moto looks at a little first
            words = "Request would have succeeded, but DryRun flag is set."
            return _error(service, "", "DryRunOperation", words, 412)
        if action == "RunInstances" and form.get("ClientToken") and not dry:
            return self._once(environ, region, form)
        return self._ask_moto(environ)

    def _once(self, environ: dict[str, Any], region: str, form: dict[str, str]) -> Answer:
        """A refusal leaves the token free."""
        key = region, form["ClientToken"]
        if key in self._tokens:
            before, answer = self._tokens[key]
            if before == form:
                return answer
            words = "Arguments on this idempotent request are inconsistent with arguments used in "
            words += "previous request(s)."
            return _error("ec2", "", "IdempotentParameterMismatch", words, 400)
        answer = self._ask_moto(environ)
        if b"<Code>NoSuchEntity<" in answer.body:  # IAM's word, where EC2 has its own
            name = form.get("IamInstanceProfile.Name") or form.get("IamInstanceProfile.Arn", "")
            return _error("ec2", "", *unknown_profile(name), 400)
        if answer.status == 200:
            self._tokens[key] = form, answer
        return answer

    def _ask_moto(self, environ: dict[str, Any]) -> Answer:
        told: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            told["status"], told["headers"] = int(status.split()[0]), headers

        body = b"".join(self._moto(environ, start))
        status = told["status"]
        if status >= 400:
            code = re.search(rb"<Code>([\w.]+)</Code>", body)
            status = STATUS.get(code[1].decode(), status) if code else status
        return Answer(status, told["headers"], body)


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


def _send(answer: Answer, start: Start, now: float) -> Iterable[bytes]:
    dropped = ("date", "content-length")
    headers = [(name, value) for name, value in answer.headers if name.lower() not in dropped]
    headers += [("Date", formatdate(now, usegmt=True)), ("Content-Length", str(len(answer.body)))]
    start(f"{answer.status} -", headers)
    return [answer.body]
