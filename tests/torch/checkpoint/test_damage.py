"""Whatever happens to a checkpoint's files, wrong numbers are never read."""

from __future__ import annotations

import json
import random
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.torch.checkpoint.states import blank, manifests, same, saved, shards, tensors
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.torch.checkpoint import Checkpoints, Place, files, saver, verify
from tradewind.torch.checkpoint.job import Job
from tradewind.torch.checkpoint.manifest import Manifest, decode
from tradewind.torch.checkpoint.pieces import PieceFile


def restore(folder: Path) -> tuple[int, list[str]]:
    """Which step was read, rightly, and what was warned of."""
    warned: list[str] = []
    checkpoints = Checkpoints(Place(folder), warn=warned.append)
    found = checkpoints.newest()
    assert found is not None
    there = blank(tensors(1))
    restored = checkpoints.read(found, there)
    step = restored.found.step
    assert same(there, tensors(step))
    assert restored.shared == b"shared %d" % step
    return step, warned


@pytest.mark.parametrize("name", ["__0_0.distcp", "index.json"])
def test_a_flipped_bit(tmp_path: Path, name: str) -> None:
    saved(tmp_path, 1, 2)
    path = shards(tmp_path)[-1] / name
    data = path.read_bytes()
    rng = random.Random(5)
    places = [rng.randrange(len(data)) for _ in range(5)] + [0, len(data) - 1]
    for at in places:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        step, warned = restore(tmp_path)
        # Where no number is, between two of them, it is found as well: whole pieces are checked.
        assert step == 1, at
        assert str(path) in warned[-1]
        assert "check sum" in warned[-1]
    path.write_bytes(data)
    assert restore(tmp_path) == (2, [])


