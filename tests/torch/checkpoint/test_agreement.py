"""Several ranks: a checkpoint exists for all of them, or for none."""

from __future__ import annotations

import json
import pickle
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from tests.torch.checkpoint.states import blank, manifests, same, shards, tensors
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.torch.checkpoint import Checkpoints, Group, Place, pieces
from tradewind.torch.checkpoint.commit import Commit, Report
from tradewind.torch.checkpoint.manifest import of_rank
from tradewind.torch.messages import BadMessage, encoded


class Ranks:
    """Of one process, each called by a thread of its own."""

    def __init__(self, folder: Path, world: int, **options: Any) -> None:
        store = dist.HashStore()
        self.warned: list[list[str]] = [[] for _ in range(world)]
        self.all = [
            Checkpoints(
                Place(folder),
                rank=rank,
                world=world,
                group=Group(store, rank, world),
                warn=self.warned[rank].append,
                **options,
            )
            for rank in range(world)
        ]

    def each(self, work: Callable[[Checkpoints], Any]) -> list[Any]:
        with ThreadPoolExecutor(len(self.all)) as pool:
            return list(pool.map(work, self.all))

    def save(self, step: int, **options: Any) -> list[bool]:
        return self.each(
            lambda each: each.save(
                step, tensors(step), {"own": torch.tensor([each.rank])}, b"", b"", **options
            )
        )


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_plain_tensors_are_written_once_in_shares(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 3)
    assert ranks.save(1, wait=True) == [True] * 3
    (folder,) = shards(tmp_path)
    sizes = [path.stat().st_size for path in sorted(folder.glob("*.distcp"))]
    total = sum(t.numel() * t.dtype.itemsize for t in tensors(1).values())
    assert total < sum(sizes) < total + 50_000
    assert max(sizes) - min(sizes) < total / 10

    there = {name: torch.zeros(t.shape, dtype=t.dtype) for name, t in tensors(1).items()}
    dcp.load(there, checkpoint_id=folder)
    assert same(there, tensors(1))

    def read(each: Checkpoints) -> None:
        found = each.newest()
        assert found is not None
        there = blank(tensors(1))
        restored = each.read(found, there)
        assert same(there, tensors(1))
        assert int(restored.own["own"]) == each.rank

    ranks.each(read)


def test_one_that_cannot_write_undoes_it_for_all(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path / "c", 2)
    assert ranks.save(1, wait=True) == [True, True]
    other = tmp_path / "in the way"
    other.write_text("")
    good, ranks.all[1].place.files = ranks.all[1].place.files, other
    assert ranks.save(2, wait=True) == [False, False]
    assert all("rank 1" in warned[-1] and str(other) in warned[-1] for warned in ranks.warned)
    assert {each.poll().step for each in ranks.all} == {1}  # type: ignore[union-attr]
    ranks.all[1].place.files = good
    assert ranks.save(3, wait=True) == [True, True]
    ranks.each(lambda each: each.close())
    assert manifests(tmp_path / "c") == [1, 3]
    assert len(shards(tmp_path / "c")) == 2


def test_ranks_that_do_not_share_a_folder_are_told(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path / "c", 2)
    ranks.all[1].place.files = tmp_path / "elsewhere"
    assert ranks.save(1, wait=True) == [False, False]
    assert "same folder" in ranks.warned[0][-1]
    assert ranks.each(lambda each: each.newest()) == [None, None]


def test_one_that_skips_or_is_gone(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 2)
    first, second = ranks.all
    second._saver.skip(second._saver.next(1, 60, hurry=False), "it is busy")
    assert not first.save(1, tensors(1), wait=True)
    assert "rank 1 skips it: it is busy" in ranks.warned[0][-1]
    assert not first.save(2, tensors(2), wait=True, deadline_s=2)  # the second never says a word
    assert "rank 1 did not say" in ranks.warned[0][-1]
    assert manifests(tmp_path) == []


