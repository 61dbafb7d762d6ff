"""Clients of one AWS account, one for each service and region, made once.

Credentials are found as by every tool of AWS: variables, profiles, single sign-on, a role. So are
addresses: AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_EC2 lead elsewhere.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from tradewind.base import endpoints
from tradewind.base.errors import MissingExtra, NoAccess
from tradewind.store import awskeys

_CONNECT_S, _READ_S = 5, 30
_ATTEMPTS = 4
"""Of each call, with pauses that grow."""
_REGIONAL = {"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"}
"""Without these botocore makes links to s3.amazonaws.com for every region. For a bucket that is new
or in a newer region that redirects or refuses, and a link is signed for its host."""


class Account:
    """Safe from several threads, as clients are; only making one is not."""

    def __init__(self) -> None:
        try:
            self._session = awskeys.session()
        except ImportError:
            raise MissingExtra(
                "renting from AWS needs boto3", hint="pip install 'tradewind[aws,cloud]'"
            ) from None
        self._clients: dict[tuple[str, str, int], Any] = {}
        self._lock = threading.Lock()
        self._number = ""

    @property
    def region(self) -> str:
        """The user's own; "" if none is named."""
        return self._session.region_name or ""

    def client(self, service: str, region: str, attempts: int = _ATTEMPTS) -> Any:
        """With a single attempt, what is answered is said of all that was sent: of several, only
        the last is known."""
        key = (service, region, attempts)
        with self._lock:
            if key not in self._clients:
                made = self._made(service, region, attempts)
                endpoints.check(made.meta.endpoint_url, os.environ)
                # Not for what is like S3 and stands elsewhere: that seldom has a name per bucket.
                if service == "s3" and ".amazonaws.com" in made.meta.endpoint_url:
                    made = self._made(service, region, attempts, s3=_REGIONAL)
                self._clients[key] = made
            return self._clients[key]

    def _made(
        self, service: str, region: str, attempts: int, s3: dict[str, str] | None = None
    ) -> Any:
        from botocore.config import Config

        return self._session.client(
            service,
            region_name=region,
            config=Config(
                connect_timeout=_CONNECT_S,
                read_timeout=_READ_S,
                retries={"mode": "standard", "total_max_attempts": attempts},
                user_agent_extra="tradewind",
                # Links in the old way are made by default still; most regions refuse them.
                signature_version="s3v4" if service == "s3" else None,
                s3=s3,
            ),
        )

    def number(self) -> str:
        """The account's twelve digits."""
        from tradewind.providers.aws.troubles import explained

        if not self._number:
            with explained("asking AWS who we are"):
                sts = self.client("sts", self.region or "us-east-1")
                self._number = str(sts.get_caller_identity()["Account"])
        return self._number

    def expires_s(self) -> float | None:
        """When the credentials end, in seconds since 1970; None: never, or nobody knows. Those that
        can be renewed are, by botocore, in their last fifteen minutes."""
        from tradewind.providers.aws.troubles import explained

        found = self._session.get_credentials()
        try:
            with explained("renewing the credentials"):
                found.get_frozen_credentials()
        except RuntimeError as error:  # botocore's, of some that have ended and are not renewed
            raise NoAccess(str(error), hint="renew them, for example by `aws sso login`") from None
        ends = getattr(found, "_expiry_time", None)  # those of a file or a variable have none
        return None if ends is None else float(ends.timestamp())
