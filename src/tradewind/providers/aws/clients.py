"""Clients of one AWS account, one for each service and region, made once.

Credentials are found as by every tool of AWS: variables, profiles, single sign-on, a role. So are
addresses: AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_EC2 lead elsewhere.
"""

from __future__ import annotations

import threading
from typing import Any

from tradewind.errors import MissingExtra, NoAccess

_CONNECT_S, _READ_S = 5, 30
_ATTEMPTS = 4
"""Of each call, with pauses that grow."""


class Account:
    """Safe from several threads, as clients are; only making one is not."""

    def __init__(self) -> None:
        try:
            import boto3
            from botocore.exceptions import BotoCoreError
        except ImportError:
            raise MissingExtra(
                "machines of AWS need boto3", hint="pip install 'tradewind[aws]'"
            ) from None
        try:
            self._session = boto3.Session()
            found = self._session.get_credentials()
        except BotoCoreError as error:  # such as a profile that there is not
            raise NoAccess(str(error), hint="look at AWS_PROFILE and ~/.aws/config") from None
        if found is None:
            raise NoAccess(
                "there are no AWS credentials",
                hint="`aws configure`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
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
        from botocore.config import Config

        key = (service, region, attempts)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._session.client(
                    service,
                    region_name=region,
                    config=Config(
                        connect_timeout=_CONNECT_S,
                        read_timeout=_READ_S,
                        retries={"mode": "standard", "total_max_attempts": attempts},
                        user_agent_extra="tradewind",
                        # Links in the old way are made by default still; most regions refuse them.
                        signature_version="s3v4" if service == "s3" else None,
                    ),
                )
            return self._clients[key]

    def number(self) -> str:
        """The account's twelve digits."""
        from tradewind.providers.aws.troubles import explained

        if not self._number:
            with explained("asking AWS who we are"):
                sts = self.client("sts", self.region or "us-east-1")
                self._number = str(sts.get_caller_identity()["Account"])
        return self._number
