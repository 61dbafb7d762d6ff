"""Passes to S3: a session of a role that setup has made for lending, narrowed down to one run.

STS gives a session the rights that its role and its session policy both have. The role may what
machines may, in the whole store; the policy here names the run. A session lasts an hour where
whoever lends is a session of a role already (single sign-on, a CI job): AWS chains no longer ones.

Other servers that speak S3 lend in the same way where they have an STS: SeaweedFS and MinIO do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from tradewind.base import endpoints
from tradewind.base.errors import InvalidValue, MissingExtra, NoAccess, SourceFailed
from tradewind.model.places import DELETED_BY_MACHINES, WRITTEN_BY_MACHINES
from tradewind.store import awskeys
from tradewind.store.lending.base import Pass

ROLE = "TRADEWIND_LENDING_ROLE"
"""Instead of what setup has made: for servers like S3."""
LEAST_S, CHAINED_S, LONGEST_S = 900, 3600, 12 * 3600
MOST_POLICY = 2048
"""Characters, by AWS."""
_CONNECT_S, _READ_S = 5, 30
_DENIED = ("AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "ExpiredToken")


class S3Lender:
    def __init__(self, store_url: str, role: str, env: Mapping[str, str]) -> None:
        self._url, self._env = store_url.rstrip("/"), env
        self._role = env.get(ROLE) or role
        own = env.get("AWS_ENDPOINT_URL_STS") or env.get("AWS_ENDPOINT_URL")
        if env.get("AWS_ENDPOINT_URL_S3") and not own:
            raise InvalidValue(
                f"no pass can be lent for {store_url}: its server is not AWS's, and none that lends"
                " (an STS) is named",
                hint="set AWS_ENDPOINT_URL_STS, if it has one; else keep runs in a bucket on AWS",
            )
        if not self._role:
            raise InvalidValue(
                f"no pass can be lent for {store_url}: there is no role to lend",
                hint=f"tradewind setup aws --store {store_url} --lend makes one;"
                f" for a server like S3, name it by {ROLE}",
            )
        self._lock = threading.Lock()
        self._client: Any = None
        self._longest_s = 0

    @property
    def longest_s(self) -> int:
        if not self._longest_s:
            arn = str(self._asked("get_caller_identity").get("Arn", ""))
            self._longest_s = CHAINED_S if ":assumed-role/" in arn else LONGEST_S
        return self._longest_s

    @property
    def environment(self) -> dict[str, str]:
        env = self._env
        made = {"AWS_REGION": env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or ""}
        made["AWS_ENDPOINT_URL_S3"] = (
            env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or ""
        )
        made[endpoints.ALLOW] = env.get(endpoints.ALLOW, "")
        return {name: value for name, value in made.items() if value}

    def lend(self, run_id: str, for_s: int) -> Pass:
        for_s = max(LEAST_S, min(for_s, self.longest_s))
        answer = self._asked(
            "assume_role",
            RoleArn=self._role,
            RoleSessionName=_session(run_id),
            Policy=session_policy(self._url, run_id, self._role, ours=not self._env.get(ROLE)),
            DurationSeconds=for_s,
        )
        try:
            given = answer["Credentials"]
            key, secret = str(given["AccessKeyId"]), str(given["SecretAccessKey"])
            token = str(given["SessionToken"])
        except (KeyError, TypeError):
            raise SourceFailed("the STS has answered with no credentials") from None
        credentials = {"access_key_id": key, "secret_access_key": secret, "token": token}
        return Pass(store_url=self._url, run_id=run_id, for_s=for_s, credentials=credentials)

    def _asked(self, what: str, **more: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._sts(), what)(**more)
        except ClientError as error:
            told = error.response.get("Error", {})
            code, words = str(told.get("Code", "")), str(told.get("Message", ""))
            if code in _DENIED:
                raise NoAccess(
                    f"no pass can be lent with the role {self._role}: {words or code}",
                    hint="these credentials need sts:AssumeRole on it: `tradewind setup aws --lend"
                    " --print policy` has it; a root user has no roles",
                ) from None
            raise SourceFailed(f"the STS has lent no pass: {code}: {words}") from None
        except BotoCoreError as error:
            raise SourceFailed(f"the STS did not answer: {error}", hint="try again later") from None

    def _sts(self) -> Any:
        with self._lock:
            if self._client is None:
                try:
                    from botocore.config import Config

                    session = awskeys.session()
                except ImportError:
                    raise MissingExtra(
                        "lending passes to S3 needs boto3", hint="pip install 'tradewind[aws]'"
                    ) from None
                self._client = session.client(
                    "sts",
                    region_name=session.region_name or "us-east-1",
                    config=Config(
                        connect_timeout=_CONNECT_S,
                        read_timeout=_READ_S,
                        retries={"mode": "standard", "total_max_attempts": 3},
                        user_agent_extra="tradewind",
                    ),
                )
                endpoints.check(self._client.meta.endpoint_url, self._env)
            return self._client


def session_policy(store_url: str, run_id: str, role: str, *, ours: bool) -> str:
    """What is left of the role's rights for one run. Where a long prefix and a long name make it
    more than AWS takes, and the role is `ours`, folders are left to the role's own policy, which
    has them too."""
    bucket, _, prefix = store_url.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
    world = role.split(":")[1] if role.startswith("arn:") else "aws"  # an ARN's partition
    arn = f"arn:{world}:s3:::{bucket}"
    run = f"{arn}/{prefix}runs/{run_id}/"
    read = _allow(["s3:GetObject"], [f"{run}*", f"{arn}/{prefix}passes/{run_id}/*"])
    statements = [
        _allow(
            ["s3:ListBucket"], [arn], {"StringLike": {"s3:prefix": [f"{prefix}runs/{run_id}/*"]}}
        ),
        # S3 says that a key is not there only to those who may list, and asks it without a prefix.
        _allow(["s3:ListBucket"], [arn], {"Null": {"s3:prefix": "true"}}),
        read,
    ]
    put, cut = ["s3:PutObject", "s3:AbortMultipartUpload"], ["s3:DeleteObject"]
    exact = [
        *statements,
        _allow(put, [f"{run}{folder}/*" for folder in WRITTEN_BY_MACHINES]),
        _allow(cut, [f"{run}{folder}/*" for folder in DELETED_BY_MACHINES]),
    ]
    short = [*statements, _allow(put + cut, [f"{run}*"])]
    for each in (exact, *([short] if ours else [])):
        made = json.dumps({"Version": "2012-10-17", "Statement": each}, separators=(",", ":"))
        if len(made) <= MOST_POLICY:
            return made
    raise InvalidValue(
        f"no pass can be lent for {run_id}: with the store's prefix its name is too long for AWS,"
        f" whose session policies have {MOST_POLICY:,} characters at most",
        hint="a shorter prefix of the store, or a shorter name of the run",
    )


def _allow(
    actions: list[str], resources: list[str], only_if: dict[str, Any] | None = None
) -> dict[str, Any]:
    made: dict[str, Any] = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return made | ({"Condition": only_if} if only_if else {})


def _session(run_id: str) -> str:
    """As CloudTrail will name whoever used it."""
    return f"tradewind-{run_id}"[:64]
