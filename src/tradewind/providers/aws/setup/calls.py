"""Calls of setup and teardown: each says what it was for, waits where AWS needs a moment, and names
the permission where one is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.providers.aws import troubles
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.troubles import code_of

_PAUSES_S = (0.5, 1, 2, 3, 5, 8, 10)
"""What was just made is not yet known everywhere, for seconds: IAM above all."""

DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403", "Forbidden")

_ACTIONS = {
    "HeadBucket": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "DeleteObjects": "DeleteObjectVersion",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
}
"""Operations whose permission has another name."""


class Calls:
    def __init__(self, account: Account, sleep: Callable[[float], None] = clock.sleep) -> None:
        self.account = account
        self._sleep = sleep

    def __call__(
        self,
        service: str,
        region: str,
        method: str,
        *,
        fine: Sequence[str] = (),
        again: Sequence[str] = (),
        **parameters: Any,
    ) -> Any:
        """None where AWS answered with a code of `fine`; codes of `again` pass by themselves."""
        from botocore.exceptions import ClientError

        client = self.account.client(service, region)
        operation = client.meta.method_to_api_mapping[method]
        action = f"{service}:{_ACTIONS.get(operation, operation)}"
        with _explained(f"{action} in {region}"):
            for pause_s in (*_PAUSES_S, None):
                try:
                    return getattr(client, method)(**parameters)
                except ClientError as error:
                    code = code_of(error)
                    if code in fine:
                        return None
                    if code in DENIED:
                        raise _denied(action, region, error) from error
                    if code not in again or pause_s is None:
                        raise
                self._sleep(pause_s)
        return None

    def pages(self, service: str, region: str, method: str, key: str, **parameters: Any) -> Any:
        """All of a listing's items."""
        from botocore.exceptions import ClientError

        client = self.account.client(service, region)
        action = f"{service}:{client.meta.method_to_api_mapping[method]}"
        with _explained(f"{action} in {region}"):
            try:
                answers = client.get_paginator(method).paginate(**parameters)
                return [item for answer in answers for item in answer.get(key, ())]
            except ClientError as error:
                if code_of(error) in DENIED:
                    raise _denied(action, region, error) from error
                raise


@contextmanager
def _explained(doing: str) -> Iterator[None]:
    """Elsewhere the advice would be to run setup."""
    try:
        with troubles.explained(doing):
            yield
    except TradewindError as error:
        if error.hint and "setup aws" in error.hint and "--print" not in error.hint:
            error.hint = "run it again; what was made so far is found"
        raise


def _denied(action: str, region: str, error: Any) -> NoAccess:
    words = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    return NoAccess(
        f"these credentials may not {action} in {region}" + (f": {words[:200]}" if words else ""),
        hint="use credentials that may set up an account, or give someone who has them what"
        " --print terraform or --print cloudformation prints; all that is needed is printed by"
        " --print setup-policy",
    )
