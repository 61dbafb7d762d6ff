"""Whatever somebody has put into a store, other runs, `stop` and `sweep` do not suffer from it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec import json

from tests.cli.conftest import Cli
from tests.lifecycle.builders import AT, a_beat, a_machine, found, requested, submitted, up
from tradewind import store as stores
from tradewind.base.signing import SEED
from tradewind.controller.loop import LEASE
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import CancelAsked, Event
from tradewind.store.base import Store

GOOD = "good-0199f0c2a4b7-5e1d9c"
NASTY = {
    "not UTF-8": json.encode(a_beat(reason="?!")).replace(b"?!", b"\xff"),
    "deep": b'{"figures":[{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}]}",
    "deep array": b"[" * 100_000,
    "a long number": b'{"format":' + b"9" * 10_000 + b"}",
    "empty": b"",
    "zeros": b"\0" * 1000,
    "a list": b"[1,2,3]",
    "a string": b'"x"',
    "cut": b'{"format":1,"number":2,"writer":"w","at":"2026-',
    "large": b" " * (9 << 20),
}
OF_A_RUN = {
    "heartbeat": lambda run: places.heartbeat(run, "m1"),
    "commit": lambda run: places.run(run) + "journal/" + "2".zfill(20) + ".json",
    "uncommit": lambda run: places.run(run) + "journal/zzz",
    "volume": lambda run: places.run(run) + "volumes/" + "1000".zfill(20) + ".jsonl",
    "resume": lambda run: places.resume(run, 1),
    "address": lambda run: places.address(run, 1),
    "first": lambda run: places.first_log(run, 1, 0),
    "log": lambda run: places.log_piece(run, 1, 0, 0),
    "metrics": lambda run: places.piece(places.metrics(run, 1, 0), 0),
    "checkpoint": lambda run: places.checkpoint(run, 1, 7),
    "outputs": lambda run: places.outputs(run, 0, 1),
    "rehearsal": places.rehearsal,
}
OF_ALL = (places.LIVE + "~~ \u202e", "runs/ odd name /logs/x", LEASE)
BAD = {kind: f"{kind}-0199f0c2a4b8-5e1d9d" for kind in OF_A_RUN}


def under_way(store: Store, run_id: str) -> None:
    events: list[Event] = [submitted(), requested(), found(a_machine()), up()]
    store.create(places.live(run_id), b"{}")
    journal.append(store, run_id, 1, writer="w", at=AT, events=events)
    store.replace(places.heartbeat(run_id, "m1"), json.encode(a_beat(step=1800.0, rate=1.0)))


EVERY = [
    ("ps",),
    ("ps", "--all", "--json"),
    ("show", GOOD),
    ("top", "--once"),
    ("top", "--once", "--json"),
    ("tick",),
    ("cost",),
    ("report", GOOD, "--json"),
    ("doctor",),
    ("sweep", "--yes"),
    ("stop", GOOD, "--no-wait"),
]


@pytest.mark.parametrize("nasty", NASTY)
def test_one_runs_poison_is_its_own(nasty: str, cli: Cli, tmp_path: Path) -> None:
    """A run for each place that can be poisoned, and a good one between them."""
    url = str(tmp_path / "store")
    store = stores.open(url)
    under_way(store, GOOD)
    for kind, run_id in BAD.items():
        under_way(store, run_id)
        plant(tmp_path / "store" / OF_A_RUN[kind](run_id), NASTY[nasty])
    for key in OF_ALL:
        plant(tmp_path / "store" / key, NASTY[nasty])
    rows = {row["run"]: row for row in cli("ps", "--store", url, "--json").json["runs"]}
    assert rows[GOOD]["step"] == 1800
    of_one = [
        (what, run_id) for run_id in BAD.values() for what in ("show", "logs", "report", "get")
    ]
    for command in (*EVERY, *of_one):
        ran = cli(*command, "--store", url)
        assert "this is a bug" not in ran.out + ran.err, command
        broken = command == ("doctor",) and "checks are broken" in ran.err
        assert ran.code != 1 or broken, (command, ran.err)
    events = [event for commit in journal.read(store, GOOD) for event in commit.events]
    assert any(isinstance(event, CancelAsked) for event in events)


def plant(path: Path, data: bytes) -> None:
    """As a file: a store of ours would not take every name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize("nasty", NASTY)
def test_without_its_seed_a_store_says_so_and_runs_can_be_stopped(
    nasty: str, cli: Cli, tmp_path: Path
) -> None:
    url = str(tmp_path / "store")
    store = stores.open(url)
    under_way(store, GOOD)
    plant(tmp_path / "store" / SEED, NASTY[nasty])
    assert "keys/seed" in cli("tick", "--store", url).err
    assert cli("ps", "--store", url).code == 0
    assert cli("stop", GOOD, "--no-wait", "--store", url).code == 0


def test_links_in_a_store_lead_nowhere(cli: Cli, tmp_path: Path) -> None:
    """Whoever may write the folder may put some there."""
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("thesis.txt", "x-01a0e5de08b5-83884a"):
        (mine / name).write_text("years of work")
    store = tmp_path / "store"
    under_way(stores.open(str(store)), GOOD)
    shutil.rmtree(store / ".tradewind-new")
    (store / "probe" / "x-0099f0c2a4b8-5e1d9d").mkdir(parents=True)
    for link in (".tradewind-new", "probe/x-0099f0c2a4b8-5e1d9d/d", "live/loop", "controllers"):
        (store / link).symlink_to(store / "live" if link == "live/loop" else mine)
    for command in EVERY:
        cli(*command, "--store", str(store))
    assert sorted(path.name for path in mine.iterdir()) == ["thesis.txt", "x-01a0e5de08b5-83884a"]
    ran = cli("ps", "--store", str(store), "--json")
    assert [row["run"] for row in ran.json["runs"]] == [GOOD]


def test_a_mark_that_is_not_text(cli: Cli, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    under_way(stores.open(url), GOOD)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/store/live/\xff")).touch()
    for command in EVERY:
        ran = cli(*command, "--store", url)
        assert "this is a bug" not in ran.out + ran.err, command


def test_a_broken_memory_is_no_memory(cli: Cli, home: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    under_way(stores.open(url), GOOD)
    assert cli("tick", "--store", url).code == 0
    (kept,) = (home / "controllers").glob("*.json")
    whole = kept.read_bytes()
    broken = [*NASTY.values(), whole[: len(whole) // 2], whole.replace(b"working", b"\xff\xff")]
    for data in broken:
        kept.write_bytes(data)
        assert cli("tick", "--store", url).code == 0
        assert cli("sweep", "--yes", "--store", url).code == 0
        assert kept.read_bytes() != data
