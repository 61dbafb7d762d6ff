from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind import store
from tradewind.base.errors import BadFile, InvalidValue, SourceFailed, TooLarge
from tradewind.journal import journal
from tradewind.model import bounds
from tradewind.model.event import CancelAsked, Commit, Event, Progress
from tradewind.store.local import LocalStore
from tradewind.store.memory import MemoryStore

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEY = "runs/r1/journal/{:020d}.json"


def noted(words: object) -> Event:
    return CancelAsked(reason=str(words))


def put(where: store.Store, number: int, *events: Event, writer: str = "w1") -> bool:
    chosen = events or (noted(number),)
    return journal.append(where, "r1", number, writer=writer, at=AT, events=chosen)


def test_what_was_committed_is_read() -> None:
    where = MemoryStore()
    assert journal.read(where, "r1") == []
    events = (noted("ü"), Progress(leg=1, step=2.5, saved=0.0))
    assert put(where, 1, *events)
    assert put(where, 2, writer="w2")
    first, second = journal.read(where, "r1")
    assert first == Commit(journal.FORMAT, 1, "w1", AT, events)
    assert (second.number, second.writer) == (2, "w2")
    assert journal.read(where, "r1", after=1) == [second]
    assert journal.read(where, "r1", after=2) == []
    assert [journal.one(where, "r1", number) for number in (2, 3)] == [second, None]
    assert where.list_after("") == [KEY.format(1), KEY.format(2)]


def test_whoever_is_first_wins() -> None:
    where = MemoryStore()
    assert put(where, 1, writer="w1")
    assert not put(where, 1, writer="w2")
    assert journal.read(where, "r1")[0].writer == "w1"


def test_a_lost_acknowledgement_is_recognised() -> None:
    where = MemoryStore()
    assert put(where, 1)
    assert put(where, 1)  # the same writer, number and content
    assert not put(where, 1, noted("other"))
    assert len(journal.read(where, "r1")) == 1


def test_bad_arguments() -> None:
    where, events = MemoryStore(), [noted("a")]
    for run, number, writer, at in (
        ("r/1", 1, "w", AT), ("", 1, "w", AT), ("..", 1, "w", AT), ("r", 0, "w", AT),
        ("r", -1, "w", AT), ("r", 1, "", AT), ("r", 1, "w", AT.replace(tzinfo=None)),
    ):  # fmt: skip
        with pytest.raises(InvalidValue):
            journal.append(where, run, number, writer=writer, at=at, events=events)
    with pytest.raises(InvalidValue):
        journal.append(where, "r", 1, writer="w", at=AT, events=[])
    assert where.list_after("") == []


def commit(**more: Any) -> bytes:
    whole = {
        "format": 1,
        "number": 1,
        "writer": "w",
        "at": AT.isoformat(),
        "events": [{"type": "cancel_asked", "reason": "a"}],
    }
    return json.dumps(whole | more).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (commit()[:-5], "damaged"),
        (b"", "damaged"),
        (b"\xff\xfe\x00", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"[]", "no commit"),
        (b'{"format": 1}', "no commit"),
        (commit(format=journal.FORMAT + 1), "upgrade"),
        (commit(format=0), "no commit"),
        (commit(format="1"), "no commit"),
        (commit(number=2), "says that it is number 2"),
        (commit(at="noon"), "no commit"),
        (commit(at="2026-11-15T12:00"), "no commit"),
        (commit(writer=None), "no commit"),
        (commit(events=None), "no commit"),
        (commit(events="ab"), "no commit"),
        (commit(events=[]), "no commit"),
        (commit(events=[{"kind": "a"}]), "upgrade"),
        (commit(events=[{"type": "unheard_of"}]), "unheard_of"),
        (commit(events=[{"type": "unheard_of"}]), "upgrade"),
        (commit(events=[{"type": "cancel_asked", "reason": "a", "more": 1}]), "more"),
        (commit(events=[{"type": "cancel_asked", "reason": 1}]), "upgrade"),
        (commit(more=1), "no commit"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, words: str) -> None:
    where = MemoryStore()
    where.replace(KEY.format(1), data)
    with pytest.raises(BadFile) as raised:
        journal.read(where, "r1")
    assert words in str(raised.value)
    assert KEY.format(1) in str(raised.value)


def test_gaps_and_strangers() -> None:
    where = MemoryStore()
    for number in (1, 2, 3):
        put(where, number)
    where.delete(KEY.format(2))
    with pytest.raises(BadFile, match=KEY.format(2) + " is missing"):
        journal.read(where, "r1")
    assert [c.number for c in journal.read(where, "r1", after=2)] == [3]
    put(where, 2)
    where.replace("runs/r1/journal/notes.txt", b"")
    with pytest.raises(BadFile, match=r"notes\.txt"):
        journal.read(where, "r1")


