"""Whether somebody looks after runs is told by signs, and nobody is accused without."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tradewind.base import clock
from tradewind.controller import persist
from tradewind.controller.loop import LEASE
from tradewind.store.local import LocalStore
from tradewind.store.memory import MemoryStore
from tradewind.upkeep.attended import LONG_S, SOON_S, attention, is_alone

SIGN = b'{"writer":"w","count":1,"pass_s":10.0}'


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    (tmp_path / "store").mkdir()
    return LocalStore(tmp_path / "store")


@pytest.fixture
def since() -> datetime:
    return clock.now() - timedelta(seconds=LONG_S + 10)


def grown_old(path: Path, by_s: float = LONG_S + 10) -> None:
    at = path.stat().st_mtime - by_s
    os.utime(path, (at, at))


def test_nobody_ever_did(store: LocalStore, since: datetime) -> None:
    assert attention(store).ago_s is None
    assert is_alone(store, since)
    assert not is_alone(store, clock.now())  # it has only just been written to


def test_a_sign_that_is_renewed(store: LocalStore, since: datetime, tmp_path: Path) -> None:
    store.replace(LEASE, SIGN)
    assert not is_alone(store, since)
    grown_old(tmp_path / "store" / LEASE)
    assert is_alone(store, since)
    assert store.list_after("") == [LEASE]


def test_ticks_of_this_computer(store: LocalStore, since: datetime, tmp_path: Path) -> None:
    path = persist.place(tmp_path / "home", store.url)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert not is_alone(store, since)
    grown_old(path)
    assert is_alone(store, since)


def test_one_that_watched_and_was_killed_is_missed_soon(
    store: LocalStore, since: datetime, tmp_path: Path
) -> None:
    store.replace(LEASE, SIGN)
    remembered = persist.place(tmp_path / "home", store.url)
    remembered.parent.mkdir(parents=True)
    remembered.write_bytes(b"")  # at the end of the pass that its sign was renewed for
    assert not is_alone(store, since)
    for path in (tmp_path / "store" / LEASE, remembered):
        grown_old(path, SOON_S + 1)
    assert is_alone(store, since)
    assert attention(store).is_overdue
    assert not is_alone(store, clock.now())
    remembered.write_bytes(b"")  # ticks came after it
    assert not is_alone(store, since)


def test_a_sign_that_cannot_be_read_is_none(store: LocalStore, since: datetime) -> None:
    store.replace(LEASE, b"[")
    assert is_alone(store, since)


def test_where_it_cannot_be_told_nobody_is_accused(since: datetime) -> None:
    assert not is_alone(MemoryStore(), since)
