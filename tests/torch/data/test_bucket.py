"""From a real S3 server: shards by way of the cache, tokens, single files; killed in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import tradewind.torch as tw
from tests.store import servers
from tests.torch.data.test_shards import numbered
from tests.torch.data.web import noise, sha256
from tests.torch.lives import Training
from tradewind import store as stores
from tradewind.base.errors import NotFound
from tradewind.torch.data.download import download

pytestmark = pytest.mark.slow

Make = Callable[[str], Training]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as env, pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        yield env


def test_a_training_from_a_bucket_is_killed_and_goes_on(
    training: Make, bucket: Mapping[str, str]
) -> None:
    """The checkpoints' side of the training speaks to the bucket too, before workers are forked."""
    tw.write_shards("s3://runs/train", numbered(101), shard_bytes=30_000)
    with pytest.raises(NotFound, match="there is no s3://runs/other/index"):
        tw.shards("s3://runs/other")
    moved = training("moved")
    options = tuple("--data shards --epochs 2 --batch 4 --every-steps 3 --layernorm".split())
    options += ("--where", "s3://runs/train", "--cache-bytes", "300000")
    slowly = (*options, "--step-s", "0.03", "--workers", "2")
    first = moved.start(*slowly, env=bucket).has_saved(6)
    first.kill()
    moved.start(*options, env=bucket).done()
    assert moved.lives[-1].begun() > 0
    assert moved.seen() == Counter((epoch, index) for epoch in range(2) for index in range(101))
    kept = (moved.folder / "cache" / "shards").glob("*.tar")
    assert 0 < sum(path.stat().st_size for path in kept) <= 300_000


def test_workers_of_a_plain_loader_bring_shards_themselves(
    bucket: Mapping[str, str], tmp_path: Path
) -> None:
    """They are forked from a process that has spoken to the bucket, so they cannot."""
    from torch.utils.data import DataLoader

    tw.write_shards("s3://runs/plain", numbered(23), shard_bytes=30_000)
    found = tw.shards("s3://runs/plain", cache=tmp_path, transform=index_of)
    loader = DataLoader(found, 5, num_workers=2)
    assert [each for batch in loader for each in batch.tolist()] == list(range(23))
    stores.open("s3://runs/plain").delete("000001.tar")
    for path in (tmp_path / "shards").glob("*000001.tar"):
        path.unlink()
    with pytest.raises(NotFound, match=r"there is no 000001\.tar in s3://runs/plain"):
        list(DataLoader(found, 5, num_workers=1))


def index_of(sample: dict[str, Any]) -> int:
    number: int = sample["index"]
    return number


def test_tokens_and_files_from_a_bucket(bucket: Mapping[str, str], tmp_path: Path) -> None:
    store = stores.open("s3://runs/tokens")
    for number in range(2):
        tw.write_tokens(tmp_path / "x.npy", [[number] * 9], vocab=9)
        store.upload(f"part-{number}.npy", tmp_path / "x.npy")
    found = tw.tokens("s3://runs/tokens/part-*.npy", 4, cache=tmp_path / "cache")
    assert [found[n][0].tolist()[0] for n in range(4)] == [0, 0, 1, 1]
    data = noise(20_000_000)
    store.replace("weights", data)
    got = download("s3://runs/tokens/weights", tmp_path / "w", sha256=sha256(data))
    assert got.read_bytes() == data
    with pytest.raises(NotFound, match="there is no nothing in s3://runs/tokens"):
        download("s3://runs/tokens/nothing", tmp_path)
