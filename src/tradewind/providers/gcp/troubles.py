"""Google's error codes, in one table, and what each means to us.

An answer that says no has a reason (`errors[].reason`, or `reason` of its ErrorInfo) or at least a
status (`PERMISSION_DENIED`); an operation that was accepted and failed later has codes of its own
(`error.errors[].code`). All are looked up here. Five kinds are Refused: nothing was bought, and a
caller acts differently on each (../base.py). `unknown` is OutcomeUnknown: it may have been done.
What is in no row is taken by its status: unknown where it is the server's fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp.credentials import LOGIN
from tradewind.providers.rest import Row, Said, Table

_SETUP = "tradewind doctor gcp says what is missing; tradewind setup gcp makes it"
_QUOTA = "tradewind doctor gcp names the quota and the page to raise it"
_BILLING = "console.cloud.google.com/billing/linkedaccount: link a billing account to the project"
_ENABLE = "tradewind setup gcp enables the APIs that are needed; it takes a minute or two"

ROWS = {
    # There is none to be had now, in this zone.
    "ZONE_RESOURCE_POOL_EXHAUSTED": Row("no_capacity"),
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": Row("no_capacity"),
    "REGION_RESOURCE_POOL_EXHAUSTED": Row("no_capacity"),
    "RESOURCE_POOL_EXHAUSTED": Row("no_capacity"),
    "STOCKOUT": Row("no_capacity"),
    "resource_availability": Row("no_capacity"),
    "INSUFFICIENT_CAPACITY": Row("no_capacity"),
    "VM_MIN_COUNT_NOT_REACHED": Row("no_capacity"),
    "PARTIAL_SUCCESS": Row("no_capacity"),
    "EXHAUSTED_RESERVATION": Row("no_capacity"),
    "RESERVATION_CAPACITY_EXCEEDED": Row("no_capacity"),
    "PLACEMENT_POLICY_CAPACITY_EXHAUSTED": Row("no_capacity"),
    "IP_SPACE_EXHAUSTED": Row("no_capacity", "the subnetwork has no address left"),
    "IP_SPACE_EXHAUSTED_WITH_DETAILS": Row("no_capacity", "the subnetwork has no address left"),
    "UNSUPPORTED_OPERATION": Row("not_allowed"),
    # The project may not have so many.
    "QUOTA_EXCEEDED": Row("no_quota", _QUOTA),
    "quotaExceeded": Row("no_quota", _QUOTA),
    "QUOTA_FAILURE": Row("no_quota", _QUOTA),
    "limitExceeded": Row("no_quota", _QUOTA),
    # Ask again, later.
    "rateLimitExceeded": Row("throttled"),
    "userRateLimitExceeded": Row("throttled"),
    "RATE_LIMIT_EXCEEDED": Row("throttled"),
    "RATE_LIMIT_EXCEEDED_WITH_DETAILS": Row("throttled"),
    "RESOURCE_EXHAUSTED": Row("throttled"),
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED": Row("throttled"),
    "resourceNotReady": Row("throttled", "it was made or changed a moment ago"),
    "RESOURCE_NOT_READY": Row("throttled", "it was made or changed a moment ago"),
    "resourceInUseByAnotherResource": Row("throttled"),
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": Row("throttled"),
    "OPERATION_CANCELED_BY_USER": Row("not_allowed"),
    # We may not.
    "forbidden": Row("not_allowed", _SETUP),
    "accessNotConfigured": Row("not_allowed", _ENABLE),
    "SERVICE_DISABLED": Row("not_allowed", _ENABLE),
    "PERMISSION_DENIED": Row("not_allowed", _SETUP),
    "IAM_PERMISSION_DENIED": Row("not_allowed", _SETUP),
    "PERMISSIONS_ERROR": Row("not_allowed", _SETUP),
    "BILLING_DISABLED": Row("not_allowed", _BILLING),
    "accountDisabled": Row("not_allowed", _BILLING),
    "SERVICE_ACCOUNT_ACCESS_DENIED": Row("not_allowed", _SETUP),
    "CONDITION_NOT_MET": Row("not_allowed", "a policy of the organization forbids it"),
    "conditionNotMet": Row("not_allowed", "a policy of the organization forbids it"),
    "invalid": Row("not_allowed"),
    "required": Row("not_allowed"),
    "badRequest": Row("not_allowed"),
    "INVALID_ARGUMENT": Row("not_allowed"),
    "FAILED_PRECONDITION": Row("not_allowed"),
    "INVALID_FIELD_VALUE": Row("not_allowed"),
    "INVALID_USAGE": Row("not_allowed"),
    "ACCELERATOR_TYPE_NOT_SUPPORTED": Row("not_found"),
    # What was named is not there.
    "notFound": Row("not_found", _SETUP),
    "NOT_FOUND": Row("not_found", _SETUP),
    "RESOURCE_NOT_FOUND": Row("not_found", _SETUP),
    "USER_PROJECT_DENIED": Row(
        "no_access", "the quota project of your credentials: `gcloud auth application-default"
        " set-quota-project PROJECT`"
    ),
    # It is there already: who asked knows what that means (machines/).
    "alreadyExists": Row("unknown"),
    "ALREADY_EXISTS": Row("unknown"),
    "RESOURCE_ALREADY_EXISTS": Row("unknown"),
    # Who are we? Nothing was done.
    "authError": Row("no_access", LOGIN),
    "required_login": Row("no_access", LOGIN),
    "UNAUTHENTICATED": Row("no_access", LOGIN),
    "ACCESS_TOKEN_EXPIRED": Row("no_access", LOGIN),
    "ACCESS_TOKEN_TYPE_UNSUPPORTED": Row("no_access", LOGIN),
    # Done, perhaps.
    "backendError": Row("unknown"),
    "internalError": Row("unknown"),
    "INTERNAL_ERROR": Row("unknown"),
    "INTERNAL": Row("unknown"),
    "UNAVAILABLE": Row("unknown"),
    "DEADLINE_EXCEEDED": Row("unknown"),
}  # fmt: skip
VAGUE = ("VM_MIN_COUNT_NOT_REACHED", "PARTIAL_SUCCESS")
"""Of a bulk insert: that not all could be had. Why, the other errors say, or its inserts'."""
_THERE = ("alreadyExists", "ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS")
_UNKNOWN = "unknown whether it was done; the next pass checks before trying again"
_PERMISSION = re.compile(r"'?([a-z][a-zA-Z]+\.[a-zA-Z]+\.[a-zA-Z]+)'? permission|"
                         r"[Pp]ermission '([a-z][a-zA-Z]+\.[a-zA-Z]+\.[a-zA-Z]+)'")  # fmt: skip


