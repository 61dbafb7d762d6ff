"""One signed request to AWS, from a machine that has nothing of AWS installed.

A kit is a few megabytes without boto3, and one that brought botocore would put its version before
the image's own for the job. What is asked here is the simplest of AWS's requests, a POST of JSON to
`/`, whose signature (Signature Version 4) is four HMACs. A test compares it with botocore's.

Who asks: on a rented machine its role, by the metadata service; on the user's own computer whoever
botocore finds there, as the rest of Tradewind does.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import urllib.request
from datetime import datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from msgspec import Struct, json

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue, MissingExtra, SourceFailed
from tradewind.providers.aws.metadata import Service

_TIMEOUT_S = 10.0
_MOST_BYTES = 1 << 20
"""A parameter has 8 KB at most, a secret 64 KB."""
_AGAIN = ("Throttl", "TooManyRequests", "InternalFailure", "InternalService", "ServiceUnavailable")


class Keys(Struct, frozen=True):
    access: str
    secret: str
    token: str = ""


class Refused(Exception):
    """AWS has answered, and it will answer the same again. `code` is AWS's own word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Role(Struct, rename="pascal"):
    access_key_id: str
    secret_access_key: str
    token: str = ""


class _Wrong(Struct, rename={"type": "__type"}):
    type: str = ""


def role_keys() -> Keys:
    """Of the machine that this is. SourceFailed: it does not know them yet, or cannot be asked."""
    service, path = Service(), "meta-data/iam/security-credentials/"
    try:
        name = service.get(path).decode().strip()
        if not name:
            raise SourceFailed("this machine has no role")
        role = json.decode(service.get(path + name), type=_Role)
    except (OSError, HTTPException, *UNREADABLE) as error:
        raise SourceFailed(
            f"the metadata service did not say who this machine is: {error}"
        ) from None
    return Keys(role.access_key_id, role.secret_access_key, role.token)


def user_keys() -> Keys:
    """Of whoever uses this computer."""
    session = _session()
    from botocore.exceptions import BotoCoreError

    try:
        found = session.get_credentials()
        frozen = found.get_frozen_credentials() if found else None
    except BotoCoreError as error:
        raise InvalidValue(f"AWS credentials: {error}", hint="look at AWS_PROFILE") from None
    if frozen is None:
        raise InvalidValue(
            "there are no AWS credentials on this computer",
            hint="`aws configure`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    return Keys(frozen.access_key, frozen.secret_key, frozen.token or "")


def user_region() -> str:
    """Of this user's own configuration; "": it says none."""
    return str(_session().get_config_variable("region") or "")


def _session() -> Any:
    try:
        import botocore.session
    except ImportError:
        raise MissingExtra(
            "AWS cannot be asked: boto3 is not installed here",
            hint="pip install 'tradewind[aws,cloud]'",
        ) from None
    return botocore.session.get_session()


def call(service: str, target: str, asked: dict[str, Any], region: str, keys: Keys) -> bytes:
    """The answer's JSON. Refused; SourceFailed: nobody answered, or it may be asked again."""
    address, body = _address(service, region), json.encode(asked)
    headers = signed(address, service, target, body, region, keys, clock.now())
    request = urllib.request.Request(address, data=body, method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            found: bytes = answer.read(_MOST_BYTES)
    except HTTPError as error:
        code = _code(error.read(_MOST_BYTES))
        if error.code >= 500 or code.startswith(_AGAIN):
            raise SourceFailed(f"{service} in {region} answered {error.code} {code}") from None
        raise Refused(code or str(error.code)) from None
    except (OSError, HTTPException) as error:
        raise SourceFailed(f"{service} in {region} did not answer: {error}") from None
    return found


def _code(body: bytes) -> str:
    try:
        return json.decode(body, type=_Wrong).type.rpartition("#")[2]
    except UNREADABLE:
        return ""


def _address(service: str, region: str) -> str:
    variable = {"secretsmanager": "SECRETS_MANAGER"}.get(service, service.upper())
    for name in (f"AWS_ENDPOINT_URL_{variable}", "AWS_ENDPOINT_URL"):  # as AWS's own tools have it
        if os.environ.get(name):
            return os.environ[name].rstrip("/") + "/"
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://{service}.{region}.{domain}/"


def signed(
    address: str, service: str, target: str, body: bytes, region: str, keys: Keys, at: datetime
) -> dict[str, str]:
    """The request's headers, with its signature among them."""
    moment, day = f"{at:%Y%m%dT%H%M%SZ}", f"{at:%Y%m%d}"
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": urlsplit(address).netloc,
        "x-amz-date": moment,
        "x-amz-target": target,
    }
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = sorted(headers)
    lines = "".join(f"{name}:{headers[name]}\n" for name in names)
    content = hashlib.sha256(body).hexdigest()
    canonical = "\n".join(["POST", "/", "", lines, ";".join(names), content])
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, digest])
    key = f"AWS4{keys.secret}".encode()
    for part in (day, region, service, "aws4_request", text):
        key = hmac.digest(key, part.encode(), "sha256")
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope},"
        f" SignedHeaders={';'.join(names)}, Signature={key.hex()}"
    )
    return headers
