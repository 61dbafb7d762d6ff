"""Errors as Google's APIs answer them: a body with code, message, the older `errors` with a reason,
and, where the newer front end speaks, a status and details.

Known lies: real messages differ here and there between the APIs; codes, reasons and details are
what programs go by.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.cloud.face import Answer, Refusal

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
REASONS = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "alreadyExists",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
    500: "backendError",
    503: "backendError",
}
STATUSES = {
    "rateLimitExceeded": 403,
    "userRateLimitExceeded": 403,
    "quotaExceeded": 403,
    "forbidden": 403,
    "accessNotConfigured": 403,
    "notFound": 404,
    "alreadyExists": 409,
    "resourceInUseByAnotherResource": 400,
    "resourceNotReady": 400,
    "conditionNotMet": 412,
    "authError": 401,
    "backendError": 503,
    "internalError": 500,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
    "PERMISSION_DENIED": 403,
    "ABORTED": 409,
}
"""HTTP's, by the reason or status that a test has asked for."""


class Problem(Refusal):
    def __init__(
        self,
        status: int,
        words: str,
        reason: str = "",
        name: str = "",
        details: Sequence[dict[str, Any]] = (),
        domain: str = "global",
    ) -> None:
        super().__init__("problem", words)
        self.status, self.reason = status, reason or REASONS.get(status, "invalid")
        self.name, self.details = name or _STATUSES.get(status, "UNKNOWN"), list(details)
        self.domain = domain


def answer(problem: Problem) -> Answer:
    first = {"message": problem.words, "domain": problem.domain, "reason": problem.reason}
    error: dict[str, Any] = {"code": problem.status, "message": problem.words, "errors": [first]}
    error["status"] = problem.name
    if problem.details:
        error["details"] = problem.details
    headers = [("Content-Type", "application/json; charset=UTF-8")]
    if problem.status == 401:
        headers.append(("WWW-Authenticate", 'Bearer realm="https://accounts.google.com/"'))
    return Answer(problem.status, headers, json.dumps({"error": error}).encode())


def unknown(resource: str) -> Problem:
    return Problem(404, f"The resource '{resource}' was not found")


def exists(resource: str) -> Problem:
    return Problem(409, f"The resource '{resource}' already exists")


def denied(permission: str, resource: str, api: str) -> Problem:
    words = f"Required '{permission}' permission for '{resource}'"
    if api not in ("compute", "storage"):
        words = f"Permission '{permission}' denied on resource '{resource}' (or it may not exist)."
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "IAM_PERMISSION_DENIED",
        "domain": f"{api}.googleapis.com",
        "metadata": {"permission": permission, "resource": resource},
    }
    return Problem(403, words, details=[] if api == "compute" else [info])


def disabled(title: str, service: str, project: str, number: str) -> Problem:
    page = f"https://console.developers.google.com/apis/api/{service}/overview?project={project}"
    words = (
        f"{title} has not been used in project {project} before or it is disabled. Enable it by"
        f" visiting {page} then retry. If you enabled this API recently, wait a few minutes for the"
        " action to propagate to our systems and retry."
    )
    shown = [{"description": "Google developers console API activation", "url": page}]
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": shown},
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "SERVICE_DISABLED",
            "domain": "googleapis.com",
            "metadata": {
                "consumer": f"projects/{number}",
                "service": service,
                "serviceTitle": title,
                "activationUrl": page,
            },
        },
    ]
    return Problem(403, words, "accessNotConfigured", details=details, domain="usageLimits")


def nobody(expired: bool = False) -> Problem:
    words = (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login"
        " cookie or other valid authentication credential. See"
        " https://developers.google.com/identity/sign-in/web/devconsole-project."
    )
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "ACCESS_TOKEN_EXPIRED" if expired else "ACCESS_TOKEN_TYPE_UNSUPPORTED",
        "domain": "googleapis.com",
    }
    return Problem(401, words, details=[info])
