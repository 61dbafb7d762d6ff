"""Buckets, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.store import servers
from tests.store.conformance import Conformance, Place
from tradewind import store
from tradewind.base.errors import NoAccess, NotFound, SourceFailed
from tradewind.store import Store

Env = Mapping[str, str]


@pytest.fixture(scope="module")
def s3_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as env:
        yield env


@pytest.fixture(scope="module")
def gcs_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    with servers.google(tmp_path_factory.mktemp("gcs")) as env:
        yield env


@pytest.fixture(scope="module")
def azure_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    with servers.azure(tmp_path_factory.mktemp("azure")) as env:
        yield env


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A folder of the bucket for each test."""
    return f"{abs(hash(request.node.nodeid)):x}"


class TestS3(Conformance):
    @pytest.fixture
    def place(self, s3_env: Env, prefix: str) -> Place:
        # Right, but a race takes it seconds: the losers wait for its lock on the key.
        opened = store.open(f"s3://runs/{prefix}", env=s3_env)
        return Place(opened, env=s3_env, creators=4, races=4)


class TestGcs(Conformance):
    @pytest.fixture
    def place(self, gcs_env: Env, prefix: str) -> Place:
        return Place(store.open(f"gs://runs/{prefix}/", env=gcs_env), env=gcs_env)


@pytest.mark.system
class TestAzurite(Conformance):
    @pytest.fixture
    def place(self, azure_env: Env, prefix: str) -> Place:
        # Its second page of a listing starts at 5,000; it is slow.
        return Place(store.open(f"az://runs/{prefix}", env=azure_env), env=azure_env)


def closed_port() -> int:
    return servers.free_ports(1)[0]


def test_a_bucket_that_is_not_there(s3_env: Env, gcs_env: Env) -> None:
    # SeaweedFS makes a bucket for whoever may; a reader may not.
    reader = {**s3_env, "AWS_ACCESS_KEY_ID": "reader"}
    with pytest.raises(NotFound, match="no bucket"):
        store.open("s3://nowhere", env=reader).list_after("")
    opened = store.open("gs://nowhere", env=gcs_env)
    with pytest.raises(NotFound, match="no bucket"):
        opened.create("k", b"")
    with pytest.raises(NotFound, match="no bucket"):
        opened.replace("k", b"")


def test_wrong_keys_and_missing_rights(s3_env: Env) -> None:
    wrong = store.open("s3://runs", env={**s3_env, "AWS_SECRET_ACCESS_KEY": "wrong"})
    with pytest.raises(NoAccess, match="refused"):
        wrong.create("k", b"")
    with pytest.raises(NoAccess, match="refused"):
        wrong.list_after("")
    reader = store.open("s3://runs", env={**s3_env, "AWS_ACCESS_KEY_ID": "reader"})
    reader.list_after("")
    with pytest.raises(NoAccess, match="refused"):
        reader.create("k", b"")
    with pytest.raises(NoAccess, match="refused"):
        reader.replace("k", b"")
    with pytest.raises(NoAccess, match="storage account"):
        store.open("az://runs", env={})


def test_nobody_answers(tmp_path: Path) -> None:
    from tradewind.store.objects import ObjectStore

    env = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{closed_port()}",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
    }
    opened: Store = ObjectStore("s3://runs", env=env, sleep=lambda _: None)
    with pytest.raises(SourceFailed, match="did not answer"):
        opened.create("k", b"")
    with pytest.raises(SourceFailed, match="did not answer"):
        opened.get("k")
