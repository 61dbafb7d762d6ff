"""How a run's machines are to be interrupted: kept beside them, and made true."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, SPOT
from tradewind.api import wishes
from tradewind.base.errors import InvalidValue, NotFound, TradewindError
from tradewind.providers.base import Refused

TABLE = """trace_id,zone,nodes,gap_seconds,rle
one,z1,1,60,0x1 1x2
two,z2,2,60,2x5 1x1
"""
WAYS = replace(SPEC, ways=(replace(SPOT, zone="z2"), replace(SPOT, zone="mars")))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    return tmp_path


@pytest.fixture
def table(home: Path) -> str:
    path = home / "traces.csv"
    path.write_text(TABLE)
    return str(path)


def test_zones_have_their_own_series_or_the_others_in_turn(table: str) -> None:
    wish = wishes.traced(table, WAYS)
    assert {zone: trace.trace_id for zone, trace in wish.traces.items()} == {
        "z2": "two",
        "mars": "one",
    }
    wish = wishes.traced(f"{table}:one", WAYS)
    assert {trace.trace_id for trace in wish.traces.values()} == {"one"}
    wish = wishes.traced(f"{table}:z2, one", replace(WAYS, speed=10))
    assert wish.traces["z2"].trace_id == "two"
    assert wish.speed == 10


def test_another_process_makes_it_true(table: str) -> None:
    wish = wishes.traced(f"{table}:one", replace(WAYS, speed=60))
    wishes.keep("run-1", wish)
    per_run = wishes.PerRun()
    start = wish.began_s
    names = ["local-run-1-3-0"]
    with pytest.raises(Refused) as refused:
        per_run.lives("mars", names, start)
    assert refused.value.kind == "no_capacity"
    # A tick takes a second: one without, two with.
    assert per_run.lives("mars", names, start + 1.5) == (start + 3.0,)
    assert per_run.notice_s == wishes.NOTICE_S
    assert per_run.lives("mars", ["local-run-2-1-0"], start) == (None,)
    wishes.drop("run-1")
    assert per_run.lives("mars", names, start) == (None,)


def test_a_plan_without_spot_is_interrupted_all_the_same(home: Path) -> None:
    """Who asks for chaos wants to see it survived: SPEC has machines on demand only."""
    per_run = wishes.PerRun()
    wishes.keep("run-1", wishes.chaos(60, SPEC))
    wishes.keep("run-2", wishes.chaos(60, WAYS))
    assert [per_run.takes_all(f"run-{n}") for n in (1, 2, 3)] == [True, False, False]


def test_what_cannot_be_replayed(table: str, home: Path) -> None:
    with pytest.raises(NotFound, match=r"no file nowhere\.csv"):
        wishes.traced("nowhere.csv:x", WAYS)
    with pytest.raises(NotFound, match="no trace and no zone 'z9'"):
        wishes.traced(f"{table}:z9", WAYS)
    with pytest.raises(InvalidValue, match="no spot machines"):
        wishes.traced(table, SPEC)
    with pytest.raises(InvalidValue, match="cannot live"):
        wishes.chaos(0, SPEC)
    (home / "empty.csv").write_text("trace_id,zone\n")
    with pytest.raises(TradewindError, match="no traces"):
        wishes.traced(str(home / "empty.csv"), WAYS)
    (home / "bad.csv").write_text(TABLE + "three,z3,1,60,1x\n")
    with pytest.raises(TradewindError, match="line 4"):
        wishes.traced(str(home / "bad.csv"), WAYS)