class AlreadyThere(OutcomeUnknown):
    """Something of this name is there: made by an earlier try, or by somebody else."""


class _Reason(Struct):
    reason: str = ""
    message: str = ""


class _Detail(Struct, rename={"type": "@type"}):
    type: str = ""
    reason: str = ""
    metadata: dict[str, Any] = {}


class _Error(Struct):
    code: int = 0
    message: str = ""
    status: str = ""
    errors: list[_Reason] = []
    details: list[_Detail] = []


class _Body(Struct):
    error: _Error


class _Oauth(Struct):
    error: str = ""
    error_description: str = ""


def _reads(body: bytes) -> Said:
    """The most telling of the codes that an answer has: the ErrorInfo's where we know it, then the
    first error's reason, then the status."""
    try:
        error = json.decode(body, type=_Body).error
    except UNREADABLE:
        return Said("", "")
    codes = [each.reason for each in error.details if each.reason]
    codes += [each.reason for each in error.errors if each.reason]
    codes.append(error.status)
    code = next((each for each in codes if each in ROWS), codes[0])
    return Said(code, error.message)


class _Table(Table, frozen=True, kw_only=True):
    def error(self, doing: str, status: int, body: bytes) -> TradewindError:
        made = super().error(doing, status, body)
        return _more(made, self.reads(body).code)


TABLE: Table = _Table(codes=ROWS, reads=_reads, key_hint=LOGIN)


def of_operation(doing: str, errors: Iterable[Any], status: int = 0) -> TradewindError:
    """Of an operation that was accepted and failed: `errors` have `code` and `message`. The first
    that says why and is in the table counts; where all are strange, its HTTP status."""
    told = sorted(errors, key=lambda each: (each.code in VAGUE, each.code not in ROWS))
    known = told[0] if told else None
    code, words = (known.code, known.message) if known else ("", "")
    row = ROWS.get(code) or Row("unknown" if status >= 500 or not status else "not_allowed")
    words = " ".join(f"{code}: {words}".split()).strip(": ") or f"it failed with HTTP {status}"
    message = f"{doing}: {words if len(words) <= 400 else words[:399] + '…'}"
    if row.kind == "no_access":
        return NoAccess(message, hint=row.hint)
    if row.kind == "unknown":
        return _more(OutcomeUnknown(message, hint=row.hint or _UNKNOWN), code)
    return _more(Refused(row.kind, message, hint=row.hint or None), code)


def is_off(error: TradewindError) -> bool:
    """The project does not use the API that was asked."""
    return "or it is disabled" in error.message


def _more(error: TradewindError, code: str) -> TradewindError:
    """What the words say besides: which permission is missing, or where an API is enabled."""
    if code in _THERE:
        return AlreadyThere(error.message, hint=error.hint)
    if not isinstance(error, Refused) or error.kind != "not_allowed":
        return error
    missing = _PERMISSION.search(error.message)
    if missing:
        name = missing[1] or missing[2]
        hint = f"the permission {name} is missing: tradewind setup gcp --print role lists them all"
        return Refused(error.kind, error.message, hint=hint)
    return error
