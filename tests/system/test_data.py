"""Data that stands still, or finds no room: said, waited for, and gone on with."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind.torch as tw
from tests.eventually import eventually
from tests.local_http import LocalHttp, Reply, Request
from tests.store.servers import S3Server
from tests.system.conftest import SmallDisk
from tests.torch.data.test_shards import numbered
from tests.torch.data.web import File, noise, sha256
from tests.torch.lives import Nursery, Training
from tradewind.base.errors import NoAccess
from tradewind.torch.data.download import download

pytestmark = pytest.mark.system


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_frozen_store_is_said_and_gone_on_with(
    nursery: Nursery,
    tmp_path: Path,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    tw.write_shards("s3://runs/train", numbered(400), shard_bytes=30_000)
    stalled = Training(nursery, tmp_path / "stalled")
    options = f"--data shards --epochs 1 --batch 4 --layernorm --workers {workers}".split()
    options += ["--where", "s3://runs/train", "--cache-bytes", "200000", "--step-s", "0.05"]
    life = stalled.start(*options, env=s3_server.env).at(3)
    s3_server.process.send_signal(signal.SIGSTOP)
    try:
        eventually(
            lambda: "nothing has come for" in life.log() or "waits for s3" in life.log(),
            within_s=120,
        )
        step = life.step()
    finally:
        s3_server.process.send_signal(signal.SIGCONT)
    life.done()
    assert life.step() > step
    assert stalled.seen() == Counter((0, index) for index in range(400))


def test_shards_through_many_moves_and_kills(nursery: Nursery, tmp_path: Path) -> None:
    """Other numbers of ranks and workers each time, a small cache, killed at any instant."""
    place = tmp_path / "shards"
    tw.write_shards(place, numbered(301), shard_bytes=20_000)
    moved, rng = Training(nursery, tmp_path / "moved"), random.Random(5)
    options = "--data shards --epochs 3 --batch 4 --every-steps 2 --layernorm --cache-bytes 999999"
    given = (*options.split(), "--where", str(place))
    saved = 0
    for _ in range(8):
        world = rng.randint(1, 4)
        kind = ("--kind", "ddp") if world > 1 else ()
        workers = ("--workers", str(rng.randint(0, 2)))
        life = moved.start(*given, *kind, *workers, "--step-s", "0.02", world=world)
        life.has_saved(saved + 1).kill()
        saved = life.saved()[-1]
    moved.start(*given).done()
    assert moved.seen() == Counter((epoch, index) for epoch in range(3) for index in range(301))


def test_a_full_disk_is_said_and_gone_on_from(small_disk: SmallDisk) -> None:
    """24 MB: the second file does not fit, and then the disk fills while it comes."""
    data = noise(20_000_000)
    with LocalHttp() as web:
        web.on("/f", File(data))
        (small_disk.path / "other").write_bytes(b"x" * 10_000_000)
        with pytest.raises(NoAccess, match="MB free, and 20MB are needed"):
            download(web.url + "/f", small_disk.path / "f")
        (small_disk.path / "other").unlink()
        held = File(data, None, None, 5.0, 5.0)

        def filling(request: Request) -> Reply:
            if len(held.asked) == 2:
                small_disk.fill()
            return held(request)

        web.on("/f", filling)
        with pytest.raises(NoAccess, match="No space left on device"):
            download(web.url + "/f", small_disk.path / "f")
        small_disk.free()
        web.on("/f", File(data))
        got = download(web.url + "/f", small_disk.path / "f", sha256=sha256(data))
        assert got.read_bytes() == data
