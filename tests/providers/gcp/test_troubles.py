"""Google's errors, as it really words them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tradewind.base.errors import NoAccess
from tradewind.providers.base import KINDS, OutcomeUnknown, Refused
from tradewind.providers.gcp.operations import Operation, Trouble, Troubles, finished
from tradewind.providers.gcp.troubles import ROWS, TABLE, AlreadyThere, of_operation


def answered(code: int, message: str, **more: Any) -> Any:
    body = {"error": {"code": code, "message": message, **more}}
    return TABLE.error("launching", code, json.dumps(body).encode())


def reasons(reason: str) -> list[dict[str, str]]:
    return [{"reason": reason, "domain": "usageLimits", "message": ""}]


def test_a_missing_permission_is_named() -> None:
    words = "Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/i'"
    error = answered(403, words, errors=reasons("forbidden"), status="PERMISSION_DENIED")
    assert isinstance(error, Refused)
    assert error.kind == "not_allowed"
    assert "compute.instances.create is missing" in str(error.hint)
    iam = "Permission 'iam.serviceAccounts.signBlob' denied on resource (or it may not exist)."
    error = answered(403, iam, status="PERMISSION_DENIED")
    assert "iam.serviceAccounts.signBlob is missing" in str(error.hint)


def test_an_api_that_is_off_leads_to_where_it_is_enabled() -> None:
    link = (
        "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=1"
    )
    words = (
        f"Compute Engine API has not been used in project 1 before or it is disabled. Enable it by"
        f" visiting {link} then retry. If you enabled this API recently, wait a few minutes for the"
        " action to propagate to our systems and retry."
    )
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": "compute.googleapis.com"},
    }
    links = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": link}]}
    error = answered(
        403,
        words,
        errors=reasons("accessNotConfigured"),
        status="PERMISSION_DENIED",
        details=[links, info],
    )
    assert error.kind == "not_allowed"
    assert link in error.message
    assert "tradewind setup gcp" in str(error.hint)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (403, "rateLimitExceeded", "throttled"),
        (403, "quotaExceeded", "no_quota"),
        (404, "notFound", "not_found"),
        (400, "invalid", "not_allowed"),
        (400, "resourceNotReady", "throttled"),
        (429, "anything", "throttled"),
        (418, "", "not_allowed"),
    ],
)
def test_reasons_are_kinds(status: int, reason: str, kind: str) -> None:
    error = answered(status, "words", errors=reasons(reason))
    assert isinstance(error, Refused)
    assert error.kind == kind


def test_who_we_are_and_what_nobody_knows() -> None:
    error = answered(
        401, "Request had invalid authentication credentials.", status="UNAUTHENTICATED"
    )
    assert isinstance(error, NoAccess)
    assert "gcloud auth application-default login" in str(error.hint)
    assert isinstance(answered(503, "busy", errors=reasons("backendError")), OutcomeUnknown)
    assert isinstance(TABLE.error("x", 500, b"<html>"), OutcomeUnknown)
    assert isinstance(answered(409, "exists", errors=reasons("alreadyExists")), AlreadyThere)
    assert isinstance(TABLE.error("x", 400, b""), Refused)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", 503, "no_capacity"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", 503, "no_capacity"),
        ("STOCKOUT", 503, "no_capacity"),
        ("QUOTA_EXCEEDED", 403, "no_quota"),
        ("RESOURCE_NOT_FOUND", 404, "not_found"),
        ("STRANGE", 400, "not_allowed"),
    ],
)
def test_operations_that_fail_late(code: str, status: int, kind: str) -> None:
    error = of_operation("launching", [Trouble(code, "words")], status)
    assert isinstance(error, Refused)
    assert error.kind == kind
    assert code in error.message


def test_of_several_errors_the_reason_counts_and_not_the_count() -> None:
    told = [Trouble("VM_MIN_COUNT_NOT_REACHED", "3"), Trouble("QUOTA_EXCEEDED", "Quota 'GPUS'")]
    error = of_operation("launching", told, 403)
    assert isinstance(error, Refused)
    assert error.kind == "no_quota"


def test_an_operation_is_waited_for_and_no_longer_than_one_has_patience() -> None:
    running = Operation(name="o", status="RUNNING", zone="https://x/zones/z")
    assert running.place == "zones/z"
    done = Operation(name="o", status="DONE")
    assert finished(running, lambda each: done, "doing") is done
    with pytest.raises(OutcomeUnknown, match="is not done after 0 s"):
        finished(running, lambda each: running, "doing", wait_s=0)
    failed = Operation(
        name="o",
        status="DONE",
        error=Troubles((Trouble("STRANGE", ""),)),
        http_error_status_code=500,
    )
    with pytest.raises(OutcomeUnknown, match="STRANGE"):
        finished(failed, lambda each: each, "doing")


def test_every_row_is_of_a_kind_that_there_is() -> None:
    assert {row.kind for row in ROWS.values()} <= {*KINDS, "unknown", "no_access"}
