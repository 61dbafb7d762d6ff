"""Shards: WebDataset's format, written and read; the cache, torn, small and shared."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind.torch as tw
from tests.eventually import eventually
from tests.local_http import LocalHttp, Reply
from tests.torch.data.web import File
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.torch.data import shardindex, tars
from tradewind.torch.data.cache import Cache, Item


def numbered(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"index": number, "x.npy": np.full(50, number), "note.json": {"n": number}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """103 samples in 11 shards."""
    place = tmp_path / "train"
    assert tw.write_shards(place, numbered(103), shard_bytes=37_000) == 103
    return place


def test_what_is_written_is_read(folder: Path) -> None:
    found = tw.shards(folder)
    assert (len(found), found.shard_count) == (103, 11)
    sample = found[57]
    assert sample["index"] == 57
    assert sample["x.npy"].tolist() == [57] * 50
    assert sample["note.json"] == {"n": 57}
    assert sample["__key__"] == "000000057"
    assert isinstance(tw.shards(folder, decode=False)[1]["x.npy"], bytes)
    with pytest.raises(IndexError):
        found[103]
    assert pickle.loads(pickle.dumps(found))[-1]["index"] == 102  # noqa: S301
    assert tw.shards(f"{folder}/00000[01].tar")[0]["index"] == 0
    assert len(tw.shards([f"{folder}/{{000000..000010}}.tar"])) == 103
    # Without an index, local files are counted.
    (folder / "index.json").unlink()
    assert len(tw.shards(folder)) == 103
    assert tw.index_shards(folder) == 103
    assert len(shardindex.decode((folder / "index.json").read_bytes(), "")) == 11


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its open files
def test_what_webdataset_writes_is_read_and_the_other_way_round(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    with wds.TarWriter(str(tmp_path / "a.tar")) as sink:
        for number in range(5):
            sink.write({"__key__": f"k/{number}", "cls": number, "a.npy": np.arange(number)})
    found = tw.shards(tmp_path / "a.tar")
    assert [found[n]["cls"] for n in range(5)] == list(range(5))
    assert found[3]["a.npy"].tolist() == [0, 1, 2]
    assert found[3]["__key__"] == "k/3"
    ours = tmp_path / "ours"
    tw.write_shards(ours, numbered(4))
    read = list(wds.WebDataset(str(ours / "000000.tar"), shardshuffle=False).decode())
    assert [each["index"] for each in read] == list(range(4))
    assert read[2]["x.npy"].tolist() == [2] * 50


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_every_kind(tmp_path: Path, kind: int) -> None:
    """Folders, long names, names beyond ASCII, empty fields, and files that are no samples."""
    names = ["a/" + "b" * 90 + "/" + "c" * 80, "äöü", "plain"]
    if kind != tarfile.USTAR_FORMAT:
        names.append("d/" * 120 + "é" * 90)
    with tarfile.open(tmp_path / "x.tar", "w", format=kind) as tar:
        tar.addfile(tarfile.TarInfo("README"), io.BytesIO())
        for name in names:
            folder = tarfile.TarInfo(name.rpartition("/")[0] or "f")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            for field, data in {"txt": name.encode(), "JPG": b"", "x.y": b"z" * 600}.items():
                member = tarfile.TarInfo(f"{name}.{field}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    found = tw.shards(tmp_path / "x.tar")
    assert [found[n] for n in range(len(found))] == [
        {"__key__": name, "txt": name, "jpg": b"", "x.y": b"z" * 600} for name in names
    ]


def test_words_for_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="holds shards already"):
        tw.write_shards(folder, numbered(2))
    with pytest.raises(InvalidValue, match=r"a set cannot be written as \.jpg"):
        tw.write_shards(tmp_path / "b", [{"jpg": {1}}])
    with pytest.raises(InvalidValue, match="a dot in its key"):
        tw.write_shards(tmp_path / "b", [{"__key__": "a.b", "txt": "x"}])
    with pytest.raises(InvalidValue, match="sample 0 is a int"):
        tw.write_shards(tmp_path / "b", [3])  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="no samples to write"):
        tw.write_shards(tmp_path / "b", [])
    with pytest.raises(NotFound, match="there is no"):
        tw.shards(tmp_path / "none")
    with pytest.raises(InvalidValue, match="0 shards cannot be mixed"):
        tw.shards(folder, mix=0)
    for nothing in ("", "s3://"):
        with pytest.raises(InvalidValue, match="names no place"):
            tw.shards(nothing)
    with pytest.raises(InvalidValue, match="no shards are named"):
        tw.shards([])
    with pytest.raises(InvalidValue, match=r"index\.json is no \.tar file"):
        tw.shards(folder / "index.json")
    assert tw.write_shards(tmp_path / "long", [{"__key__": "k" * 300, "txt": "x"}]) == 1
    assert tw.shards(tmp_path / "long")[0]["__key__"] == "k" * 300
    with pytest.raises(
        InvalidValue, match=r"is too small: 4 shards are read .* of up to 41kB each"
    ):
        tw.shards(folder, cache=tmp_path / "cache", cache_bytes=100_000)
    shard = folder / "000003.tar"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:20_000])
    with pytest.raises(
        BadFile, match=r"000003\.tar is not a whole tar file: it is damaged at byte"
    ):
        tw.shards(folder)[35]
    shard.write_bytes((folder / "000010.tar").read_bytes())
    with pytest.raises(BadFile, match="has 3 samples, and its index says 10"):
        tw.shards(folder)[35]
    (folder / "index.json").write_text('{"format": 1, "shards": [{"nam": 1}]}')
    with pytest.raises(BadFile, match="not an index of shards"):
        tw.shards(folder)
    tw.write_shards(tmp_path / "c", [{"txt": b"\xff"}])
    with pytest.raises(BadFile, match=r"000000000\.txt in .* cannot be read"):
        tw.shards(tmp_path / "c")[0]


# -- the cache -------------------------------------------------------------------------------------


def test_from_the_web_by_way_of_a_cache(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A server of which every 20th request fails, and one is cut off."""
    with LocalHttp() as web:
        served = {}
        for path in filter(Path.is_file, folder.iterdir()):
            served[path.name] = File(
                path.read_bytes(), *([None, "cut"] if "5" in path.name else [])
            )
        asked = iter(range(1, 10_000))

        def answer(name: str) -> Any:
            return lambda request: (
                Reply(status=503) if next(asked) % 20 == 0 else served[name](request)
            )

        for name in served:
            web.on(f"/train/{name}", answer(name))
        found = tw.shards(
            web.url + "/train/{000000..000010}.tar", cache=tmp_path / "cache", cache_bytes=500_000
        )
        assert [found[n]["index"] for n in range(103)] == list(range(103))
        before = len(web.requests)
        assert [found[n]["index"] for n in range(60, 103)] == list(range(60, 103))
        assert len(web.requests) == before  # the newest are still there
        assert _size(tmp_path / "cache") <= 500_000
        assert "tries again" in capfd.readouterr().err
        # A file that rotted in the cache is found out, and brought again.
        victim = next((tmp_path / "cache" / "shards").glob("*-000010.tar"))
        data = bytearray(victim.read_bytes())
        data[124:136] = b"x" * 12
        victim.write_bytes(bytes(data))
        again = tw.shards(
            web.url + "/train/000010.tar", cache=tmp_path / "cache", cache_bytes=500_000
        )
        assert again[2]["index"] == 102
        assert "it is brought again" in capfd.readouterr().err
        with pytest.raises(NotFound, match=r"there is no http://.*/other/index\.json.*\n.*hint"):
            tw.shards(web.url + "/other/{0..3}.tar", cache=tmp_path / "cache")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_wids_indexes_are_read(folder: Path, tmp_path: Path) -> None:
    shards = [
        {"url": f"https://elsewhere/{path.name}", "nsamples": len(tars.Tar(path))}
        for path in sorted(folder.glob("*.tar"))
    ]
    said = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": shards}
    (folder / "index.json").write_text(json.dumps(said))
    with LocalHttp() as web:
        for path in filter(Path.is_file, folder.iterdir()):
            web.on(f"/t/{path.name}", File(path.read_bytes()))
        found = tw.shards(web.url + "/t", cache=tmp_path / "cache", cache_bytes="10MB")
        assert found[102]["index"] == 102


