"""The values of a job's secrets, looked up on its machine just before the job starts.

They go into the job's environment and nowhere else: no log, no journal, no file of the machine's.
Messages name the variable and the place. A secret that cannot be had fails the job as a mistake of
its own would: on another machine it would be the same. SourceFailed is for what may pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tradewind.decoding import UNREADABLE
from tradewind.errors import InvalidValue, NotFound, SourceFailed, TradewindError
from tradewind.model import secrets
from tradewind.model.boot import Boot
from tradewind.model.secrets import AWS_SECRETS_MANAGER, AWS_SSM, FILE, Reference
from tradewind.supervisor import awscall, notice

_MOST_CHARACTERS = 100_000
"""Linux takes 128 KiB for one variable."""
_MISSING = ("ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException")
_DENIED = ("AccessDenied", "AccessDeniedException", "UnrecognizedClientException")


def values(references: Mapping[str, str], boot: Boot) -> dict[str, str]:
    return {name: _value(name, where, boot) for name, where in references.items()}


def _value(name: str, where: str, boot: Boot) -> str:
    try:
        reference = secrets.parse(where)
        found = READERS[reference.scheme](reference, boot)
    except SourceFailed as error:
        raise SourceFailed(f"secret {name} ({where}): {error.message}", hint=error.hint) from None
    except TradewindError as error:
        message = f"secret {name} ({where}) cannot be read: {error.message}"
        raise InvalidValue(message, hint=error.hint) from None
    found = found.rstrip("\r\n")  # of a file, or of a parameter that was made from one
    if not found or "\0" in found or len(found) > _MOST_CHARACTERS:
        raise InvalidValue(f"secret {name} ({where}) is empty, too long, or not text")
    return found


def _handed_over(reference: Reference, boot: Boot) -> str:
    """Read where the run was submitted, and kept beside the machines there: this machine is another
    process of that user, and a path in a store is never a reason to read a file."""
    try:
        kept = json.decode(Path(boot.secrets).read_bytes(), type=dict[str, str])
        return kept[reference.name]
    except (OSError, *UNREADABLE, KeyError):
        raise NotFound(
            "its value was not handed over, or is not kept any more",
            hint="submit the run again, on the computer that has the file",
        ) from None


class _Parameter(Struct, rename="pascal"):
    value: str


class _GetParameter(Struct, rename="pascal"):
    parameter: _Parameter


class _Secret(Struct, rename="pascal"):
    secret_string: str | None = None


def _parameter(reference: Reference, boot: Boot) -> str:
    asked = {"Name": reference.name, "WithDecryption": True}
    answer = _ask("ssm", "AmazonSSM.GetParameter", asked, reference, boot)
    found: _GetParameter = _decoded(answer, _GetParameter)
    return found.parameter.value


def _secret(reference: Reference, boot: Boot) -> str:
    asked = {"SecretId": reference.name}
    answer = _ask("secretsmanager", "secretsmanager.GetSecretValue", asked, reference, boot)
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


def _ask(service: str, target: str, asked: dict[str, Any], about: Reference, boot: Boot) -> bytes:
    rented = notice.is_rented(boot.notice)
    region = _region(about.name, rented=rented)
    keys = awscall.role_keys() if rented else awscall.user_keys()
    try:
        return awscall.call(service, target, asked, region, keys)
    except awscall.Refused as error:
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
    configured = "" if rented else awscall.user_region()
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


READERS: dict[str, Callable[[Reference, Boot], str]] = {
    FILE: _handed_over,
    AWS_SSM: _parameter,
    AWS_SECRETS_MANAGER: _secret,
}
