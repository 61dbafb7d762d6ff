"""Whether machines may do more than this version of Tradewind has them do: their role, its boundary
and the bucket's policy, as far as these credentials may look. Running needs no permission to look,
so that it is missing is said and is not a warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tradewind.model.finding import OK, WARNING, Finding
from tradewind.providers.aws.checks.permissions import found
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, setup_command
from tradewind.providers.aws.setup import policies
from tradewind.providers.aws.setup.calls import DENIED
from tradewind.providers.aws.setup.roles import document
from tradewind.providers.aws.setup.things import described
from tradewind.providers.aws.troubles import code_of, explained


def policy_checks(account: Account, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    if not store_url.startswith(("s3://", "gs://")):
        return  # what it should be is by the store
    look = _Look(account, footprint.home)
    wider = list(_of_role(look, footprint, store_url))
    if not footprint.lent:
        wider += _of_bucket(look, footprint, store_url)
    yield from wider
    if look.denied:
        yield found(
            OK,
            "policies were not all compared with what this version prints: these credentials may"
            f" not {', '.join(look.denied)}",
            measured={"not_allowed": look.denied},
        )
    elif not wider:
        yield found(OK, "machines may do what this version of Tradewind needs, and no more")


class _Look:
    """Asks, and keeps which permissions were missing."""

    def __init__(self, account: Account, region: str) -> None:
        self._account, self._region = account, region
        self.denied: list[str] = []

    def __call__(self, service: str, method: str, gone: str, **given: Any) -> tuple[bool, Any]:
        """Whether it could be looked at, and the answer; None: there is none (`gone`)."""
        from botocore.exceptions import ClientError

        client = self._account.client(service, self._region)
        action = f"{service}:{client.meta.method_to_api_mapping[method]}"
        with explained(f"{action} in {self._region}"):
            try:
                return True, getattr(client, method)(**given)
            except ClientError as error:
                if code_of(error) == gone:
                    return True, None
                if code_of(error) not in DENIED:
                    raise
        self.denied.append(action)
        return False, None


def _of_role(look: _Look, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    name, mend = footprint.instance_profile, setup_command(store_url)
    wanted = described(store_url, footprint.home, ()).role
    seen, told = look("iam", "get_role", "NoSuchEntity", RoleName=name)
    if seen and told is None:
        return  # of which the instance profile tells
    role = told["Role"] if told else {}
    if told and document(role["AssumeRolePolicyDocument"]) != wanted.trust:
        yield found(
            WARNING,
            f"the role {name} may be assumed by others than EC2",
            why="they can read and write runs of this store as its machines do",
            todo="look at its trust policy, and find out who changed it: tradewind setup aws"
            " refuses it as it is",
        )
    if told and not role.get("PermissionsBoundary"):
        yield found(
            WARNING,
            f"the role {name} has no permissions boundary",
            why="anyone who can add policies to it can give machines any right in this account",
            todo=mend,
        )
    given = {"RoleName": name, "PolicyName": wanted.policy_name}
    seen, told = look("iam", "get_role_policy", "NoSuchEntity", **given)
    if seen and (told is None or document(told["PolicyDocument"]) != wanted.policy):
        yield found(
            WARNING,
            f"the policy of the role {name} is not the one that this version prints",
            why="machines may do more than they need, or too little",
            todo=mend,
        )


def _of_bucket(look: _Look, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    seen, told = look("s3", "get_bucket_policy", "NoSuchBucketPolicy", Bucket=footprint.bucket)
    if not seen:
        return
    statements = json.loads(told["Policy"])["Statement"] if told else []
    (wanted,) = policies.bucket(store_url, footprint.bucket_region)["Statement"]
    if wanted not in statements:
        yield found(
            WARNING,
            f"the bucket {footprint.bucket} takes requests without TLS",
            why="what is sent so, keys and checkpoints, can be read on the way",
            todo=setup_command(store_url),
        )
