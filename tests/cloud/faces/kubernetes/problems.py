"""Refusals as the API server words them: Status objects with reason, code, details, causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.cloud.faces.kubernetes.resources import Resource

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Problem(Exception):
    """Answered instead of what was asked for; nothing was changed."""

    def __init__(
        self,
        code: int,
        message: str,
        reason: str = "",
        details: dict[str, Any] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, tuple(headers)
        self.reason = reason or REASONS.get(code, "Unknown")
        self.details = details

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            told["details"] = self.details
        return told | {"code": self.code}


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong with a field."""

    field: str
    words: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.words}"


def required(field: str, words: str = "") -> Cause:
    return Cause(field, f"Required value{': ' + words if words else ''}", "FieldValueRequired")


def invalid(field: str, value: Any, words: str) -> Cause:
    return Cause(field, f"Invalid value: {shown(value)}: {words}")


def unsupported(field: str, value: Any, known: Sequence[str]) -> Cause:
    words = ", ".join(f'"{each}"' for each in known)
    return Cause(
        field,
        f"Unsupported value: {shown(value)}: supported values: {words}",
        "FieldValueNotSupported",
    )


def refused_field(field: str, words: str) -> Cause:
    return Cause(field, f"Forbidden: {words}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    return Cause(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _details(resource: Resource, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        found["group"] = resource.group
    return found | {"kind": resource.plural}


def not_found(resource: Resource, name: str) -> Problem:
    words = f'{resource.qualified} "{name}" not found'
    return Problem(404, words, details=_details(resource, name))


def exists(resource: Resource, name: str) -> Problem:
    words = f'{resource.qualified} "{name}" already exists'
    return Problem(409, words, "AlreadyExists", _details(resource, name))


def conflict(resource: Resource, name: str, words: str = "") -> Problem:
    words = words or (
        "the object has been modified; please apply your changes to the latest version and try "
        "again"
    )
    told = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {words}'
    return Problem(409, told, details=_details(resource, name))


def forbidden(resource: Resource, name: str, words: str) -> Problem:
    named = f'{resource.qualified} "{name}"' if name else resource.qualified
    return Problem(403, f"{named} is forbidden: {words}", details=_details(resource, name))


def invalid_object(resource: Resource, name: str, causes: Sequence[Cause]) -> Problem:
    kind = resource.kind + (f".{resource.group}" if resource.group else "")
    listed = str(causes[0]) if len(causes) == 1 else f"[{', '.join(map(str, causes))}]"
    details: dict[str, Any] = {"name": name}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.kind
    details["causes"] = [
        {"reason": each.reason, "message": each.words, "field": each.field} for each in causes
    ]
    return Problem(422, f'{kind} "{name}" is invalid: {listed}', details=details)


def bad_request(words: str) -> Problem:
    return Problem(400, words)


def unauthorized() -> Problem:
    return Problem(401, "Unauthorized")


def too_many(
    words: str = "Too many requests, please try again later.", after_s: int = 1
) -> Problem:
    details = {"retryAfterSeconds": after_s}
    return Problem(429, words, details=details, headers=[("Retry-After", str(after_s))])
