"""What AWS says behind a refusal, by a service that decodes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local_http import LocalHttp, Reply, Request
from tradewind.providers.aws import denied
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

WORDS = "You are not authorized. Encoded authorization failure message: abc-123_X"


def refused(words: str = WORDS) -> Refused:
    response: Any = {"Error": {"Code": "UnauthorizedOperation", "Message": words}}
    with pytest.raises(Refused) as caught, explained("launching"):
        raise ClientError(response, "RunInstances")
    return caught.value


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    return Account()


def answer(said: Any) -> Any:
    def told(request: Request) -> Reply:
        assert b"EncodedMessage=abc-123_X" in request.body
        text = json.dumps(said).replace("&", "&amp;").replace('"', "&quot;")
        return Reply(
            "<DecodeAuthorizationMessageResponse><DecodeAuthorizationMessageResult>"
            f"<DecodedMessage>{text}</DecodedMessage></DecodeAuthorizationMessageResult>"
            "</DecodeAuthorizationMessageResponse>"
        )

    return told


def test_what_is_not_allowed_is_named(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "allowed": False,
        "explicitDeny": False,
        "context": {"action": "iam:PassRole", "resource": "arn:aws:iam::1:role/tradewind-x"},
    }
    with LocalHttp() as http:
        http.on("/", answer(said))
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", http.url)
        told = denied.decoded(account, "us-east-1", refused())
    assert told.kind == "not_allowed"
    assert "no policy allows iam:PassRole on arn:aws:iam::1:role/tradewind-x" in told.message


def test_who_may_not_ask_is_told_what_there_is(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalHttp() as http:
        http.on(
            "/",
            Reply("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", 403),
        )
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", http.url)
        first = refused()
        assert denied.decoded(account, "us-east-1", first) is first
    plain = refused("no")
    assert denied.decoded(account, "us-east-1", plain) is plain
