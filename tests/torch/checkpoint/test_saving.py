"""One rank on one machine: what is saved, when, and what becomes of it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from tests.system_calls import Calls
from tests.torch.checkpoint.states import blank, manifests, same, saved, shards, tensors
from tradewind.base.errors import InvalidValue
from tradewind.torch.checkpoint import Checkpoints, Place, files, pieces, stage


def test_what_is_read_is_what_was_saved(tmp_path: Path) -> None:
    now = tensors()
    checkpoints = Checkpoints(Place(tmp_path))
    assert checkpoints.newest() is None
    own = {"residue": torch.arange(5.0), "late": torch.randn(300_000)}
    kept = {name: tensor.clone() for name, tensor in own.items()}
    checkpoints.prepare(now, own)
    assert checkpoints.save(7, now, own, b"shared", b"mine")
    checkpoints.gate()
    wanted = tensors()
    for tensor in [*now.values(), *own.values()]:
        tensor.zero_()  # as the next step would
    done = checkpoints.finish(60)
    assert done is not None
    assert (done.step, checkpoints.poll()) == (7, done)
    found = checkpoints.newest()
    assert found is not None
    assert (found.step, found.world, found.folder) == (7, 1, done.folder)
    there = blank(wanted)
    restored = checkpoints.read(found, there)
    shared, mine, back = restored
    assert (shared, mine, restored.found) == (b"shared", b"mine", found)
    assert same(there, wanted)
    assert same(back, kept)
    given = blank(kept)
    assert checkpoints.read(found, there, given)[2]["late"] is given["late"]
    assert same(given, kept)
    checkpoints.close()


def test_a_manifest_is_named_when_all_else_would_outlive_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    saved(tmp_path, 1)
    (folder,) = shards(tmp_path)
    (made,) = (tmp_path / "checkpoints").rglob("*.json")
    manifest = made.relative_to(tmp_path)
    words = [f"{word} {path}" for word, path in calls.since()]
    named = words.index(f"name {manifest}")
    below = folder.relative_to(tmp_path)
    for file in folder.iterdir():
        path = below / file.name
        written = "sync" if file.suffix == ".distcp" else "name"
        assert f"{written} {path}" in words[:named], path
    for above in (below, *list(below.parents)[:2]):
        assert f"sync {above}" in words[:named], above
    assert f"sync {manifest.parent}" in words[named:]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_plain_pytorch_reads_it(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    (folder,) = shards(tmp_path)
    wanted = tensors(1)
    there = {name: torch.zeros(t.shape, dtype=t.dtype) for name, t in wanted.items()}
    dcp.load(there, checkpoint_id=folder)
    assert same(there, wanted)
    dcp_to_torch_save(folder, tmp_path / "one.pt")
    assert same(torch.load(tmp_path / "one.pt", weights_only=True), wanted)
    # Part of it, by the name that a nested state would have.
    some = {"kind": {"0": torch.zeros(5, 31, dtype=torch.bfloat16)}}
    dcp.load(some, checkpoint_id=folder)
    assert torch.equal(some["kind"]["0"], wanted["kind.0"])


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_tied_weights_are_written_once_and_found_under_each_name(tmp_path: Path) -> None:
    weight = torch.randn(1000, 600)
    part = weight[:500]  # begins where it does, and is another
    now = {"embed": weight, "part": part, "head": weight.detach(), "other": torch.randn(3)}
    checkpoints = Checkpoints(Place(tmp_path))
    assert checkpoints.save(1, now, wait=True)
    done = checkpoints.poll()
    assert done is not None
    assert done.bytes < 1.6 * 1000 * 600 * 4
    found = checkpoints.newest()
    assert found is not None
    untied = blank(now)
    assert checkpoints.read(found, untied).all_of_it
    assert same(untied, now)
    one = torch.zeros(1000, 600)
    checkpoints.read(found, {"embed": one, "head": one})
    assert same({"": one}, {"": weight})
    (folder,) = shards(tmp_path)
    theirs = blank(now)
    dcp.load(theirs, checkpoint_id=folder)
    assert same(theirs, now)
    now["head"] = weight.clone()  # from now on it is another
    assert checkpoints.save(2, now, wait=True)
    done = checkpoints.poll()
    assert done is not None
    assert done.bytes > 2.4 * 1000 * 600 * 4
    checkpoints.close()


def test_other_types_and_shapes(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    checkpoints = Checkpoints(Place(tmp_path))
    found = checkpoints.newest()
    assert found is not None
    double = {"weight": torch.zeros(3000, 2001, dtype=torch.float64)}
    checkpoints.read(found, double)
    assert torch.equal(double["weight"], tensors(1)["weight"].double())
    with pytest.raises(InvalidValue, match="'other'"):
        checkpoints.read(found, {"other": torch.zeros(1)})
    with pytest.raises(InvalidValue, match=r"shape \(3000, 2001\)"):
        checkpoints.read(found, {"weight": torch.zeros(2001, 3000)})


def test_so_many_are_kept_also_after_a_restart(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3, keep=2)
    assert manifests(tmp_path) == [2, 3]
    assert len(shards(tmp_path)) == 2
    saved(tmp_path, 4, keep=2)
    assert manifests(tmp_path) == [3, 4]
    saved(tmp_path, 5, keep=1)
    assert manifests(tmp_path) == [5]
    assert len(shards(tmp_path)) == 1
    with pytest.raises(InvalidValue, match="keep is 0"):
        Checkpoints(Place(tmp_path), keep=0)


def test_what_unfinished_saves_left_is_cleared_away(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    for step in (0, 1, 9):
        left = tmp_path / "shards" / "000000" / f"{step:020d}-dead"
        left.mkdir()
        (left / "__0_0.distcp").write_bytes(b"half")
    checkpoints = Checkpoints(Place(tmp_path))
    found = checkpoints.newest()
    assert found is not None
    checkpoints.read(found, {})
    checkpoints.tidy(60)
    assert len(shards(tmp_path)) == 1


def test_training_goes_on_while_the_old_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing eighteen gigabytes takes a disk seconds."""
    saved(tmp_path, 1, 2, 3, keep=3)
    go_on, remove = threading.Event(), files.remove

    def slow(place: Place, name: str) -> None:
        assert go_on.wait(60)
        remove(place, name)

    monkeypatch.setattr(files, "remove", slow)
    checkpoints = Checkpoints(Place(tmp_path), keep=1)
    found = checkpoints.newest()
    assert found is not None
    checkpoints.read(found, blank(tensors(3)))
    assert len(shards(tmp_path)) == 3  # and yet it is read
    go_on.set()
    checkpoints.tidy(60)
    assert len(shards(tmp_path)) == 1


