from __future__ import annotations

from pathlib import Path

import pytest

import tradewind
from tests.ledger.making import HOUR_S, NOON_S, events_of
from tests.lifecycle.builders import AT, WAY
from tradewind.base.errors import BadFile, NotFound
from tradewind.bench.slow import Slow
from tradewind.journal import journal, runs_store
from tradewind.model import places
from tradewind.store import Store
from tradewind.store.local import LocalStore
from tradewind.store.memory import MemoryStore
from tradewind.upkeep.sweep import unsubmitted


def put(store: Store, run_id: str) -> None:
    events = events_of(run_id, NOON_S - HOUR_S, (WAY, 60), outcome="")
    for number, event in enumerate(events, 1):
        assert journal.append(store, run_id, number, writer="w", at=AT, events=[event])


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path)


def test_runs_live_and_closed(store: Store) -> None:
    assert runs_store.run_ids(store) == []
    for name in ("run-b", "run-a"):
        put(store, name)
    store.create("live/run-b", b"{}")
    store.create("runs/run-b/checkpoints/000001/5.json", b"")
    store.create("kits/x/y", b"")
    assert runs_store.run_ids(store) == ["run-a", "run-b"]
    assert runs_store.live_ids(store) == ["run-b"]


def test_folders_that_cannot_be_runs(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    put(store, "run-a")
    odd = ["with space", "-option", "\x1b[2J", "a\nb", "ünï", "end-", "x~2", "a" * 201, ".hidden"]
    for name in odd:
        (tmp_path / "runs" / name / "logs").mkdir(parents=True)
        (tmp_path / "runs" / name / "logs" / "x").write_bytes(b"")
    (tmp_path / "live").mkdir()
    for name in ("run-a", "with space", "x y~2"):
        (tmp_path / "live" / name).write_bytes(b"{}")
    assert runs_store.run_ids(store) == ["run-a"]
    assert runs_store.live_ids(store) == ["run-a"]
    assert runs_store.other_folders(store) == sorted(odd)
    assert unsubmitted(store) == []


def test_one_run(store: Store) -> None:
    put(store, "run-a")
    loaded = runs_store.load(store, "run-a")
    assert loaded.state.run_id == "run-a"
    assert len(loaded.commits) == loaded.state.number == len(list(loaded.events))
    assert runs_store.load(store, "run-none").commits == []


def test_a_damaged_run_stops_no_other(store: Store) -> None:
    ids = [f"run-{n}" for n in range(9)]
    for name in ids:
        put(store, name)
    store.replace(f"runs/run-4/journal/{2:020d}.json", b"{")
    seen = []
    loaded, troubles = runs_store.load_all(
        store, ids, workers=3, progress=lambda done, total: seen.append((done, total))
    )
    assert [one.run_id for one in loaded] == [name for name in ids if name != "run-4"]
    ((name, error),) = troubles
    assert name == "run-4"
    assert isinstance(error, BadFile)
    assert seen == [(n + 1, 9) for n in range(9)]
    assert runs_store.load_all(store, []) == ([], [])


def test_names_of_runs_are_listed_without_what_they_wrote() -> None:
    memory = MemoryStore()
    for run in range(50):
        for piece in range(100):
            memory.create(f"runs/run-{run}/logs/{piece}", b"")
    store = Slow(memory, 0.0)
    assert len(runs_store.run_ids(store)) == 50
    assert store.requests() == 1


IDS = ["run-01a-x", "run-01a-y", "run-01b-z", "run-02"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("run-01a-x", "run-01a-x"), ("run-01b", "run-01b-z"), ("run-02", "run-02")],
)
def test_a_run_is_found_by_the_beginning_of_its_id(name: str, meant: str) -> None:
    assert runs_store.find(IDS, name) == meant
    assert runs_store.find(["run-1", "run-10"], "run-1") == "run-1"


@pytest.mark.parametrize(
    ("ids", "name", "words"),
    [
        (IDS, "run-01a", "may be any of 2 runs: run-01a-x, run-01a-y"),
        ([f"r{n}" for n in range(9)], "r", "r4 and 4 more"),
        (IDS, "run-01c-z", "did you mean run-01b-z"),
        (IDS, "zzz", "the newest is run-02"),
        (IDS, "", "there is no run ''"),
        ([], "run-1", "there are no runs in this store"),
    ],
)
def test_a_run_that_is_not_there(ids: list[str], name: str, words: str) -> None:
    with pytest.raises(NotFound, match=words):
        runs_store.find(ids, name)


def test_by_age_whatever_their_names(store: Store) -> None:
    old, new = "zebra-019000000000-abcdef", "ant-019100000000-abcdef"
    put(store, old)
    put(store, new)
    assert runs_store.run_ids(store) == [new, old]
    assert runs_store.by_age(runs_store.run_ids(store)) == [old, new]
    assert [run.id for run in tradewind.runs(store)] == [old, new]


def test_only_the_newest_are_asked_whether_they_were_submitted() -> None:
    store = MemoryStore()
    old, new = "zebra-019000000000-abcdef", "ant-019000000001-abcdef"
    for name in (old, new):
        store.create(places.bundle(name), b"x")
    assert unsubmitted(store, most=1) == [new]


def test_the_folder_of_a_rented_service_is_no_run_and_nothing_odd() -> None:
    store = MemoryStore()
    store.create(places.rented_bundle("chat-1"), b"x")
    assert runs_store.run_ids(store) == []
    assert runs_store.other_folders(store) == []


def test_a_run_is_found_by_its_name_the_newest_live_one_first(store: Store) -> None:
    old, going, new = (f"job-0190000000{n}0-abcdef" for n in range(3))
    for run_id in (old, going, new):
        put(store, run_id)
    assert runs_store.meant(store, "job") == runs_store.Meant(new, 3)
    store.create(f"{places.LIVE}{going}", b"")
    assert runs_store.meant(store, "job") == runs_store.Meant(going, 3, live=True)
    assert runs_store.named(store, "job") == going
    assert runs_store.meant(store, new) == runs_store.Meant(new)
    assert runs_store.all_of(runs_store.run_ids(store), "job") == [old, going, new]
    put(store, "job-2-019000000099-abcdef")
    assert runs_store.named(store, "job") == going
