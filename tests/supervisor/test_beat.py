from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import AT, a_machine, found, requested, submitted, up
from tests.supervisor.builders import RUNNING, me, working
from tradewind.base import signing, steps
from tradewind.base.errors import BadFile, NoAccess, NotFound, SourceFailed, TradewindError
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import (
    Ended,
    Event,
    LaunchRefused,
    LegDraining,
    LegLimited,
    LegOver,
    Progress,
)
from tradewind.model.run import Heartbeat
from tradewind.model.timing import FENCE_S
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import Create, Find, ListAfter, Replace, performer
from tradewind.supervisor.beat import beat, choose_resume, orders
from tradewind.supervisor.decide import Job, Me, Save, ShutDown, Start, Stop

Perform = Callable[[Any], Any]
HEART = "runs/run-1/machines/m1/heartbeat.json"
OVER = LegOver(leg=1, cause="lost", reason="nothing was heard of it")
DRAIN = LegDraining(leg=1, cause="moved", reason="there is a better way")


def store_with(*events: Event) -> MemoryStore:
    """The journal of a run whose first leg is up, and what came after."""
    where = MemoryStore()
    for number, event in enumerate((submitted(), requested(), found(), up(), *events), 1):
        assert journal.append(where, "run-1", number, writer="w", at=AT, events=[event])
    return where


def failing(where: MemoryStore, *kinds: type, after: bool = False) -> Perform:
    """A store whose steps of these kinds fail: before they are done, or after."""
    perform = performer(where)

    def faulty(step: Any) -> Any:
        if not isinstance(step, kinds):
            return perform(step)
        if after:
            perform(step)
        raise SourceFailed("the store did not answer")

    return faulty


def heartbeat(where: MemoryStore) -> Heartbeat:
    return json.decode(where.get(HEART), type=Heartbeat)


def test_what_others_have_written_over_is_put_back() -> None:
    """Machines of the leg would wait for it until their time is up."""
    address = places.address("run-1", 1)
    where, who = store_with(), me(nodes=2, read=4, key="k" * 64, left={address: b"10.0.0.1:29500"})
    perform = performer(where)
    steps.run(beat(who, Job(), 10.0), perform)
    begun = replace(RUNNING, rate=None)
    steps.run(beat(who, begun, 20.0), perform)
    pointers = [places.resume("run-1", 1), address]
    told = {place: where.get(place) for place in pointers}
    for planted in (b"", b"\xff", b"x" * 100_000):
        for place in pointers:
            where.replace(place, planted)
        steps.run(beat(who, begun, 30.0), perform)
        assert {place: where.get(place) for place in pointers} == told
    steps.run(beat(who, RUNNING, 40.0), perform)
    where.replace(pointers[0], b"")
    steps.run(beat(who, RUNNING, 50.0), perform)
    assert where.get(pointers[0]) == b""  # nobody needs it any more


# -- orders ----------------------------------------------------------------------------------------


def ordered(who: Me, *events: Event) -> Me:
    steps.run(orders(who), performer(store_with(*events)))
    return who


def test_a_leg_that_goes_on_has_no_orders() -> None:
    who = ordered(working(read=2), Progress(leg=1, step=1.0, saved=1.0))
    assert (who.fenced, who.draining, who.read) == ("", "", 5)


def test_draining_is_an_order() -> None:
    who = ordered(working(read=2), DRAIN)
    assert (who.fenced, who.draining) == ("", "there is a better way")


def test_time_is_only_ever_taken_away() -> None:
    who = ordered(working(read=2), LegLimited(leg=1, hard_stop_s=900, reason="it costs more"))
    assert who.hard_stop_s == 900
    more = LegLimited(leg=1, hard_stop_s=9_000_000, reason="")
    other = LegLimited(leg=2, hard_stop_s=1, reason="")
    was_s = working().hard_stop_s
    assert ordered(working(read=2), more, other).hard_stop_s == was_s < 9_000_000


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((OVER,), "its leg has ended: nothing was heard of it"),
        ((DRAIN, OVER), "its leg has ended: nothing was heard of it"),
        ((OVER, requested(2)), "its leg has ended: nothing was heard of it"),
        ((OVER, Ended(outcome="failed", reason="r")), "its leg has ended"),
        ((LaunchRefused(leg=1, kind="no_capacity", reason="sold out"),), "ended: sold out"),
    ],
)
def test_a_leg_that_is_over_is_fenced(events: tuple[Event, ...], words: str) -> None:
    assert words in ordered(working(read=2), *events).fenced


def test_whoever_missed_the_end_of_its_leg_sees_that_it_was_replaced() -> None:
    """It was given a later commit to read from than it should have been."""
    assert "another leg" in ordered(working(read=5), OVER, requested(2)).fenced
    end = Ended(outcome="cancelled", reason="the user asked for it")
    assert "the user asked" in ordered(working(read=5), OVER, end).fenced


