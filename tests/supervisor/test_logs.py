from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.supervisor.machines import until
from tradewind.base.errors import SourceFailed
from tradewind.model import places
from tradewind.store.memory import MemoryStore
from tradewind.supervisor.logs import PIECE, Shipper, Spool, read_logs, shipped

WAITS_S = 0.05


class Flaky(MemoryStore):
    """Fails every other create: before it is done, or after."""

    def __init__(self) -> None:
        super().__init__()
        self.creates = 0

    def create(self, key: str, data: bytes) -> bool:
        self.creates += 1
        if self.creates % 4 == 1:
            raise SourceFailed("before")
        done = super().create(key, data)
        if self.creates % 4 == 3:
            raise SourceFailed("after")
        return done


def sent(store: MemoryStore) -> bytes:
    return read_logs(store, "run-1", 1, 0, most=1 << 40)


def test_nothing_is_lost_or_doubled_by_a_store_that_fails(tmp_path: Path) -> None:
    store, spool = Flaky(), Spool(tmp_path / "spool")
    shipper = Shipper(spool, store, "run-1", 1, 0, wait_s=WAITS_S)
    expected = b""
    for n in range(30):
        data = b"%d" % (n % 10) * (n * 20_000)
        os.write(spool.handle, data)
        expected += data
    assert shipper.flush(60)
    assert sent(store) == expected
    os.write(spool.handle, b"more")
    until(lambda: sent(store) == expected + b"more")  # by itself
    shipper.close()


def test_another_shipper_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "spool")
    first = Shipper(spool, store, "run-1", 1, 0, wait_s=WAITS_S)
    spool.remark("one")
    assert first.flush(60)
    first.close()
    spool.remark("two")
    second = Shipper(Spool(tmp_path / "spool"), store, "run-1", 1, 0, wait_s=WAITS_S)
    assert second.flush(60)
    second.close()
    assert sent(store) == b"tradewind: one\ntradewind: two\n"
    (tmp_path / "spool").unlink()  # the disk was lost, the store was not
    fresh = Spool(tmp_path / "spool")
    third = Shipper(fresh, store, "run-1", 1, 0, wait_s=WAITS_S)
    until(lambda: fresh.size)
    fresh.remark("three")
    assert third.flush(60)
    third.close()
    assert sent(store) == b"tradewind: one\ntradewind: two\ntradewind: three\n"
    assert shipped(store, places.logs("run-1", 1, 0)) == len(sent(store))


@pytest.mark.parametrize("after", [0, 1, 4, 5, PIECE - 1, PIECE, PIECE + 9, 3 * PIECE])
def test_reading_from_the_middle(after: int) -> None:
    store = MemoryStore()
    whole = bytes(range(256)) * (2 * PIECE // 256)
    for start, end in ((0, 5), (5, 5 + PIECE), (5 + PIECE, 2 * PIECE)):
        store.create(places.log_piece("run-1", 1, 0, start), whole[start:end])
    store.create(places.log_piece("run-1", 1, 1, 0), b"another machine's")
    assert read_logs(store, "run-1", 1, 0, after) == whole[after:]
    assert whole[after:].startswith(read_logs(store, "run-1", 1, 0, after, most=10))


def test_a_gap_is_not_jumped() -> None:
    store = MemoryStore()
    store.create(places.log_piece("run-1", 1, 0, 0), b"one")
    store.create(places.log_piece("run-1", 1, 0, 5), b"three")
    assert sent(store) == b"one"


def test_the_tail_is_the_last_lines_of_this_try(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    os.write(spool.handle, b"".join(b"old %d\n" % n for n in range(100)))
    since = spool.size
    assert spool.tail(since) == ""
    os.write(spool.handle, b"a\nb \xff\n")
    assert spool.tail(since) == "a\nb \ufffd"
    assert spool.tail().count("\n") == 39
    os.write(spool.handle, b"x" * 1_000_000)
    assert spool.tail(since) == "x" * 4096


def test_what_was_sent_takes_no_room_on_the_disk(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "spool")
    shipper = Shipper(spool, store, "run-1", 1, 0, wait_s=WAITS_S)
    expected = b"".join(b"%015d\n" % n for n in range(1_000_000))
    for start in range(0, len(expected), 1 << 20):
        os.write(spool.handle, expected[start : start + (1 << 20)])
    assert shipper.flush(60)
    until(lambda: (tmp_path / "spool").stat().st_blocks * 512 < 4_000_000)
    assert spool.size == len(expected)
    assert spool.tail().endswith("999999")
    os.write(spool.handle, b"more\n")
    assert shipper.flush(60)
    shipper.close()
    assert sent(store) == expected + b"more\n"
    assert shipped(store, places.logs("run-1", 1, 0)) == len(expected) + 5


def test_pieces_that_another_run_has_put_there_do_not_stop_a_log(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "spool")
    store.create(places.log_piece("run-1", 1, 0, 10**19), b"far away")
    store.create(places.log_piece("run-1", 1, 0, 0), b"x" * (PIECE + 1))
    shipper = Shipper(spool, store, "run-1", 1, 0, wait_s=WAITS_S)
    spool.remark("one")
    assert shipper.flush(60)
    shipper.close()
    assert sent(store) == b"tradewind: one\n"


def test_a_job_s_own_files_beside_the_pieces_are_none(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "spool")
    for name in ("0", "notes.txt", "zzz"):
        store.create(places.logs("run-1", 1, 0) + name, b"litter")
    os.write(spool.handle, b"words\n")
    shipper = Shipper(spool, store, "run-1", 1, 0, wait_s=WAITS_S)
    assert shipper.flush(60)
    shipper.close()
    assert sent(store) == b"words\n"
