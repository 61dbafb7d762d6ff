"""The command: when it asks AWS, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.providers.aws.cloud import KEYS, Cloud, quotas_of
from tests.providers.aws.conftest import QUOTAS
from tradewind import store as stores
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, Finding
from tradewind.providers.aws.cloud import CLOUD
from tradewind.providers.aws.footprint import KEY, Footprint
from tradewind.store.base import Store
from tradewind.upkeep.clouds import cloud_checks


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return stores.open(str(tmp_path / "store"))


def _told(store: Store | None, user: Path, *, asked: bool, **env: str) -> list[Finding]:
    return list(cloud_checks("aws", store, asked=asked, env=env, user=user))


def test_a_store_that_has_nothing_to_do_with_aws(store: Store, tmp_path: Path) -> None:
    (finding,) = _told(store, tmp_path, asked=False, AWS_PROFILE="mine")
    assert (finding.level, finding.what) == (MISSING, "nothing is set up for this store")


def test_no_credentials(store: Store, tmp_path: Path, footprint: Footprint) -> None:
    store.create(KEY, footprint.encoded())
    (finding,) = _told(store, tmp_path, asked=False)
    assert finding.level == WARNING
    assert "no credentials are found" in finding.what
    found = _told(store, tmp_path, asked=False, AWS_ACCESS_KEY_ID="mine")
    assert {finding.level for finding in found} == {OK}
    assert len(found) == 7


def test_named_without_credentials(
    store: Store, tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        if "KEY" in name:
            monkeypatch.delenv(name)
    (finding,) = _told(store, tmp_path, asked=True)
    assert (finding.level, finding.what) == (BROKEN, "there are no AWS credentials")


def test_named_though_the_store_cannot_be_read(tmp_path: Path, cloud: Cloud, store: Store) -> None:
    quotas_of(cloud, QUOTAS)
    assert [f.level for f in _told(None, tmp_path, asked=True)] == [OK, OK, WARNING, OK]
    store.create(KEY, b"{")
    found = _told(store, tmp_path, asked=True)
    assert found[0].level == BROKEN
    assert "tradewind setup aws" in found[0].todo
    assert len(found) == 4
    assert all("nothing is set up" not in each.what for each in found)  # nobody knows
    assert len(_told(store, tmp_path, asked=False)) == 1


def test_where_credentials_may_be(tmp_path: Path) -> None:
    assert not CLOUD.hinted({}, tmp_path)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("")
    assert CLOUD.hinted({}, tmp_path)
    elsewhere = {"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    assert not CLOUD.hinted(elsewhere, tmp_path)
    assert CLOUD.hinted({"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, tmp_path / "other")


def _doctor(store: Store, home: Path, *words: str) -> tuple[dict[str, list[Finding]], set[str]]:
    """What it finds, and what it has imported."""
    script = (
        "import sys, json\nfrom tradewind.cli.app import run\n"
        f"run(['doctor', *{words!r}, '--json', '--store', {store.url!r}])\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(home), "TRADEWIND_HOME": str(home / "tradewind")},
    )
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    found: dict[str, list[Finding]] = {}
    for each in json.loads(done.stdout)["findings"]:
        found.setdefault(each["about"], []).append(Finding(**each))
    return found, modules


def test_plain_doctor_leaves_aws_alone(store: Store, tmp_path: Path, cloud: Cloud) -> None:
    found, modules = _doctor(store, tmp_path)
    assert [finding.level for finding in found["aws"]] == [MISSING]
    assert not modules & {"boto3", "botocore"}
    assert cloud.asked == []


def test_doctor_aws(store: Store, tmp_path: Path, footprint: Footprint) -> None:
    store.create(KEY, footprint.encoded())
    found, _ = _doctor(store, tmp_path, "aws")
    assert list(found) == ["aws"]
    assert [finding.level for finding in found["aws"]] == [OK] * 7