def test_the_end_of_an_earlier_leg_is_no_order() -> None:
    who = ordered(working(leg=2, read=2), DRAIN, OVER, requested(2))
    assert (who.fenced, who.draining) == ("", "")


def test_a_leg_that_is_relieved_goes_on_to_save() -> None:
    relief = requested(2, relieves=1)
    assert ordered(working(read=2), DRAIN, relief).fenced == ""
    assert "its leg has ended" in ordered(working(read=2), DRAIN, relief, OVER).fenced
    assert "another leg" in ordered(working(read=6), relief, OVER, requested(3, relieves=2)).fenced


def test_the_one_that_relieves_it_begins_when_it_is_over() -> None:
    """Its machine is up, and says so; what it goes on from is not chosen before."""
    relief = requested(2, relieves=1)
    where, who = store_with(DRAIN, relief), me(leg=2, read=6, relieves=1)
    assert steps.run(beat(who, Job(), 30.0), performer(where)) == []
    assert (heartbeat(where).doing, who.resume) == ("setup", None)
    where.create(places.checkpoint("run-1", 1, 300), b"{}")
    assert journal.append(where, "run-1", 7, writer="w", at=AT, events=[OVER])
    (start,) = steps.run(beat(who, Job(), 60.0), performer(where))
    assert isinstance(start, Start)
    assert who.resume == places.checkpoint("run-1", 1, 300)


def test_one_that_was_in_a_queue_begins_when_the_journal_has_all_its_machines() -> None:
    second = a_machine("m9", rank=1)
    assert ordered(me(read=2, waits=True)).may_begin
    assert not ordered(me(read=2, waits=True, nodes=2)).may_begin
    assert ordered(me(read=2, waits=True, nodes=2), found(second)).may_begin


def test_one_that_was_in_a_queue_begins_when_no_other_works() -> None:
    beside = requested(2, beside=1)
    over = LegOver(leg=2, cause="moved", reason="its machines are there")
    refused = LaunchRefused(leg=2, kind="no_capacity", reason="none")
    assert ordered(me(read=2, waits=True), beside).fenced == ""
    assert not ordered(me(read=2, waits=True), beside).may_begin
    assert ordered(me(read=2, waits=True), beside, over).may_begin
    assert ordered(me(read=2, waits=True), beside, refused).may_begin
    relief = requested(3, relieves=2, beside=1)
    assert not ordered(me(read=2, waits=True), beside, relief, over).may_begin


def test_what_was_read_is_not_read_again() -> None:
    where = store_with(OVER)
    assert steps.run(orders(who := working(read=5)), performer(where)) is None
    assert (who.fenced, who.read) == ("", 5)


# -- where to begin --------------------------------------------------------------------------------


def resumed(where: MemoryStore, **more: Any) -> str | None:
    who = me(**more)
    steps.run(choose_resume(who), performer(where))
    return who.resume


def test_without_checkpoints_it_begins_at_the_beginning() -> None:
    assert resumed(MemoryStore()) == ""


def test_it_resumes_from_the_newest_legs_newest_checkpoint() -> None:
    """A leg that was replaced but lived on may have come further: it is not of our line."""
    where = MemoryStore()
    for leg, step in ((1, 100), (1, 9000), (2, 110), (2, 1200)):
        where.create(places.checkpoint("run-1", leg, step), b"{}")
    assert resumed(where, leg=3) == places.checkpoint("run-1", 2, 1200)


def test_its_own_and_later_legs_are_not_before_it() -> None:
    where = MemoryStore()
    for leg, step in ((1, 100), (2, 200), (3, 300), (10, 400)):
        where.create(places.checkpoint("run-1", leg, step), b"{}")
    assert resumed(where, leg=2) == places.checkpoint("run-1", 1, 100)
    assert resumed(where, leg=11) == places.checkpoint("run-1", 10, 400)


def test_all_machines_of_a_leg_agree_on_the_first_choice() -> None:
    where = MemoryStore()
    where.create(places.checkpoint("run-1", 1, 100), b"{}")
    first = resumed(where, leg=2)
    where.create(places.checkpoint("run-1", 1, 200), b"{}")  # late, from a machine cut off
    assert resumed(where, leg=2, machine_id="m2", rank=1) == first
    assert resumed(where, leg=3) == places.checkpoint("run-1", 1, 200)


def test_a_choice_whose_acknowledgement_was_lost_stands() -> None:
    where = MemoryStore()
    where.create(places.checkpoint("run-1", 1, 100), b"{}")
    who = me(leg=2)
    with pytest.raises(SourceFailed):
        steps.run(choose_resume(who), failing(where, Create, after=True))
    assert who.resume is None
    where.create(places.checkpoint("run-1", 1, 200), b"{}")
    steps.run(choose_resume(who), performer(where))
    assert who.resume == places.checkpoint("run-1", 1, 100)


KEY = signing.key_of(b"seed", "run-1-2")