def test_a_step_that_is_saved_again_replaces_the_first(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    before = shards(tmp_path)
    saved(tmp_path, 2)
    after = shards(tmp_path)
    assert manifests(tmp_path) == [1, 2]
    assert len(after) == 2
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_a_save_that_hangs_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled, go_on = threading.Event(), threading.Event()
    write = pieces.PieceFile.write

    def stalls(self: pieces.PieceFile, at: int, data: memoryview) -> None:
        stalled.set()
        go_on.wait()
        write(self, at, data)

    monkeypatch.setattr(pieces.PieceFile, "write", stalls)
    warned: list[str] = []
    checkpoints = Checkpoints(Place(tmp_path), warn=warned.append)
    assert checkpoints.save(1, tensors(1), deadline_s=0.5)
    checkpoints.gate()
    assert stalled.wait(60)
    assert not checkpoints.save(2, tensors(2))  # let the first finish
    checkpoints.prepare({"other": tensors(2)["weight"]})  # must not touch what is being written
    assert checkpoints.finish(60) is None
    assert "longer than" in warned[-1]
    assert not checkpoints.save(3, tensors(3))  # it still hangs
    assert "hangs" in warned[-1]
    assert manifests(tmp_path) == []
    go_on.set()
    while not checkpoints.save(4, tensors(4)):
        go_on.wait(0.01)
    done = checkpoints.finish(60)
    assert done is not None
    assert done.step == 4
    checkpoints.close()
    assert [path.name[:20] for path in shards(tmp_path)] == [f"{4:020d}"]


def test_how_long_it_would_take(tmp_path: Path) -> None:
    checkpoints = Checkpoints(Place(tmp_path))
    assert checkpoints.would_take_s() == 0.0
    checkpoints.prepare(tensors())
    guessed = checkpoints.would_take_s()
    assert guessed > 0
    assert checkpoints.save(1, tensors(), wait=True, deadline_s=60)
    assert checkpoints.would_take_s() != guessed


def test_no_room_is_said(tmp_path: Path) -> None:
    (tmp_path / "shards").write_text("a file where a folder should be")
    warned: list[str] = []
    checkpoints = Checkpoints(Place(tmp_path), warn=warned.append)
    assert not checkpoints.save(1, tensors(), wait=True)
    assert str(tmp_path / "shards") in warned[-1]
    assert checkpoints.poll() is None


def test_a_step_that_is_saved_again_in_one_life_leaves_the_first_alone(tmp_path: Path) -> None:
    """Until the second is whole: it may be killed while it writes."""
    checkpoints = Checkpoints(Place(tmp_path), keep=1)
    assert checkpoints.save(2, tensors(1), wait=True)
    (first,) = shards(tmp_path)
    assert checkpoints.save(2, tensors(2), wait=True)
    checkpoints.close()
    (second,) = shards(tmp_path)
    assert first != second
    assert manifests(tmp_path) == [2]


def test_what_changes_while_it_is_copied_is_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    copy = stage._into

    def slow(arena: Any, entry: Any, each: Any) -> None:
        if entry.part.name == "weight":
            go_on.wait(60)
        copy(arena, entry, each)

    monkeypatch.setattr(stage, "_into", slow)
    warned: list[str] = []
    checkpoints = Checkpoints(Place(tmp_path), warn=warned.append)
    now = tensors(1)
    assert checkpoints.save(1, now)
    now["weight"] += 1  # with no gate before it
    go_on.set()
    assert checkpoints.finish(60) is None
    assert "weight was changed before the next optimizer step" in warned[0]
    assert checkpoints.save(2, now)  # from now on it is copied before this returns
    before = {name: tensor.clone() for name, tensor in now.items()}
    now["weight"] += 1
    assert checkpoints.finish(60) is not None
    found = checkpoints.newest()
    assert found is not None
    checkpoints.read(found, now)
    assert same(now, before)
    checkpoints.close()


def test_saves_that_fail_keep_no_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(Place(tmp_path), warn=len)
    assert checkpoints.save(1, tensors(1), wait=True)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for what in ("allocate", "_write"):
        monkeypatch.setattr(pieces, what, full)
        for step in (2, 3):
            assert not checkpoints.save(step, tensors(1), wait=True)
        monkeypatch.undo()
    checkpoints.close()
    assert manifests(tmp_path) == [1]
    handles = Path("/proc/self/fd").iterdir()
    paths = [os.path.realpath(each) for each in handles]
    assert not [path for path in paths if path.startswith(str(tmp_path)) and ".distcp" in path]


def test_skipped_saves_are_said_ever_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    write = pieces.PieceFile.write

    def stalls(self: pieces.PieceFile, at: int, data: memoryview) -> None:
        go_on.wait(60)
        write(self, at, data)

    monkeypatch.setattr(pieces.PieceFile, "write", stalls)
    warned: list[str] = []
    checkpoints = Checkpoints(Place(tmp_path), warn=warned.append)
    assert checkpoints.save(1, tensors(1))
    assert not any(checkpoints.save(step, tensors(1)) for step in range(2, 14))
    go_on.set()
    checkpoints.close()
    assert [words.split()[1] for words in warned] == ["2", "3", "5", "9"]
    assert "(8 were skipped so far)" in warned[-1]


def test_who_only_looks_removes_nothing(tmp_path: Path) -> None:
    """Neither by reading a part of it, which says nothing about the rest, nor where another job is
    saving just now."""
    saved(tmp_path, 1, 2, 3, keep=3)
    under_way = tmp_path / "shards" / "000000" / f"{4:020d}-other-000001"
    under_way.mkdir()
    reader = Checkpoints(Place(tmp_path), keep=1)
    found = reader.newest(tidy=False)
    assert found is not None
    reader.read(found, blank(tensors(1)))
    assert under_way.exists()
    assert manifests(tmp_path) == [1, 2, 3]
    found = reader.newest()
    assert found is not None
    reader.read(found, {})
    reader.tidy(60)
    assert manifests(tmp_path) == [1, 2, 3]
    assert not under_way.exists()
    reader.read(found, blank(tensors(1)))
    reader.tidy(60)
    assert manifests(tmp_path) == [3]
