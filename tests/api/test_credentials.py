"""Links die with the credentials that signed them. Those are real ones of botocore, of a process
that tells when they end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.providers.aws.cloud import KEYS
from tests.providers.aws.test_order import footprint
from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.links import Links


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*KEYS, "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    told = tmp_path / "told.json"
    (tmp_path / "config").write_text(
        f"[default]\nregion = us-east-1\ncredential_process = cat {told}\n"
    )
    return tmp_path


def _ending_in(home: Path, minutes: float) -> Account:
    keys = {"Version": 1, "AccessKeyId": "AKID", "SecretAccessKey": "x", "SessionToken": "y"}
    ends = (clock.now() + timedelta(minutes=minutes)).isoformat()
    (home / "told.json").write_text(json.dumps(keys | {"Expiration": ends}))
    return Account()


def _check(account: Account) -> None:
    Links(account, footprint(), "s3://b").check()


def test_credentials_that_end_soon_buy_nothing(home: Path) -> None:
    account = _ending_in(home, 9)
    with pytest.raises(NoAccess, match=r"expire in [89] min, .* nothing was launched") as told:
        _check(account)
    assert "aws sso login" in str(told.value.hint)


def test_those_that_last_do(home: Path) -> None:
    account = _ending_in(home, 60)
    ends = account.expires_s()
    assert ends is not None
    assert 3500 < ends - clock.now().timestamp() < 3601
    _check(account)


def test_those_that_can_be_renewed_are(home: Path) -> None:
    account = _ending_in(home, 9)
    _ending_in(home, 60)  # the process gives others now
    _check(account)
    ends = account.expires_s()
    assert ends is not None
    assert ends - clock.now().timestamp() > 3500


def test_those_that_have_ended(home: Path) -> None:
    with pytest.raises(NoAccess, match="expired"):
        _check(_ending_in(home, -5))


def test_of_those_that_do_not_tell_nothing_is_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (KEYS | {"AWS_SESSION_TOKEN": "y"}).items():
        monkeypatch.setenv(name, value)
    account = Account()
    assert account.expires_s() is None
    _check(account)


def test_half_a_key_says_which_half(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    with pytest.raises(NoAccess, match="AWS_SECRET_ACCESS_KEY") as told:
        Account()
    assert "both" in str(told.value.hint)


def test_a_single_sign_on_that_was_never_made_or_is_over(home: Path) -> None:
    (home / "config").write_text(
        "[default]\nregion = us-east-1\nsso_start_url = https://example.awsapps.com/start\n"
        "sso_region = us-east-1\nsso_account_id = 123456789012\nsso_role_name = x\n"
    )
    with pytest.raises(NoAccess) as told:
        Account().number()
    assert "aws sso login" in str(told.value.hint)