def test_one_that_is_slow_does_not_make_them_fail_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rank 1 still writes step 1, rank 0 begins step 2 in vain: it must let go of it at once,
    and not be the one that is busy when step 3 is due."""
    go_on = {1: threading.Event(), 0: threading.Event()}
    write = pieces.PieceFile.write

    def slowly(self: pieces.PieceFile, at: int, data: memoryview) -> None:
        if "__1_" in self.path.name:
            go_on[1].wait()
        elif "2-" in self.path.parent.name:  # the one in vain
            go_on[0].wait(1.0)
        write(self, at, data)

    monkeypatch.setattr(pieces.PieceFile, "write", slowly)
    ranks = Ranks(tmp_path, 2)
    first, second = ranks.all
    assert ranks.save(1) == [True, True]
    ranks.each(lambda each: each.gate())
    assert first._saver.job is not None
    assert first._saver.job.free.wait(60)
    assert first.save(2, tensors(2))
    assert not second.save(2, tensors(2))
    vain = first._saver.job
    go_on[1].set()
    assert vain.free.wait(60)
    assert ranks.each(lambda each: each.finish(60))
    assert "rank 1 skips it" in ranks.warned[0][-1]
    assert ranks.save(3, wait=True) == [True, True]
    ranks.each(lambda each: each.close())
    assert manifests(tmp_path) == [1, 3]


def test_what_rank_0_cannot_look_up_is_told_to_all(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path / "c", 2)
    assert ranks.save(1, wait=True) == [True, True]
    path = next((tmp_path / "c" / "checkpoints").rglob("*.json"))
    words = json.loads(path.read_bytes())
    del words["manifest_crc32"]
    body = json.dumps({**words, "format": 2})
    path.write_text(f'{body[:-1]}, "manifest_crc32": {zlib.crc32(body.encode())}}}')

    def newest(each: Checkpoints) -> str:
        with pytest.raises(TradewindError) as error:
            each.newest()
        return str(error.value)

    assert all("format 2" in words for words in ranks.each(newest))


def test_a_verdict_that_is_not_heard_is_looked_up(tmp_path: Path) -> None:
    """Rank 0 commits and is gone before it says so: what exists is asked of the manifests."""
    ranks = Ranks(tmp_path, 2)
    leave = Group.leave

    def mute(self: Group, key: str, words: Any) -> None:
        if not key.endswith("verdict"):
            leave(self, key, words)

    first, second = ranks.all
    assert first._group is not None
    first._group.leave = mute.__get__(first._group)  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(first.save, 1, tensors(1), wait=True)
        second._limit_s = 1.0
        from tradewind.torch.checkpoint import saver

        job = second._saver.next(1, 3.0, hurry=False)
        spare, saver.SPARE_S = saver.SPARE_S, 2.0
        try:
            second._saver.begin(job, tensors(1), {}, {"mine": b""}, ())
            assert saving.result()
            assert job.over.wait(60)
        finally:
            saver.SPARE_S = spare
    done = second.poll()
    assert done is not None
    assert done.step == 1


def test_a_verdict_that_nobody_gave_is_no_save(tmp_path: Path) -> None:
    """Rank 0 is gone before it commits: what has no manifest does not exist."""
    group = Group(dist.HashStore(), 1, 2)
    commit = Commit(Place(tmp_path), group, 1, 1, "1-life-1", 2)
    said = commit.agree(Report(file=of_rank(1)), 0.1, 0.1)
    assert said == "rank 0 did not say whether all ranks have saved it"


def test_damage_that_one_rank_sees_moves_all_of_them(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 2)
    assert ranks.save(1, wait=True) == [True, True]
    assert ranks.save(2, wait=True) == [True, True]
    path = shards(tmp_path)[-1] / "__1_0.distcp"
    data = bytearray(path.read_bytes())
    data[-100] ^= 8  # among what is rank 1's own
    path.write_bytes(data)

    def read(each: Checkpoints) -> int:
        found = each.newest()
        assert found is not None
        # Rank 0 asks for nothing that lies in the damaged file.
        names = ["nothing"] if each.rank == 0 else list(tensors(1))
        return each.read(found, {name: tensors(1)[name] for name in names}).found.step

    assert ranks.each(read) == [1, 1]


def test_a_wrong_state_of_one_rank_is_told_to_all(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, 2)
    assert ranks.save(1, wait=True) == [True, True]

    def read(each: Checkpoints) -> str:
        found = each.newest()
        assert found is not None
        wanted = {"weight" if each.rank == 0 else "no such": tensors(1)["weight"]}
        with pytest.raises((InvalidValue, BadFile, Exception)) as error:
            each.read(found, wanted)
        return str(error.value)

    first, second = ranks.each(read)
    assert "another rank" in first
    assert "'no such'" in second


def test_several_ranks_need_a_group(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="own_group"):
        Checkpoints(Place(tmp_path), world=2)


def test_nobody_waits_for_words_when_the_process_ends() -> None:
    """A thread that is in the store's code when Python ends makes the process abort."""
    group = Group(dist.HashStore(), 1, 2)
    waiting = threading.Thread(target=group.wait, args=("never", str, 1000.0), daemon=True)
    waiting.start()
    group.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_verdict_stays_until_the_last_rank_has_read_it(tmp_path: Path) -> None:
    """Rank 1 is so late that it still waits for it when it must skip another save."""
    store = dist.HashStore()
    groups = [Group(store, rank, 2) for rank in range(2)]

    def commit(rank: int, number: int) -> Commit:
        return Commit(Place(tmp_path), groups[rank], number, number, f"save-{number}", 2)

    def words(rank: int, trouble: str = "no disk") -> Report:
        return Report(trouble, of_rank(rank))

    groups[1].leave("save/1/1", words(1))
    assert "no disk" in commit(0, 1).agree(words(0), 5.0, 5.0)
    groups[1].leave("save/3/1", Report("rank 1 skips it"))
    whole = words(0, "")
    assert "skips it" in commit(0, 3).agree(whole, 5.0, 5.0)
    assert "no disk" in commit(1, 1).agree(words(1), 0.0, 0.0)
    # And when all have come that far, nothing of it stays for ever.
    groups[1].leave("save/4/1", words(1, ""))
    commit(0, 4).agree(whole, 5.0, 5.0)
    assert [groups[0].look(f"save/{number}/verdict", Report) is None for number in (1, 3)] == [
        True,
        False,
    ]
    assert groups[0].look("save/1/1", Report) is None


