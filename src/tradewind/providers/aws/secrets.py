"""Secrets of jobs that AWS keeps: parameters of Systems Manager, and Secrets Manager's own."""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue, NotFound, SourceFailed
from tradewind.model.secrets import AWS_SSM, Reference
from tradewind.providers.aws import call

_MISSING = ("ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException")
_DENIED = ("AccessDenied", "AccessDeniedException", "UnrecognizedClientException")


def value(reference: Reference, *, rented: bool) -> str:
    """`rented`: on one of its machines, by that machine's role; else by whoever uses this
    computer."""
    read = _parameter if reference.scheme == AWS_SSM else _secret
    return read(reference, rented=rented)


class _Parameter(Struct, rename="pascal"):
    value: str


class _GetParameter(Struct, rename="pascal"):
    parameter: _Parameter


class _Secret(Struct, rename="pascal"):
    secret_string: str | None = None


def _parameter(reference: Reference, *, rented: bool) -> str:
    asked = {"Name": reference.name, "WithDecryption": True}
    answer = _ask("ssm", "AmazonSSM.GetParameter", asked, reference, rented=rented)
    found: _GetParameter = _decoded(answer, _GetParameter)
    return found.parameter.value


def _secret(reference: Reference, *, rented: bool) -> str:
    asked = {"SecretId": reference.name}
    answer = _ask(
        "secretsmanager", "secretsmanager.GetSecretValue", asked, reference, rented=rented
    )
    whole: str | None = _decoded(answer, _Secret).secret_string
    if whole is None:
        raise InvalidValue("it is binary", hint="store it as text")
    if not reference.key:
        return whole
    try:
        table = json.decode(whole, type=dict[str, Any])
    except UNREADABLE:
        raise InvalidValue("it is not a JSON object, so there is no key in it") from None
    found = table.get(reference.key)
    if not isinstance(found, str):
        raise NotFound(f"it has no text under the key {reference.key}")
    return found


def _ask(
    service: str, target: str, asked: dict[str, Any], about: Reference, *, rented: bool
) -> bytes:
    region = _region(about.name, rented=rented)
    keys = call.role_keys() if rented else call.user_keys()
    try:
        return call.call(service, target, asked, region, keys)
    except call.Refused as error:
        if error.code in _MISSING:
            raise NotFound(f"there is none of this name in {region}") from None
        if error.code in _DENIED:
            who = "the machines' role" if rented else "these AWS credentials"
            raise InvalidValue(
                f"{who} may not read it ({error.code})",
                hint="docs/aws.md#secrets says which names machines may read",
            ) from None
        raise InvalidValue(f"AWS says {error.code}") from None


def _region(name: str, *, rented: bool) -> str:
    """An ARN says it. Else a rented machine is told its store's."""
    if name.startswith("arn:"):
        return name.split(":")[3]
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if os.environ.get(variable):
            return os.environ[variable]
    configured = "" if rented else call.user_region()
    if configured:
        return configured
    raise InvalidValue(
        "nothing says in which region it is", hint="set AWS_REGION, or name it by its ARN"
    )


def _decoded(answer: bytes, kind: type[Any]) -> Any:
    try:
        return json.decode(answer, type=kind)
    except UNREADABLE:
        raise SourceFailed("the answer was cut short, or is not AWS's") from None
