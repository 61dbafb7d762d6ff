"""EC2's words for our machines, and ours for its troubles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

from tradewind.base.errors import NoAccess
from tradewind.providers.aws import troubles
from tradewind.providers.aws.footprint import bucket_of, name
from tradewind.providers.aws.machines import listing
from tradewind.providers.base import KINDS, OutcomeUnknown, Refused


def test_ids_name_their_region() -> None:
    made = listing.machine_id("ap-southeast-3", "i-0123456789abcdef0")
    assert listing.parted(made) == ("ap-southeast-3", "i-0123456789abcdef0")
    for odd in ("", "aws-", "local-x-0", "aws-us-east-1-vol-1", "aws-us-east-1-i-12/..", "ü"):
        assert listing.parted(odd) is None


def instance(**more: Any) -> dict[str, Any]:
    tags = {"owner": "s3://b", "run": "run-1", "leg": "2", "launch": "run-1-2"}
    return {
        "InstanceId": "i-1",
        "AmiLaunchIndex": 1,
        "LaunchTime": datetime(2026, 11, 16, tzinfo=UTC),
        "State": {"Name": "running"},
        "Tags": [{"Key": f"tradewind:{key}", "Value": value} for key, value in tags.items()],
    } | more


def test_an_instance_is_a_machine() -> None:
    found = listing.machine("us-east-1", instance(), None)
    assert found is not None
    assert (found.machine_id, found.rank, found.leg) == ("aws-us-east-1-i-1", 1, 2)
    assert (found.launch_id, found.run_id, found.ended_s) == ("run-1-2", "run-1", None)
    begun = found.launched_s
    assert begun == int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
    early = listing.machine("us-east-1", instance(), begun - 5)
    assert early is not None
    assert early.ended_s == begun  # none ends before it began
    assert listing.machine("us-east-1", instance(Tags=[]), None) is None


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("User initiated (2026-11-16 02:13:45 GMT)", "2026-11-16T02:13:45+00:00"),
        ("User initiated (2026-11-16 02:13:45 UTC)", "2026-11-16T02:13:45+00:00"),
        ("Server.InternalError (2026-01-02 00:00:00 GMT)", "2026-01-02T00:00:00+00:00"),
        ("Server.SpotInstanceTermination: taken", None),
        ("", None),
    ],
)
def test_when_a_machine_ended_is_read_off_its_reason(words: str, at: str | None) -> None:
    wanted = None if at is None else int(datetime.fromisoformat(at).timestamp())
    assert listing.said_end_s(instance(StateTransitionReason=words)) == wanted


def answered(code: str, status: int = 400, words: str = "no") -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": words},
            "ResponseMetadata": {"HTTPStatusCode": status},
        },
        "RunInstances",
    )


def test_every_row_of_the_table_is_a_kind_that_somebody_acts_on() -> None:
    for code, row in troubles.TABLE.items():
        assert row.kind in (*KINDS, "unknown", "no_access"), code


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InsufficientInstanceCapacity", 500, "no_capacity"),
        ("SpotMaxPriceTooLow", 400, "no_capacity"),
        ("MaxSpotInstanceCountExceeded", 400, "no_quota"),
        ("VcpuLimitExceeded", 400, "no_quota"),
        ("RequestLimitExceeded", 503, "throttled"),
        ("UnauthorizedOperation", 403, "not_allowed"),
        ("InvalidParameterValue", 400, "not_allowed"),
        ("InvalidAMIID.NotFound", 400, "not_found"),
        ("SomethingNew", 400, "not_allowed"),
    ],
)
def test_what_was_refused_was_not_done(code: str, status: int, kind: str) -> None:
    with pytest.raises(Refused) as caught, troubles.explained("launching"):
        raise answered(code, status)
    assert caught.value.kind == kind
    assert caught.value.message.startswith(f"launching: {code}: ")


def test_a_role_that_is_too_new_is_asked_for_again() -> None:
    words = "Value (x) for parameter iamInstanceProfile.name is invalid."
    words += " Invalid IAM Instance Profile name"
    with pytest.raises(Refused) as caught, troubles.explained("launching"):
        raise answered("InvalidParameterValue", 400, words)
    assert caught.value.kind == "throttled"


@pytest.mark.parametrize("code", ["InternalError", "ServiceUnavailable", "SomethingNew"])
def test_what_the_server_failed_at_may_have_been_done(code: str) -> None:
    with pytest.raises(OutcomeUnknown), troubles.explained("launching"):
        raise answered(code, 503)


@pytest.mark.parametrize(
    ("code", "hint"),
    [("ExpiredToken", "renew"), ("AuthFailure", "renew"), ("RequestTimeTooSkewed", "clock")],
)
def test_who_is_nobody_is_told_what_to_do(code: str, hint: str) -> None:
    with pytest.raises(NoAccess) as caught, troubles.explained("listing"):
        raise answered(code, 403)
    assert hint in (caught.value.hint or "")


def test_a_request_that_never_left_was_not_carried_out() -> None:
    with pytest.raises(Refused) as caught, troubles.explained("launching"):
        raise boto.EndpointConnectionError(endpoint_url="http://x")
    assert caught.value.kind == "throttled"
    for lost in (
        boto.ReadTimeoutError(endpoint_url="x"),
        boto.ConnectionClosedError(endpoint_url="x"),
    ):
        with pytest.raises(OutcomeUnknown), troubles.explained("launching"):
            raise lost


def test_an_encoded_message_is_left_out() -> None:
    words = "You are not authorized. Encoded authorization failure message: " + "A" * 900
    with pytest.raises(Refused) as caught, troubles.explained("launching"):
        raise answered("UnauthorizedOperation", 403, words)
    assert caught.value.message.endswith("You are not authorized.")


def test_a_store_names_what_is_its() -> None:
    assert bucket_of("s3://b") == ("b", "")
    assert bucket_of("s3://b/x/y/") == ("b", "x/y/")
    assert name("s3://b/x") == name("s3://b/x/") != name("s3://b")
