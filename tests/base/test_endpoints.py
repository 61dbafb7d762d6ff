"""Variables that lead our clients elsewhere do not turn TLS off without a word."""

from __future__ import annotations

import pytest

from tradewind import store as stores
from tradewind.base import endpoints
from tradewind.base.errors import NoAccess
from tradewind.providers.aws.clients import Account
from tradewind.store import googlekeys
from tradewind.upkeep import checks

KEYS = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "us-east-1",
    "AZURE_STORAGE_ACCOUNT": "a",
    "AZURE_STORAGE_KEY": "eA==",
}
HERE = ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.8.9.1")
AWAY = (
    "http://10.0.0.1:1",
    "HTTP://s3.example.com",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://user@10.0.0.1",
    "http://127.0.0.1@example.com",
    "http://",
)
NAMES = {
    "s3://b": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    "gs://b": ("STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"),
    "az://b": ("AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}
EACH = [(url, name) for url, names in NAMES.items() for name in names]


def test_which_others_can_listen_to() -> None:
    assert not any(endpoints.is_exposed(each) for each in HERE)
    assert all(endpoints.is_exposed(each) for each in AWAY)
    assert not endpoints.is_exposed("https://10.0.0.1")
    assert not endpoints.is_exposed("")


@pytest.mark.parametrize(("url", "name"), EACH)
def test_a_store(url: str, name: str) -> None:
    for endpoint in HERE:
        stores.open(url, env=KEYS | {name: endpoint})
    env = KEYS | {name: "http://10.0.0.1:9000"}
    with pytest.raises(NoAccess, match="not encrypted") as refused:
        stores.open(url, env=env)
    assert "TRADEWIND_PLAIN_HTTP=10.0.0.1" in (refused.value.hint or "")
    stores.open(url, env=env | {"TRADEWIND_PLAIN_HTTP": "other, 10.0.0.1"})
    with pytest.raises(NoAccess):
        stores.open(url, env=env | {"TRADEWIND_PLAIN_HTTP": "1"})
    (finding,) = checks.endpoint_checks(url, env)
    assert finding.level == "warning"
    assert list(checks.endpoint_checks(url, KEYS | {name: HERE[0]})) == []


def test_where_cloud_storage_is() -> None:
    at = "https://storage-team.p.googleapis.com"
    for named, leads in (
        ("", ""),
        (f"{at}/storage/v1/", at),
        (f"{at}/storage/v1", at),
        (at, at),
        ("https://www.googleapis.com/storage/v1/", ""),
    ):
        assert googlekeys.endpoint({googlekeys.GOOGLE: named}) == leads
    both = {googlekeys.GOOGLE: at, googlekeys.EMULATOR: "localhost:1"}
    assert googlekeys.endpoint(both) == "http://localhost:1"


def test_an_emulator_without_a_scheme() -> None:
    stores.open("gs://b", env={"STORAGE_EMULATOR_HOST": "localhost:1"})
    with pytest.raises(NoAccess):
        stores.open("gs://b", env={"STORAGE_EMULATOR_HOST": "emulator:1"})


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EC2"])
def test_clients_of_aws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in KEYS.items():
        monkeypatch.setenv(key, value)
    for key in ("AWS_PROFILE", "AWS_ENDPOINT_URL", endpoints.ALLOW):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv(name, "http://10.0.0.1:9000")
    with pytest.raises(NoAccess, match="not encrypted"):
        Account().client("ec2", "us-east-1")
    monkeypatch.setenv(endpoints.ALLOW, "10.0.0.1")
    Account().client("ec2", "us-east-1")
