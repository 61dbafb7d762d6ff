"""Who we are to a bucket: credentials that are half, old, or of a profile that there is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.door import Answer, Door, serving
from tradewind import store
from tradewind.base.errors import NoAccess

_REFUSAL = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>{code}</Code><Message>{words}</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>"""


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of profiles, which is not there yet."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.mark.parametrize(
    "config",
    ["", "[profile mine]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = gone\n", "[profile"],
    ids=["unknown", "of one that is gone", "no file of profiles"],
)
def test_a_profile_that_cannot_be_taken(
    nobody: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    nobody.write_text(config)
    with pytest.raises(NoAccess) as told:
        store.open("s3://runs")
    assert "AWS_PROFILE" in (told.value.hint or "")


def test_half_a_key(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    with pytest.raises(NoAccess, match="AWS_SECRET_ACCESS_KEY is not"):
        store.open("s3://runs")


@pytest.mark.parametrize(
    ("code", "status", "advice"),
    [
        ("ExpiredToken", 400, "aws sso login"),
        ("InvalidAccessKeyId", 403, "new keys"),
        ("RequestTimeTooSkewed", 403, "clock"),
        ("AccessDenied", 403, "what they permit"),
    ],
)
def test_what_s3_says_of_us_is_told_shortly(
    nobody: Path, code: str, status: int, advice: str
) -> None:
    class Refusing(Door):
        inner = 0

        def answer(self, body: bytes) -> Answer:
            said = _REFUSAL.format(code=code, words="Words of S3.").encode()
            return status, [("Content-Type", "application/xml")], said

    with serving(Refusing) as port:
        keys = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x"}
        env = keys | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        opened = store.open("s3://runs/team", env=env)
        for ask in (lambda: opened.list_after("live/"), lambda: opened.get("live/x")):
            with pytest.raises(NoAccess) as told:
                ask()
            assert told.value.message.endswith(f"{code}: Words of S3.")
            assert advice in (told.value.hint or "")
            assert "http" not in told.value.message
        with pytest.raises(NoAccess):
            opened.create("live/x", b"")
