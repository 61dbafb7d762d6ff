"""Setup as code or as policies, without asking AWS anything."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.providers.aws.footprint import is_home
from tradewind.providers.aws.setup import cloudformation, policies, setter, terraform, things

KINDS = {
    "terraform": "Terraform",
    "cloudformation": "CloudFormation",
    "policy": "the IAM policy for running Tradewind",
    "setup-policy": "the IAM policy for running setup",
    "boundary": "the permissions boundary of machines",
}


def printed(kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> str:
    private, ssm, lend = (bool(settings.get(name)) for name in ("private", "ssm", "lend"))
    named = {name: settings.get(name) or "" for name in ("image", "key_pair")}
    usual = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    wanted = tuple(regions) or ((usual,) if usual else ())
    first = wanted[0] if wanted else "us-east-1"
    if not is_home(store_url):
        things.check_lent(store_url, (first,) if private else (), "lends" if lend else "")
    if kind == "policy":
        return _json(policies.user(store_url, first, ssm=ssm, lend=lend, **named))
    if kind == "boundary":
        made = policies.lending if lend else policies.boundary
        return _json(made(store_url, first))
    if kind == "setup-policy":
        return _json(setter.setter(store_url, first, private=private, ssm=ssm, lend=lend))
    if lend:
        raise InvalidValue(
            f"the lending role is not printed as {KINDS[kind]}: it names the account",
            hint="apply the rest without --lend, then run `tradewind setup aws --lend` once",
        )
    if not wanted:
        raise InvalidValue("no region is named", hint="--region us-east-1, for example")
    found = things.described(
        store_url, wanted[0], wanted, private=wanted if private else (), ssm=ssm
    )
    if kind == "terraform":
        return terraform.rendered(found)
    return cloudformation.rendered(found)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