@pytest.mark.parametrize(
    "said",
    [
        pickle.dumps(Path("/")),
        b"",
        b"\xff",
        b"\xa1\xff",
        b"\x91" * 100_000,
        encoded([1, 2]),
        encoded({"trouble": 3}),
        encoded(Report("", "../../elsewhere")),
    ],
)
def test_a_rank_that_leaves_nonsense_fails_the_save_for_all(tmp_path: Path, said: bytes) -> None:
    store = dist.HashStore()
    groups = [Group(store, rank, 2) for rank in range(2)]
    store.set("save/1/1", said)
    commits = [Commit(Place(tmp_path), group, 1, 1, "save-1", 2) for group in groups]
    trouble = commits[0].agree(Report("", of_rank(0)), 5.0, 5.0)
    assert "rank 1" in trouble
    assert commits[1].agree(Report("", of_rank(1)), 0.0, 0.0) == trouble
    assert not manifests(tmp_path)


def test_reading_takes_nonsense_of_a_rank_as_its_silence() -> None:
    store = dist.HashStore()
    groups = [Group(store, rank, 2) for rank in range(2)]
    store.set("read/1/1", b"\xff")
    first = groups[0].gather("read/1", ("", False), tuple[str, bool], 5.0)
    assert first == [("", False), None]
    store.set("read/2/all", b"\xff")
    with pytest.raises(BadMessage, match="another rank sent 1 bytes that are not a message"):
        groups[1].gather("read/2", ("", False), tuple[str, bool], 5.0)


def test_files_get_no_name_from_another_rank_that_leads_elsewhere(tmp_path: Path) -> None:
    store = dist.HashStore()
    warned: list[str] = []
    group = Group(store, 1, 2)
    group.leave("life", "../../elsewhere")
    ranks = Checkpoints(Place(tmp_path), rank=1, world=2, group=group, warn=warned.append)
    assert not ranks.save(1, tensors(1), {}, b"", b"", wait=True)
    assert any("rank 0 sent" in words for words in warned)
    assert not list(tmp_path.rglob("*.distcp"))