def test_a_listing_that_missed_one() -> None:
    """Reading a folder while others write into it may show a later file and not an earlier one."""

    class Missing(MemoryStore):
        def list_after(self, prefix: str, after: str = "") -> list[str]:
            return [k for k in super().list_after(prefix, after) if k != KEY.format(2)]

    where = Missing()
    for number in (1, 2, 3):
        put(where, number)
    assert [c.number for c in journal.read(where, "r1")] == [1, 2, 3]


class Faulty(MemoryStore):
    """Writes that fail before or after they are done, as told."""

    def __init__(self, plan: Sequence[str]) -> None:
        super().__init__()
        self.plan = list(plan)

    def create(self, key: str, data: bytes) -> bool:
        fate = self.plan.pop(0) if self.plan else "well"
        if fate == "before":
            raise SourceFailed("lost on the way there")
        done = super().create(key, data)
        if fate == "after":
            raise SourceFailed("lost on the way back")
        return done


class Writer:
    """Wants to commit its own events, once each and in order, among others that do the same."""

    def __init__(self, name: str, where: store.Store, many: int) -> None:
        self.name, self.where, self.left = name, where, list(range(many))
        self.seen = 0

    def step(self, *, reread: bool) -> None:
        if reread:
            self.seen += len(journal.read(self.where, "r1", self.seen))
        if not self.left:
            return
        event = noted(f"{self.name} {self.left[0]}")
        try:
            won = journal.append(
                self.where, "r1", self.seen + 1, writer=self.name, at=AT, events=[event]
            )
        except SourceFailed:
            return  # unknown: the same again next time
        if won:
            self.left.pop(0)
            self.seen += 1
        else:
            self.seen += len(journal.read(self.where, "r1", self.seen))


@given(
    turns=st.lists(st.integers(0, 1), max_size=60),
    faults=st.lists(st.sampled_from(["well", "before", "after"]), max_size=40),
)
def test_two_writers_never_lose_or_double_a_commit(turns: list[int], faults: list[str]) -> None:
    where = Faulty(faults)
    writers = [Writer("w0", where, 6), Writer("w1", where, 6)]
    for turn in turns:
        writers[turn].step(reread=False)
    while any(writer.left for writer in writers):
        for writer in writers:
            writer.step(reread=False)
    commits = journal.read(where, "r1")
    assert [c.number for c in commits] == list(range(1, 13))
    for name in ("w0", "w1"):
        mine = [c.events[0] for c in commits if c.writer == name]
        assert mine == [noted(f"{name} {n}") for n in range(6)]


def test_writers_at_once_in_a_folder(tmp_path: Path) -> None:
    def work(name: str) -> None:
        writer = Writer(name, LocalStore(tmp_path), 25)
        while writer.left:
            writer.step(reread=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    commits = journal.read(LocalStore(tmp_path), "r1")
    for name in "abcd":
        mine = [c.events[0] for c in commits if c.writer == name]
        assert mine == [noted(f"{name} {n}") for n in range(25)]
    assert len(commits) == 100


def test_a_commit_is_no_larger_than_what_is_read() -> None:
    where = MemoryStore()
    with pytest.raises(InvalidValue, match="a commit would have"):
        put(where, 1, noted("x" * bounds.COMMIT))
    assert where.list_after("") == []
    assert put(where, 1, noted("x" * (bounds.COMMIT - 1000)))
    assert len(journal.read(where, "r1")) == 1
    where.replace(KEY.format(2), b" " * (bounds.COMMIT + 1))
    for read in (
        lambda: journal.read(where, "r1"),
        lambda: journal.read(where, "r1", 1),
        lambda: journal.one(where, "r1", 2),
        lambda: put(where, 2),
    ):
        with pytest.raises(TooLarge, match=r"00000002\.json"):
            read()


def test_a_volume_is_no_larger_than_what_is_read() -> None:
    """A journal of large commits is read one by one."""
    where = MemoryStore()
    many = journal.VOLUME
    for number in range(1, many + 1):
        assert put(where, number, noted("x" * (bounds.VOLUME // many)))
    journal.bind(where, "r1", many)
    assert where.list_after("runs/r1/volumes/") == []
    assert len(journal.read(where, "r1")) == many


def test_reading_takes_time_in_proportion(tmp_path: Path) -> None:
    """Ten times the commits, not a hundred times the time; and what is new costs what is new."""
    where = LocalStore(tmp_path)
    folder = tmp_path / "runs" / "r1" / "journal"
    folder.mkdir(parents=True)
    for number in range(1, 5001):
        data = commit(number=number, at=(AT + timedelta(seconds=number)).isoformat())
        (folder / f"{number:020d}.json").write_bytes(data)

    def taken(after: int) -> float:
        def once() -> float:
            start = time.perf_counter()
            assert len(journal.read(where, "r1", after)) == 5000 - after
            return time.perf_counter() - start

        return min(once() for _ in range(3))

    whole, tenth = taken(0), taken(4500)
    assert whole < 40 * tenth
    assert tenth < whole
