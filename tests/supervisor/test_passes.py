"""A machine that holds a pass to the store: it takes newer ones, and stops in time without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from tests.lifecycle.builders import AT, found, requested, submitted, up
from tests.supervisor.builders import RUNNING, working
from tests.supervisor.machines import RUN, MachineUnderTest, Run, until
from tradewind.base import clock, steps
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.model.run import Heartbeat
from tradewind.model.timing import BEAT_S, DRAIN_S, PASS_ENDS_S
from tradewind.store.lending import Pass, encoded, held
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import performer
from tradewind.supervisor.beat import beat, learn
from tradewind.supervisor.decide import Job, Me, Save, ShutDown, decide

HOUR = 3600
WHY = "its pass to the store ends, and no controller renewed it"
AGAIN = places.a_pass("run-1", "run-1-1", 0)


def a_pass(token: str = "first", for_s: int = HOUR, run_id: str = "run-1") -> Pass:
    return Pass(store_url="s3://b", run_id=run_id, for_s=for_s, credentials={"token": token})


def holding(since_s: float = 0.0, for_s: int = HOUR, **more: Any) -> Me:
    given: dict[str, Any] = {
        "launch_id": "run-1-1",
        "pass_for_s": for_s,
        "pass_until_s": since_s + for_s,
        "pass_looked_s": since_s,
        "pass_seen": a_pass().mark,
        "read": 4,
    }
    return working(**(given | more))


def store_with() -> MemoryStore:
    where = MemoryStore()
    events: list[Event] = [submitted(), requested(), found(), up()]
    for number, event in enumerate(events, 1):
        assert journal.append(where, "run-1", number, writer="w", at=AT, events=[event])
    return where


def learnt(who: Me, where: MemoryStore, uptime_s: float) -> Me:
    steps.run(learn(who, uptime_s), performer(where))
    return who


def test_a_heartbeat_tells_how_long_the_pass_lasts() -> None:
    where, who = store_with(), holding()
    steps.run(beat(who, RUNNING, 1000.0), performer(where))
    told = json.decode(where.get(places.heartbeat("run-1", "m1")), type=Heartbeat)
    assert told.pass_left_s == HOUR - 1000
    who = working(read=4)  # one that is somebody
    steps.run(beat(who, RUNNING, 1000.0), performer(where))
    told = json.decode(where.get(places.heartbeat("run-1", "m1")), type=Heartbeat)
    assert told.pass_left_s is None


def test_nobody_looks_for_a_newer_one_before_half_of_it_is_over() -> None:
    where = store_with()
    where.replace(AGAIN, encoded(a_pass("second", for_s=2 * HOUR)))
    assert learnt(holding(), where, 1700.0).pass_data == b""
    assert learnt(holding(), where, 1900.0).pass_data == where.get(AGAIN)


def test_a_newer_one_is_counted_from_the_last_look_that_did_not_find_it() -> None:
    where, who = store_with(), holding()
    learnt(who, where, 1900.0)
    assert (who.pass_looked_s, who.pass_until_s) == (1900.0, HOUR)
    where.replace(AGAIN, encoded(a_pass("second")))
    learnt(who, where, 1930.0)
    assert (who.pass_lent_s, who.pass_until_s) == (1900.0, 1900.0 + HOUR)


def test_one_that_may_be_as_old_as_its_own_is_left_and_the_next_is_taken() -> None:
    """It was there at the first look: nobody knows since when."""
    where, who = store_with(), holding()
    where.replace(AGAIN, encoded(a_pass("second")))
    for uptime_s in (1900.0, 1930.0):
        learnt(who, where, uptime_s)
        assert (who.pass_until_s, who.pass_data) == (HOUR, b"")
    where.replace(AGAIN, encoded(a_pass("third")))
    learnt(who, where, 1960.0)
    assert who.pass_until_s == 1930.0 + HOUR


def test_the_one_that_it_holds_is_not_taken_for_a_newer_one() -> None:
    """It stays where it was found, and would seem to last for ever."""
    where, who = store_with(), holding()
    where.replace(AGAIN, encoded(a_pass("first")))
    for uptime_s in (1900.0, 2000.0, 3000.0):
        learnt(who, where, uptime_s)
    assert (who.pass_until_s, who.pass_data) == (HOUR, b"")


def test_one_that_ends_sooner_is_left() -> None:
    where, who = store_with(), holding()
    where.replace(AGAIN, encoded(a_pass("second", for_s=900)))
    for uptime_s in (1900.0, 2600.0):
        learnt(who, where, uptime_s)
    assert who.pass_until_s == HOUR


def test_what_is_no_pass_or_another_run_s_is_left() -> None:
    for data in (b"{}", b"x" * 100_000, encoded(a_pass("second", run_id="run-2"))):
        where, who = store_with(), holding()
        where.replace(AGAIN, data)
        learnt(who, where, 1900.0)
        assert (who.pass_until_s, who.heard) == (HOUR, True)


def test_without_a_newer_one_it_saves_while_it_can_write() -> None:
    who = holding()
    end_s = float(HOUR - PASS_ENDS_S)
    who.reached_s = who.heard_s = end_s
    assert decide(who, RUNNING, end_s) == []
    assert decide(who, RUNNING, end_s + 1) == [Save(WHY)]
    assert (who.doing, who.reason) == ("saving", WHY)
    left_s = who.pass_left_s(end_s + 1)
    assert left_s is not None
    assert left_s > DRAIN_S + BEAT_S


def ended(who: Me, uptime_s: float) -> list[Any]:
    who.reached_s = who.heard_s = uptime_s
    return list(decide(who, Job("exited", 50.0, None, 50.0, 143, "user", ""), uptime_s))


def test_it_stops_and_ends_itself_once_that_is_told() -> None:
    who = holding()
    uptime_s = float(HOUR - PASS_ENDS_S + 1)
    who.reached_s = who.heard_s = uptime_s
    assert decide(who, RUNNING, uptime_s) == [Save(WHY)]
    assert ended(who, uptime_s + 10) == []
    assert (who.doing, who.reason) == ("stopped", WHY)
    assert ended(who, uptime_s + 20) == []
    assert ended(who, uptime_s + 30) == [ShutDown(WHY)]
    assert who.shut_down


def test_what_is_renewed_after_that_comes_too_late() -> None:
    """It has begun to stop, and what it says of its pass must not change any more: by that a
    controller knows why."""
    where, who = store_with(), holding()
    uptime_s = float(HOUR - PASS_ENDS_S + 1)
    who.reached_s = who.heard_s = uptime_s
    assert decide(who, RUNNING, uptime_s) == [Save(WHY)]
    where.replace(AGAIN, encoded(a_pass("second")))
    learnt(who, where, uptime_s + 5)
    assert who.pass_until_s == HOUR
    assert ended(who, uptime_s + 10) == []
    assert who.doing == "stopped"


def test_nothing_of_a_pass_is_printed() -> None:
    lent = a_pass("very-secret")
    kept = held.Held(
        store_url="s3://b", run_id="r", for_s=1, credentials={"t": "very-secret"}, lent_s=0
    )
    who = holding(pass_data=encoded(lent))
    assert not any("very-secret" in text for text in (repr(lent), str(lent), repr(kept), repr(who)))


# -- the whole supervisor --------------------------------------------------------------------------

SAVES = 'trap "echo saved; exit 3" TERM; echo begun; while :; do sleep 0.05; done'


def machine(folder: Path, command: str, for_s: int = HOUR) -> MachineUnderTest:
    path = folder / "pass.json"
    held.keep(path, a_pass(for_s=for_s), clock.monotonic())
    return Run(folder, command=command).machine(pass_file=str(path), speed=200.0)


@pytest.mark.slow
def test_a_newer_pass_is_put_where_processes_find_it(tmp_path: Path) -> None:
    made = machine(tmp_path, SAVES).start()
    path = Path(made.boot.pass_file)
    try:
        until(lambda: (beat := made.beat()) and (beat.pass_left_s or HOUR) < HOUR / 2, "it asks")
        key = places.a_pass(RUN, made.boot.launch_id, 0)
        made.run.calm.replace(key, encoded(a_pass("second", run_id=RUN)))
        until(lambda: held.read(path).credentials == {"token": "second"}, "the newer one is kept")
        assert path.stat().st_mode & 0o777 == 0o600
        assert held.read(path).lent_s <= clock.monotonic()
    finally:
        made.end()


def test_nobody_renews_it(tmp_path: Path) -> None:
    made = machine(tmp_path, SAVES, for_s=PASS_ENDS_S + 300).start()
    made.said("begun")
    told = made.does("stopped")
    assert told.reason == WHY
    assert told.pass_left_s is not None
    assert 0 < told.pass_left_s < PASS_ENDS_S
    until(lambda: made.off, "it ends itself")
    assert made.why == [WHY]
    assert "saved" in made.log()


def test_the_job_knows_where_it_lies_and_not_what_it_is(tmp_path: Path) -> None:
    made = machine(tmp_path, "env").start()
    try:
        made.does("finished")
        assert f"TRADEWIND_PASS={made.boot.pass_file}" in made.log().splitlines()
        assert "first" not in made.log().replace(str(tmp_path), "")
    finally:
        made.end()