def _hammer(folder: str, most: int, items: list[Item], seed: int) -> None:
    import random

    cache, rng = Cache(Path(folder), most), random.Random(seed)
    for _ in range(60):
        item = rng.choice(items)
        cache.pin([item])
        cache.bring(item)
        assert len(tars.Tar(cache.path(item))) == 10


def test_several_processes_share_a_small_cache_and_some_are_killed(
    folder: Path, tmp_path: Path
) -> None:
    shards = shardindex.decode((folder / "index.json").read_bytes(), "")[:10]
    items = [Item((folder / s.name).as_uri(), s.name, s.size, s.sha256) for s in shards]
    most = 5 * items[0].size + 100  # four processes have a pin each
    place = tmp_path / "cache"
    context = multiprocessing.get_context("fork")
    for lives in range(3):
        some = [
            context.Process(target=_hammer, args=(str(place), most, items, 10 * lives + n))
            for n in range(4)
        ]
        for each in some:
            each.start()
        if lives < 2:
            while len(list(place.glob("*.tar"))) < 3:
                some[0].join(0.01)
            for each in some:
                os.kill(each.pid or 0, 9)
        for each in some:
            each.join()
        assert lives < 2 or [each.exitcode for each in some] == [0] * 4
        whole = sum(path.stat().st_size for path in place.glob("*.tar"))
        assert whole <= most
    for item in items:
        Cache(place, most).bring(item)
        assert (place / item.name).read_bytes() == (folder / item.name).read_bytes()
    # Dead processes' parts went like everything else.
    assert len(list(place.glob(".*.part"))) == 0
    shutil.rmtree(place)