@pytest.mark.parametrize(
    "planted",
    [
        b"\xff",
        b"",
        b"x" * 5000,
        places.checkpoint("run-2", 1, 7).encode(),
        places.checkpoint("run-1", 1, 7).encode(),
        signing.signed(b"", signing.key_of(b"seed", "run-2-2"), signing.RESUME),
        signing.signed(b"", KEY, signing.ADDRESS),
        signing.signed(places.checkpoint("run-2", 1, 7).encode(), KEY, signing.RESUME),
        signing.signed(places.checkpoint("run-1", 2, 7).encode(), KEY, signing.RESUME),
        signing.signed(b"\xff", KEY, signing.RESUME),
    ],
)
def test_no_choice_of_somebody_else_is_followed(planted: bytes) -> None:
    """Whoever may write there: rank 0 chooses, and the others wait for it."""
    where = MemoryStore()
    newest = places.checkpoint("run-1", 1, 100)
    where.create(newest, b"{}")
    where.create(places.resume("run-1", 2), planted)
    assert resumed(where, leg=2, key=KEY, machine_id="m2", rank=1) is None
    assert resumed(where, leg=2, key=KEY) == newest
    assert resumed(where, leg=2, key=KEY, machine_id="m2", rank=1) == newest


def test_a_pointer_that_is_no_text_does_not_end_the_machine() -> None:
    """As it was before pointers were signed, too."""
    where, who = store_with(), me(read=4)
    where.create(places.resume("run-1", 1), b"\xff")
    (start,) = steps.run(beat(who, Job(), 30.0), performer(where))
    assert isinstance(start, Start)


# -- a whole beat ----------------------------------------------------------------------------------


def test_a_beat_learns_decides_and_reports() -> None:
    where = store_with()
    who = me(read=2)
    (start,) = steps.run(beat(who, Job(), 30.0), performer(where))
    assert isinstance(start, Start)
    told = heartbeat(where)
    assert (told.machine_id, told.leg, told.beat) == ("m1", 1, 1)
    assert (told.doing, told.uptime_s) == ("working", 30.0)
    assert (who.reached_s, who.beat) == (30.0, 1)
    assert steps.run(beat(who, RUNNING, 60.0), performer(where)) == []
    told = heartbeat(where)
    assert (told.beat, told.step, told.rate, told.saved) == (2, 40.0, 1.0, 30.0)


def test_a_beat_obeys_what_it_has_just_read() -> None:
    where = store_with(DRAIN)
    who = working(read=2)
    (save,) = steps.run(beat(who, RUNNING, 1010.0), performer(where))
    assert save == Save("there is a better way")
    assert heartbeat(where).doing == "saving"
    assert journal.append(where, "run-1", 6, writer="w", at=AT, events=[OVER])
    done = steps.run(beat(who, RUNNING, 1040.0), performer(where))
    assert [type(act) for act in done] == [Stop, ShutDown]


def test_a_fenced_machine_chooses_nothing() -> None:
    where = store_with(OVER)
    who = me(read=2)
    done = steps.run(beat(who, Job(), 30.0), performer(where))
    assert [type(act) for act in done] == [Stop, ShutDown]
    assert who.resume is None
    assert where.list_after("runs/run-1/legs/") == []


def test_a_heartbeat_that_did_not_arrive_is_no_contact() -> None:
    where = store_with()
    who = working(read=4)
    assert steps.run(beat(who, RUNNING, 1030.0), failing(where, Replace)) == []
    assert who.reached_s == 1000.0
    (stop,) = steps.run(beat(who, RUNNING, 1120.0), failing(where, Replace))
    assert isinstance(stop, Stop)


def test_every_heartbeat_differs_from_the_last() -> None:
    """Also after one whose fate is unknown: a change is the sign of life."""
    where = store_with()
    who = working(read=4)
    steps.run(beat(who, RUNNING, 1030.0), failing(where, Replace, after=True))
    first = heartbeat(where)
    steps.run(beat(who, RUNNING, 1030.0), performer(where))
    assert heartbeat(where).beat == first.beat + 1


def test_a_store_that_cannot_be_read_does_not_keep_it_from_reporting() -> None:
    where = store_with(OVER)
    who = working(read=2)
    assert steps.run(beat(who, RUNNING, 1030.0), failing(where, Find, ListAfter)) == []
    assert heartbeat(where).doing == "working"


@pytest.mark.parametrize("error", [NoAccess, BadFile, NotFound])
def test_whatever_is_wrong_with_the_store_it_stops_in_time(error: type[TradewindError]) -> None:
    """Keys that expire, a journal that is too new: not only a network that is down."""

    def refuse(step: Any) -> Any:
        raise error("no")

    who = working(heard_s=1000.0)
    assert steps.run(beat(who, RUNNING, 1000.0 + FENCE_S - 1), refuse) == []
    assert [type(act) for act in steps.run(beat(who, RUNNING, 1000.0 + FENCE_S), refuse)] == [Stop]
