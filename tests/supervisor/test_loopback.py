"""A pass to S3, as boto3 asks for it in the job."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import botocore.session
import pytest
from msgspec.structs import replace

from tradewind.base import clock
from tradewind.store.lending import Pass, held
from tradewind.supervisor import loopback


def lent(key: str) -> Pass:
    credentials = {"access_key_id": key, "secret_access_key": "secret", "token": "token"}
    return Pass(store_url="s3://b", run_id="r", for_s=3600, credentials=credentials)


def test_boto3_finds_it_and_what_it_is_renewed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pass.json"
    held.keep(path, lent("first"), clock.monotonic() - 3000)  # ten minutes are left
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name, value in loopback.serve(path).items():
        monkeypatch.setenv(name, value)
    found = botocore.session.get_session().get_credentials()
    assert found is not None
    assert found.get_frozen_credentials()[:3] == ("first", "secret", "token")
    held.keep(path, lent("second"), clock.monotonic())
    assert found.get_frozen_credentials().access_key == "second"  # before the first one ends


def test_nobody_gets_it_without_the_token(tmp_path: Path) -> None:
    path = tmp_path / "pass.json"
    held.keep(path, lent("first"), clock.monotonic())
    told = loopback.serve(path)
    token = Path(told[loopback.TOKEN_FILE])
    assert token.stat().st_mode & 0o777 == 0o600
    for given in ("", "x" + token.read_text()):
        asked = urllib.request.Request(told[loopback.URI], headers={"Authorization": given})
        with pytest.raises(urllib.error.HTTPError, match="403") as caught:
            urllib.request.urlopen(asked)
        caught.value.close()
    assert token.read_text() not in told.values()


def test_a_pass_that_is_not_to_s3_is_not_served(tmp_path: Path) -> None:
    held.keep(tmp_path / "pass.json", replace(lent("first"), store_url="gs://b"), 0.0)
    assert loopback.serve(tmp_path / "pass.json") == {}