def test_the_next_shards_come_while_these_are_read_and_stay(folder: Path, tmp_path: Path) -> None:
    """Two are read at a time, and the two after them are brought without being asked for."""
    found = tw.shards(folder, cache=tmp_path / "cache", cache_bytes=250_000, mix=2)
    order = found.tradewind_order(0, 0, ranks=1, batch=4, shuffle=True)
    place = tmp_path / "cache" / "shards"

    def names() -> set[int]:
        return {int(path.stem.rpartition("-")[2]) for path in place.glob("*.tar")}

    def are_there(shards: list[int]) -> Callable[[], bool]:
        return lambda: set(shards) <= names()

    for start in (0, 24, 48):
        near = order.near(start, start + 4)
        assert len(near) == 4
        found.tradewind_near(near)
        eventually(are_there(near))
        assert {found[each]["index"] for each in order[start : start + 4]} <= set(range(103))
    # What another process needs does not push them out; it takes more room for a while.
    others = Cache(place, 250_000)
    for number in range(10):
        item = found._items[number]
        others.bring(item)
        assert set(near) <= names()
    assert found.tradewind_facts() == {"shards": 11, "shards mixed": 2}


@pytest.mark.system  # each imports PyTorch
def test_with_a_plain_loader_and_spawned_workers(folder: Path, tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    found = tw.shards(folder, cache=tmp_path / "cache", cache_bytes="1MB", transform=_index)
    loader = DataLoader(found, 10, num_workers=1, multiprocessing_context="spawn")
    assert [each for batch in loader for each in batch.tolist()] == list(range(103))


def _index(sample: dict[str, Any]) -> int:
    number: int = sample["index"]
    return number
