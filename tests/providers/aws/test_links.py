"""Links to what lies in a bucket: signed by the real botocore, and sent nowhere."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.providers.aws.cloud import KEYS
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.cloud import CLOUD
from tradewind.providers.aws.footprint import Footprint


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


def _link(region: str, bucket: str) -> str:
    s3 = Account().client("s3", region)
    return str(s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a/k"}))


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "eu-south-2"])
def test_a_link_leads_to_the_bucket_s_own_region(region: str) -> None:
    """S3 redirects or refuses elsewhere, and the signature covers the host."""
    plain = urlsplit(_link(region, "ours"))
    assert (plain.netloc, plain.path) == (f"ours.s3.{region}.amazonaws.com", "/a/k")
    assert f"/{region}/s3/" in parse_qs(plain.query)["X-Amz-Credential"][0]
    dotted = urlsplit(_link(region, "ours.example.org"))  # TLS has no name for such a host
    assert dotted.netloc == f"s3.{region}.amazonaws.com"
    assert dotted.path == "/ours.example.org/a/k"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_what_is_like_s3_keeps_its_address(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:8333")
    for bucket in ("ours", "ours.example.org"):
        link = urlsplit(_link("eu-west-1", bucket))
        assert (link.netloc, link.path) == ("127.0.0.1:8333", f"/{bucket}/a/k")


def test_machines_look_for_aws_where_this_computer_does() -> None:
    record = Footprint(
        account="1", bucket="b", bucket_region="eu-west-1", instance_profile="p", regions={}
    )
    assert CLOUD.environment(record, {"AWS_REGION": "us-east-1", "HF_TOKEN": "x"}) == {
        "AWS_REGION": "eu-west-1"
    }
    own = {
        "AWS_ENDPOINT_URL_S3": "https://s3.internal",
        "AWS_ENDPOINT_URL_SSM": "https://ssm.internal",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": "https://secrets.internal",
    }
    assert CLOUD.environment(record, own) == {"AWS_REGION": "eu-west-1"} | own
    general = CLOUD.environment(record, {"AWS_ENDPOINT_URL": "https://like.s3"})
    assert general["AWS_ENDPOINT_URL_S3"] == "https://like.s3"
