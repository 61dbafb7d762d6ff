"""The one HTTP door: what happens between a request and its answer on any cloud.

Errors on request, too many requests, answers that get lost, the equipment's own `Date`. One request
is carried out at a time, under the world's lock; control goes through the same door at
/_control/NAME. What a request means is the face's.
"""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Any

from tests.cloud.face import Answer, Call, NotYet, Refusal
from tests.cloud.world import World

Start = Callable[..., Any]
_LOOK_S = 0.02


class Door:
    def __init__(self, world: World) -> None:
        self._world = world
        self._controls = world.face.controls()
        self._asked: dict[str, float] = {}

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        path = str(environ.get("PATH_INFO", ""))
        lost = False
        if path.startswith("/_control/"):
            answer = self._control(path.removeprefix("/_control/"), body)
        else:
            answer, lost = self._api(environ, body)
        if lost:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return _send(answer, start, self._world.now())

    def _control(self, name: str, body: bytes) -> Answer:
        try:
            result, status = self._controls.do(name, json.loads(body or b"{}")), 200
        except (ValueError, TypeError, KeyError) as error:
            result, status = {"error": f"{type(error).__name__}: {error}"}, 400
        return Answer(status, [("Content-Type", "application/json")], json.dumps(result).encode())

    def _api(self, environ: dict[str, Any], body: bytes) -> tuple[Answer, bool]:
        world, face = self._world, self._world.face
        with world.lock:
            world.settle()
            call = face.read(environ, body)
            world.calls.append({"action": call.action, **call.where})
            fault = world.dials.fault(call.action)
            if fault is not None and not fault.after:
                return face.error(call, fault.code, fault.message, fault.status), False
            try:
                self._paced(call)
            except Refusal as refusal:
                return face.refused(call, refusal), False
        while True:
            with world.lock:
                world.settle()
                try:
                    answer = face.answer(call)
                except Refusal as refusal:
                    answer = face.refused(call, refusal)
                except NotYet:
                    answer = None
                if answer is not None:
                    if fault is not None:
                        return face.error(call, fault.code, fault.message, fault.status), False
                    return answer, world.dials.loses(call.action)
            time.sleep(_LOOK_S)

    def _paced(self, call: Call) -> None:
        now, paces = self._world.now(), self._world.dials.pace_s
        for action in (call.action, "*"):
            if action in paces:
                if now < self._asked.get(action, 0.0) + paces[action]:
                    raise Refusal("pace", "Too many requests")
                self._asked[action] = now


def _send(answer: Answer, start: Start, now: float) -> Iterable[bytes]:
    dropped = ("date", "content-length")
    headers = [(name, value) for name, value in answer.headers if name.lower() not in dropped]
    headers += [("Date", formatdate(now, usegmt=True)), ("Content-Length", str(len(answer.body)))]
    start(f"{answer.status} -", headers)
    return [answer.body]