def test_a_flipped_bit_in_a_manifest(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    path = max((tmp_path / "checkpoints").rglob("*.json"))
    data = path.read_bytes()
    for at in random.Random(6).sample(range(len(data)), 40):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        warned: list[str] = []
        found = Checkpoints(Place(tmp_path), warn=warned.append)
        # Looked for without clearing away, as the rightful manifest comes back here.
        from tradewind.torch.checkpoint import shelf

        first = next(shelf.sound(found.place, None, set(), warned.append))
        assert first.step == 1
        assert f"{2:020d}.json" in warned[0]


@pytest.mark.parametrize("cut", ["all", "half", "last byte", "longer", "file", "folder"])
def test_cut_off(tmp_path: Path, cut: str) -> None:
    saved(tmp_path, 1, 2)
    folder = shards(tmp_path)[-1]
    path = folder / "__0_0.distcp"
    data = path.read_bytes()
    if cut == "folder":
        folder.rename(tmp_path / "away")
    elif cut == "file":
        path.unlink()
    else:
        left = {"all": 0, "half": len(data) // 2, "last byte": len(data) - 1}
        path.write_bytes(data[: left[cut]] if cut in left else data + b"x")
    step, warned = restore(tmp_path)
    assert step == 1
    assert str(folder) in warned[0]


def test_nothing_whole_is_left(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    for folder in shards(tmp_path):
        path = folder / "__0_0.distcp"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    checkpoints = Checkpoints(Place(tmp_path), warn=len)
    found = checkpoints.newest()
    assert found is not None
    with pytest.raises(BadFile, match="no checkpoint is whole"):
        checkpoints.read(found, blank(tensors(1)))


def test_a_damaged_one_is_replaced_by_the_next(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    path = shards(tmp_path)[-1] / "__0_0.distcp"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    checkpoints = Checkpoints(Place(tmp_path), warn=len, keep=2)
    found = checkpoints.newest()
    assert found is not None
    assert checkpoints.read(found, blank(tensors(1))).found.step == 1
    assert checkpoints.save(3, tensors(3), {}, b"shared 3", wait=True)
    checkpoints.close()
    assert manifests(tmp_path) == [1, 3]  # the good one was not pushed out by the bad one


def test_a_newer_format_is_not_taken_for_damage(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    path = max((tmp_path / "checkpoints").rglob("*.json"))
    words = json.loads(path.read_bytes())
    del words["manifest_crc32"]
    body = json.dumps({**words, "format": 2})
    path.write_text(f'{body[:-1]}, "manifest_crc32": {zlib.crc32(body.encode())}}}')
    with pytest.raises(InvalidValue, match="format 2"):
        Checkpoints(Place(tmp_path)).newest()
    assert len(shards(tmp_path)) == 2


def test_what_a_disk_has_spoilt_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read back before the one before is removed."""
    warned: list[str] = []
    checkpoints = Checkpoints(Place(tmp_path), warn=warned.append, keep=1)

    def save(step: int) -> list[int]:
        now = tensors(step)
        assert checkpoints.save(step, now, {}, b"shared %d" % step, b"", wait=True)
        job = checkpoints._saver.job
        assert job is not None
        assert job.cleared.wait(60)
        return manifests(tmp_path)

    assert save(1) == [1]
    rightly = PieceFile.write

    def spoilt(self: PieceFile, at: int, data: memoryview) -> None:
        wrong = bytearray(data)
        wrong[len(wrong) // 2] ^= 8
        rightly(self, at, memoryview(wrong))

    with monkeypatch.context() as disk:
        disk.setattr(PieceFile, "write", spoilt)
        assert save(2) == [1, 2]
    assert "step 2 was saved, and cannot be read" in warned[-1]
    assert restore(tmp_path)[0] == 1
    assert save(3) == [3]
    assert len(shards(tmp_path)) == 1
    checkpoints.close()
    assert restore(tmp_path) == (3, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"step": "x"},
        {"world": "two"},
        {"world": 0},
        {"world": 2},
        {"folder": 3},
        {"folder": "/etc"},
        {"folder": "a/../../b"},
        {"files": None},
        {"files": []},
        {"files": {"index.json": {"bytes": 1, "crc32": [1]}}},
        {"files": {"__0_0.distcp": {"bytes": -5, "crc32": []}}},
        {"files": {"__0_0.distcp": {"bytes": 5, "crc32": []}}},
        {"files": {"__0_0.distcp": {"bytes": 5, "crc32": ["a"]}}},
    ],
)
def test_manifests_that_somebody_made_up(changes: dict[str, Any]) -> None:
    files: dict[str, tuple[int, tuple[int, ...]]]
    files = dict.fromkeys(("__0_0.distcp", ".metadata", "index.json"), (1, (1,)))
    whole = Manifest(1, 0, 1, "000000/a", files)
    assert decode(whole.encode(), "key") == whole
    words = json.loads(whole.encode())
    del words["manifest_crc32"]
    changed = {**words, **changes}
    if isinstance(changes.get("files"), dict):
        changed["files"] = {**words["files"], **changes["files"]}
        if "index.json" in changes["files"]:
            del changed["files"]["__0_0.distcp"]
    body = json.dumps(changed)
    data = f'{body[:-1]}, "manifest_crc32": {zlib.crc32(body.encode())}}}'
    with pytest.raises(BadFile, match="key is damaged"):
        decode(data.encode(), "key")


def test_who_waits_for_a_save_does_not_wait_for_the_reading_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed for one that nobody has read; the next that is read makes up for it."""
    reading, real, begin = threading.Event(), files.Files.read, saver.Saver.next
    jobs: dict[int, Job] = {}

    def following(self: saver.Saver, step: int, *given: Any, **options: Any) -> Job:
        jobs[step] = begin(self, step, *given, **options)
        return jobs[step]

    def read(self: files.Files, name: str, number: int, space: memoryview) -> int:
        if name.endswith(".distcp") and number == 0:
            reading.set()
            jobs[self.manifest.step].unread.wait(60)
        return real(self, name, number, space)

    monkeypatch.setattr(saver.Saver, "next", following)
    monkeypatch.setattr(files.Files, "read", read)
    monkeypatch.setattr(saver, "_QUICK", 0)
    monkeypatch.setattr(verify, "_READERS", 1)  # which looks between two pieces
    checkpoints = Checkpoints(Place(tmp_path), keep=1)
    assert checkpoints.save(1, tensors(1))
    assert reading.wait(60)
    assert checkpoints.save(2, tensors(2), wait=True), "the first is still being read back"
    assert jobs[1].unread.is_set()
    checkpoints.close()
    assert manifests(tmp_path) == [1, 2]
    monkeypatch.undo()
    saved(tmp_path, 3, keep=1)
    assert manifests(tmp_path) == [3]


def test_what_has_expired_goes_at_once_where_one_that_stays_was_read(tmp_path: Path) -> None:
    checkpoints = Checkpoints(Place(tmp_path), keep=2)
    for step in (1, 2):
        assert checkpoints.save(step, tensors(step), wait=True)
        checkpoints.tidy(60)
    assert checkpoints._saver._whole.endswith("2.json")
    assert checkpoints.save(3, tensors(3))
    job = checkpoints._saver.job
    assert job is not None
    job.unread.set()  # it is not read itself
    assert job.cleared.wait(60)
    assert manifests(tmp_path) == [2, 3]
    assert checkpoints._saver._whole.endswith("2.json")
    checkpoints.close()
