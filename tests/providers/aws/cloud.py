"""moto's AWS behind a real HTTP server, with a desk in front for what moto does not do, or not as
AWS does: `on(action, answer)` answers that action itself, and so lies, refuses or dawdles."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials",
}

Asked = dict[str, Any]
"""What was asked: fields of an EC2 form (`InstanceId.1`) or of a JSON body."""


class Answer:
    def __init__(self, body: str, status: int = 200):
        self.body, self.status = body, status


def error(code: str, message: str = "no", status: int = 400) -> Answer:
    """As EC2 says it."""
    return Answer(
        f"<Response><Errors><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        "</Errors><RequestID>1</RequestID></Response>",
        status,
    )


def json_error(code: str, message: str = "no", status: int = 400) -> Answer:
    """As services that speak JSON say it."""
    return Answer(json.dumps({"__type": code, "message": message}), status)


def xml(action: str, **fields: Any) -> Answer:
    """EC2's answer: lists become <item>s."""
    return Answer(
        f'<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<requestId>1</requestId>{_xml(fields)}</{action}Response>"
    )


def _xml(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"<{name}>{_xml(inner)}</{name}>" for name, inner in value.items())
    if isinstance(value, list):
        return "".join(f"<item>{_xml(inner)}</item>" for inner in value)
    return escape(str(value).lower() if isinstance(value, bool) else str(value))


class Cloud:
    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self.asked: list[tuple[str, str, Asked]] = []
        """Region, action and fields of every request."""
        self._answers: dict[str, Callable[[str, Asked], Answer | None]] = {}
        self._moto: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def on(self, action: str, answer: Answer | Callable[[str, Asked], Answer | None]) -> None:
        """A function is given region and fields; None: moto answers after all."""
        self._answers[action] = answer if callable(answer) else lambda region, asked: answer

    def forget(self) -> None:
        """What was told to answer, and what moto has."""
        import urllib.request

        self._answers.clear()
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")
        urllib.request.urlopen(request, timeout=60).close()
        self.asked.clear()

    def actions(self, region: str = "") -> list[str]:
        return [action for where, action, _ in self.asked if region in ("", where)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, environ: dict[str, Any], start: Any) -> Iterator[bytes]:
        import io

        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
        scope = re.search(
            r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/", environ.get("HTTP_AUTHORIZATION", "")
        )
        region = scope[1] if scope else ""
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        asked: Asked
        if target:
            action, asked = target.rpartition(".")[2], json.loads(body or b"{}")
        else:
            asked = {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
            action = asked.get("Action", environ["REQUEST_METHOD"])
        self.asked.append((region, action, asked))
        ours = self._answers.get(action)
        answer = ours(region, asked) if ours else None
        if answer is None:
            yield from self._moto(environ, start)
            return
        body = answer.body.encode()
        kind = "application/x-amz-json-1.1" if target else "text/xml;charset=UTF-8"
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        start(f"{answer.status} said so", list(headers.items()))
        yield body


def quotas_of(
    cloud: Cloud, limits: Mapping[str, float], names: Mapping[str, str] | None = None
) -> None:
    """EC2's quotas by code in every region, of which moto has none. `names`: of each code."""
    names = names or {}

    def quota(code: str) -> dict[str, Any]:
        name = {"QuotaName": names[code]} if code in names else {}
        return {"ServiceCode": "ec2", "QuotaCode": code, "Value": limits[code], **name}

    def one(region: str, asked: Asked) -> Answer:
        assert asked["ServiceCode"] == "ec2"
        if asked["QuotaCode"] not in limits:
            return json_error("NoSuchResourceException")
        return Answer(json.dumps({"Quota": quota(asked["QuotaCode"])}))

    def page(region: str, asked: Asked) -> Answer:
        """One at a time."""
        codes = sorted(limits)
        place = int(asked.get("NextToken") or 0)
        more = {"NextToken": str(place + 1)} if place + 1 < len(codes) else {}
        return Answer(
            json.dumps({"Quotas": [quota(code) for code in codes[place : place + 1]]} | more)
        )

    cloud.on("GetServiceQuota", one)
    cloud.on("ListServiceQuotas", page)
