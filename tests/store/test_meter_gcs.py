"""What a process asks of a bucket of Cloud Storage is counted as Google charges for it: held
against the books of a server, request by request."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from tests.store.gcs.server import Gcs
from tradewind.base.errors import NotFound, SourceFailed
from tradewind.model.usage import Usage
from tradewind.store import meter
from tradewind.store.objects import ObjectStore

MIB = 1 << 20


class Metered:
    """A store, and a server that fails each third request where `fails` is set."""

    def __init__(self, folder: Path) -> None:
        self.counted = {"writes": 0, "reads": 0, "free": 0, "bytes_in": 0, "bytes_out": 0}
        self.fails, count = False, itertools.count()

        def enter(address: str, sort: str, came: int, went: int) -> None:
            for name, much in ((sort, 1), ("bytes_in", came), ("bytes_out", went)):
                self.counted[name] += much

        def fails() -> bool:
            return self.fails and next(count) % 3 == 0

        self.gcs = gcs = Gcs(folder / "gcs", time.time, enter=enter, fails=fails)
        gcs.objects.put_bucket("runs", {"name": "runs"})
        self.server = gcs.serve("127.0.0.1")
        where = f"http://127.0.0.1:{self.server.server_address[1]}"
        env = {"STORAGE_EMULATOR_HOST": where, meter.VARIABLE: str(folder / "used")}
        self.store = ObjectStore("gs://runs/tw", env=env, sleep=lambda _: None)

    def agree(self) -> Usage:
        mine = self.store.meter.total
        for name in ("writes", "reads", "bytes_in", "bytes_out"):
            assert getattr(mine, name) == self.counted[name], (name, mine, self.counted)
        return mine


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[Metered]:
    made = Metered(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.gcs.objects.close()


def test_small_objects(metered: Metered, tmp_path: Path) -> None:
    store = metered.store
    store.replace("a", b"12345")
    assert store.create("b", b"123")
    assert not store.create("b", b"1234")  # refused, which is free, and then looked at
    store.get("a")
    store.size("a")
    store.get_range("a", 1, 3)
    store.list_after("")
    store.delete("a")
    without_time = structs.replace(metered.agree(), byte_s=0)
    assert without_time == Usage(writes=3, reads=4, bytes_in=8, bytes_out=11, gone=5)
    assert meter.total(tmp_path / "used", "gs:runs") == metered.agree()


def test_what_is_not_there_is_free(metered: Metered) -> None:
    store = metered.store
    for ask in (store.get, store.size):
        with pytest.raises(NotFound):
            ask("nothing")
    store.replace("short", b"1")
    with pytest.raises(SourceFailed):
        store.get_range("short", 5, 5)
    assert metered.agree() == Usage(writes=1, bytes_in=1)


@pytest.mark.parametrize("size", [1, 1000, 8 * MIB + 1])
def test_uploads(metered: Metered, tmp_path: Path, size: int) -> None:
    store, path = metered.store, tmp_path / "file"
    path.write_bytes(b"x" * size)
    store.upload("file", path)
    metered.agree()
    step = 3_000_000
    data = path.read_bytes()
    store.upload_parts("pieces", (data[n : n + step] for n in range(0, size, step)), size)
    metered.agree()
    store.download("pieces", tmp_path / "back")
    told = metered.agree()
    assert (told.bytes_in, told.bytes_out) == (2 * size, size)


def test_an_upload_whose_completion_fails(
    metered: Metered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was carried out, and is not known any more when it is asked for again: the object is there
    all the same, and what failed is free."""
    store = metered.store
    store.replace("a", b"")
    late = iter([None, None, True])  # it is begun, a part is sent, it is completed
    monkeypatch.setattr(metered.gcs, "failing", lambda: next(late, None))
    store.upload_parts("pieces", iter([b"x" * 1000]), 1000)
    assert metered.agree().writes == 1 + 2
    assert store.get("pieces") == b"x" * 1000
    # Where it was not carried out, it is not there.
    late = iter([None, None, False, False, False, False, False])
    with pytest.raises(SourceFailed):
        store.upload_parts("others", iter([b"x" * 1000]), 1000)
    assert metered.agree().writes == 1 + 2 + 2


def test_what_the_server_fails_is_free(metered: Metered) -> None:
    metered.fails = True
    for n in range(5):
        metered.store.replace(f"{n}", b"123")
        metered.store.create(f"new/{n}", b"12")
        metered.store.get(f"{n}")
    metered.store.list_after("new/")
    assert metered.counted["free"] > 5
    metered.agree()
