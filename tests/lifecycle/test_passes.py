"""Machines that are lent passes to the store, as controllers look after them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.controller.fakes import World
from tests.lifecycle.builders import (
    AT,
    NOW,
    SPEC,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    booting,
    found,
    requested,
    running,
    state_of,
    submitted,
    up,
)
from tradewind.base.errors import NoAccess
from tradewind.lifecycle import RunState, decide, fold
from tradewind.lifecycle.decide import LENT_S
from tradewind.lifecycle.seen import Seen
from tradewind.model import places
from tradewind.model.action import Action, Lend, Record
from tradewind.model.event import (
    CancelAsked,
    Commit,
    Event,
    LegOver,
    LegQueued,
    LegRequested,
    Warned,
)
from tradewind.model.run import Queued, Way
from tradewind.model.timing import PASS_ENDS_S
from tradewind.store.lending import LendPass

HOUR = 3600
LENT = replace(WAY, pass_s=HOUR)
PAIR = replace(LENT, nodes=2)


def doings(state: RunState, seen: Seen) -> list[Action]:
    return decide(state, seen, state.spec.ways if state.spec else (), NOW)


def seen_with(*beats: Any, **more: Any) -> Seen:
    machines = [a_machine(beat.machine_id, rank=n) for n, beat in enumerate(beats)]
    return a_seen(*machines, beats=beats, **more)


def lends(state: RunState, seen: Seen) -> list[str]:
    return [each.machine_id for each in doings(state, seen) if isinstance(each, Lend)]


def test_a_pass_that_is_half_over_is_renewed() -> None:
    state = running(way=LENT)
    assert lends(state, seen_with(a_beat(pass_left_s=1800.0))) == []
    (lend,) = doings(state, seen_with(a_beat(pass_left_s=1799.0)))
    assert lend == Lend("m1", "run-1-1", 0, HOUR, "its pass to the store ends in 1799 s")


def test_so_it_is_while_machines_come_up_and_for_each_of_them() -> None:
    pair = (a_beat(pass_left_s=9.0, doing="setup"), a_beat("m2", pass_left_s=3000.0))
    assert lends(running(way=PAIR), seen_with(*pair)) == ["m1"]
    second = (a_beat(), a_beat("m2", pass_left_s=9.0))
    (lend,) = doings(running(way=PAIR), seen_with(*second))
    assert isinstance(lend, Lend)
    assert lend.rank == 1
    silent = seen_with(a_beat(pass_left_s=9.0, doing="setup"))  # the other has not come up
    assert lends(booting(way=PAIR), silent) == ["m1"]


def test_what_was_lent_a_moment_ago_is_not_lent_again() -> None:
    beat = a_beat(pass_left_s=1000.0)
    state = running(way=LENT)
    assert lends(state, seen_with(beat, lent_s=lambda name: LENT_S - 1.0)) == []
    assert lends(state, seen_with(beat, lent_s=lambda name: LENT_S + 1.0)) == ["m1"]


def test_machines_that_are_somebody_are_lent_nothing() -> None:
    assert lends(running(), seen_with(a_beat(pass_left_s=9.0))) == []
    assert lends(running(way=LENT), seen_with(a_beat())) == []


def test_one_that_has_stopped_or_whose_run_ends_is_lent_nothing() -> None:
    saving = a_beat(doing="saving", pass_left_s=9.0)
    assert lends(running(way=LENT), seen_with(saving)) == []
    over = LegOver(leg=1, cause="stopped", reason="r", saved=0.0)
    ended = running(over, way=LENT)
    assert lends(ended, seen_with(a_beat(pass_left_s=9.0))) == []
    cancelled = running(CancelAsked(reason="r"), way=LENT)
    actions = doings(cancelled, seen_with(a_beat(pass_left_s=9.0)))
    assert all(isinstance(each, Record) for each in actions)


QUEUED = replace(LENT, facts=replace(WAY.facts, queues=True))


def in_queue(way: Way = QUEUED, *more: Event) -> RunState:
    waits = LegQueued(leg=1, reason="r", starts_s=None)
    return state_of(submitted(ways=(way,)), requested(way=way), waits, *more)


def test_what_is_in_a_queue_is_lent_anew_what_it_will_begin_with() -> None:
    """Its first pass was lent when it was asked for, which may be days before it begins."""
    there = {"run-1-1": ("cloud", Queued(launch_id="run-1-1", run_id="run-1", leg=1))}
    first = [Lend("", "run-1-1", None, HOUR, "its machines are to begin with one that lasts")]
    assert doings(in_queue(), a_seen(queued=there)) == first
    assert doings(in_queue(), a_seen(queued=there, lent_s=lambda name: HOUR / 2 - 1)) == []
    assert doings(in_queue(), a_seen(queued=there, lent_s=lambda name: HOUR / 2)) == first
    up_soon = in_queue(QUEUED, found())
    assert doings(up_soon, a_seen(a_machine())) == first
    assert not lends(in_queue(QUEUED, found(), up()), seen_with(a_beat(pass_left_s=3000.0)))
    somebody = in_queue(replace(QUEUED, pass_s=0))
    assert doings(somebody, a_seen(queued=there)) == []
    assert doings(booting(way=LENT), a_seen(a_machine())) == []  # it comes up within the hour


def recorded(state: RunState, seen: Seen) -> RunState:
    events = tuple(each.event for each in doings(state, seen) if isinstance(each, Record))
    return fold([Commit(1, state.number + 1, "w", AT, events)], state)


def stopped(left_s: float | None, saved: float = 0.0) -> Any:
    return a_beat(doing="stopped", reason="its pass ends", pass_left_s=left_s, saved=saved)


def test_a_leg_that_nobody_attended_is_no_trouble() -> None:
    state = running(way=LENT)
    (record,) = doings(state, seen_with(stopped(PASS_ENDS_S - 1.0)))
    assert isinstance(record, Record)
    assert isinstance(record.event, LegOver)
    assert record.event.cause == "unattended"
    after = recorded(state, seen_with(stopped(PASS_ENDS_S - 1.0)))
    assert (after.troubles, after.barren, after.fruitless, after.refusals) == (0, 0, 0, {})
    # And the run goes on at once, in the same place.
    actions = doings(after, a_seen(a_machine(ended_s=6000), ago_s=0.0))
    asked = [each.event for each in actions if isinstance(each, Record)]
    while asked and not isinstance(asked[-1], LegRequested):
        after = fold([Commit(1, after.number + 1, "w", AT, tuple(asked))], after)
        actions = doings(after, a_seen(a_machine(ended_s=6000), ago_s=0.0))
        asked = [each.event for each in actions if isinstance(each, Record)]
    assert isinstance(asked[-1], LegRequested)
    assert asked[-1].request.way == LENT


def test_one_that_stopped_for_another_reason_is() -> None:
    for left_s in (None, PASS_ENDS_S + 1.0):
        after = recorded(running(way=LENT), seen_with(stopped(left_s)))
        assert (after.over_cause, after.troubles) == ("stopped", 1)


# -- a controller ----------------------------------------------------------------------------------


class Lending(World):
    """Whose store lends, unless it is told not to."""

    refuses: NoAccess | None = None

    def perform(self, step: Any) -> Any:
        if isinstance(step, LendPass):
            if self.refuses:
                raise self.refuses
            self.store.replace(step.key, b"a secret")
            self.asked["LendPass"] += 1
            return None
        return super().perform(step)


def test_a_controller_keeps_a_pass_there_for_what_is_in_a_queue() -> None:
    world = Lending()
    world.cloud.queues = True
    controller = world.controller()
    assert world.submit(controller, spec=replace(SPEC, ways=(QUEUED,)))
    first = places.first_pass("run-1", "run-1-1")
    for lent, wait_s in ((0, 30), (1, 30), (1, HOUR / 2), (2, 30), (2, 0)):
        assert world.whole_pass(controller) == []
        assert world.asked["LendPass"] == lent
        world.wait(wait_s)
    assert world.store.list_after(places.passes("run-1")) == [first]
    world.wait(HOUR / 2)
    world.refuses = NoAccess("the role is gone", hint="run setup again")
    for _ in range(3):
        assert world.whole_pass(controller) == []
        world.wait(LENT_S + 1)
    (warned,) = [each for each in world.events() if isinstance(each, Warned)]
    assert warned.reason.startswith("leg 1, in its queue, was lent no new pass")
    world.refuses = None
    assert world.whole_pass(controller) == []
    assert world.asked["LendPass"] == 3  # at once, and not only after half of an hour


def working(world: Lending) -> Any:
    controller = world.controller()
    assert world.submit(controller, spec=replace(SPEC, ways=(LENT,)))
    world.whole_pass(controller)
    first = places.first_pass("run-1", "run-1-1")
    world.store.replace(first, b"what it begins with")  # as who packs its luggage does
    world.beat("m1", "setup", pass_left_s=3000.0)
    world.wait(30)
    assert world.whole_pass(controller) == []
    return controller


def test_what_a_machine_began_with_is_taken_back_when_it_is_up() -> None:
    world = Lending()
    working(world)
    assert world.store.list_after(places.passes("run-1")) == []


def test_a_controller_renews_it_once_and_writes_nothing_down() -> None:
    world = Lending()
    controller = working(world)
    before = world.types()
    world.beat("m1", pass_left_s=1000.0)
    for _ in range(3):
        world.wait(10)
        assert world.whole_pass(controller) == []
    assert world.asked["LendPass"] == 1
    assert world.store.list_after(places.passes("run-1")) == [places.a_pass("run-1", "run-1-1", 0)]
    assert world.types() == before
    world.wait(LENT_S)
    world.beat("m1", pass_left_s=900.0)  # it did not take it
    assert world.whole_pass(controller) == []
    assert world.asked["LendPass"] == 2


def test_a_lender_that_refuses_is_told_of_once() -> None:
    world = Lending()
    controller = working(world)
    world.refuses = NoAccess("the role is gone", hint="run setup again")
    for left_s in (1000.0, 900.0):
        world.beat("m1", pass_left_s=left_s)
        world.wait(LENT_S + 1)
        assert world.whole_pass(controller) == []
    warned = [each for each in world.events() if isinstance(each, Warned)]
    assert [(each.about, each.level) for each in warned] == [("pass", 1)]
    assert "the role is gone" in warned[0].reason


def test_passes_are_gone_when_the_run_is() -> None:
    world = Lending()
    controller = working(world)
    world.beat("m1", pass_left_s=1000.0)
    world.wait(10)
    world.whole_pass(controller)
    assert world.store.list_after(places.passes("run-1"))
    world.beat("m1", "finished", step=3600.0, exit_code=0, pass_left_s=900.0)
    for _ in range(6):
        world.wait(200)
        world.whole_pass(controller)
    assert world.types()[-1] == "Closed"
    assert world.store.list_after(places.LIVE) == []
    assert world.store.list_after(places.passes("run-1")) == []
