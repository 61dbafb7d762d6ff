"""Setting AWS up for a store that is Google's: its machines are lent passes there, and nothing of
S3 is made or allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, WAY
from tests.providers.aws import account_server as server
from tradewind.api import clouds
from tradewind.base.errors import InvalidValue
from tradewind.catalog import ratecard
from tradewind.model.run import Way
from tradewind.providers.aws.checks.policies import policy_checks
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.cloud import CLOUD
from tradewind.providers.aws.facts import PASS_S
from tradewind.providers.aws.footprint import Footprint, decoded, name
from tradewind.providers.aws.setup.look import Look
from tradewind.providers.aws.setup.make import Wish

STORE = "gs://my-bucket/tw"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(autouse=True)
def account(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server.entered(url, monkeypatch, tmp_path)


def look(bucket_region: str = "", *, lend: bool = False, private: bool = False) -> Look:
    wish = Wish(
        store_url=STORE, regions=("us-east-1",), bucket_region=bucket_region, lend=lend,
        private=private,
    )  # fmt: skip
    return Look(Account(), wish)


def made() -> Footprint:
    return look("us-central1").prepared(None).carry_out(lambda line: None)


def test_made_without_a_bucket() -> None:
    assert CLOUD.checked(STORE + "/") == STORE
    found = look("us-central1")
    assert found.store_env == {}
    prepared = found.prepared(None)
    assert "bucket" not in {line.what for line in prepared.lines}
    record = prepared.carry_out(lambda line: None)
    assert decoded(record.encoded()) == record
    assert (record.lent, record.bucket, record.home) == (True, "", "us-east-1")
    assert record.bucket_place == ("gcp", "us-central1")
    assert server.client("s3").list_buckets()["Buckets"] == []
    policy = server.client("iam").get_role_policy(RoleName=name(STORE), PolicyName="store")
    assert "s3:" not in json.dumps(policy["PolicyDocument"])
    told = [each.what for each in policy_checks(Account(), record, STORE)]
    assert told == ["machines may do what this version of Tradewind needs, and no more"]
    # Again: nothing changes, and where the bucket is stays known.
    again = look().prepared(record)
    assert again.changes == 0
    assert again.record() == record
    with pytest.raises(InvalidValue, match="the bucket is not AWS's"):
        look().removed(record, delete_store=True)
    for line in look().removed(record, delete_store=False):
        line.carry_out()
    roles = server.client("iam").list_roles()["Roles"]
    assert name(STORE) not in {each["RoleName"] for each in roles}


def test_what_it_costs_to_reach_it() -> None:
    way: Way = replace(WAY, provider="aws", region="us-east-1", zone="use1-az1")
    found = CLOUD.priced(made(), SPEC, way, ratecard.card())
    assert found.pass_s == PASS_S
    assert found.rates is not None
    assert (found.rates.gb_in, found.rates.gb_out) == (90_000, 120_000)
    assert clouds.is_lent(CLOUD, STORE, made())
    assert not clouds.is_lent(CLOUD, "s3://b", made())
    assert CLOUD.environment(made(), {})["AWS_REGION"] == "us-east-1"


@pytest.mark.parametrize(
    "kind", ["terraform", "cloudformation", "policy", "setup-policy", "boundary"]
)
def test_printed_without_a_bucket(kind: str) -> None:
    text = CLOUD.printed(kind, STORE, ("us-east-1",), {})
    assert "s3:" not in text
    assert "s3_bucket" not in text
    assert "S3::Bucket" not in text
    assert name(STORE).rpartition("-")[2] in text


@pytest.mark.parametrize(
    ("settings", "words"), [({"lend": True}, "leave out --lend"), ({"private": True}, "--private")]
)
def test_what_makes_no_sense_there(settings: dict[str, bool], words: str) -> None:
    with pytest.raises(InvalidValue) as printed:
        CLOUD.printed("policy", STORE, ("us-east-1",), settings)
    assert words in str(printed.value.hint)
    with pytest.raises(InvalidValue) as raised:
        look(lend="lend" in settings, private="private" in settings).prepared(None)
    assert words in str(raised.value.hint)
