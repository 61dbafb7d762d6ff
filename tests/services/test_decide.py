"""What is done for a service: from its journal, and from what its replicas and its front say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from tradewind.base.errors import BadFile, InvalidValue
from tradewind.model.run import Way
from tradewind.model.service import (
    EngineSpec,
    FrontSpec,
    ReplicaGone,
    ReplicaLeaves,
    ReplicaOrdered,
    ReplicaReady,
    ReplicasWanted,
    Scaled,
    ServiceClosed,
    ServiceCommit,
    ServiceEnded,
    ServiceEvent,
    ServiceSpec,
    ServiceStopAsked,
    ServiceSubmitted,
    SpotGone,
)
from tradewind.model.serving import Serving
from tradewind.services.action import Cancel, EndFront, Forget, Record, Submit, TendFront
from tradewind.services.decide import decide, run_of
from tradewind.services.fold import fold
from tradewind.services.seen import FrontSeen, Seen, Told
from tradewind.services.state import ServiceState

AT = datetime(2026, 11, 1, tzinfo=UTC)
NAME = "chat-01-ab"


def way(market: str, price: int) -> Way:
    return Way(
        provider="local", region="aws", zone="a", instance_type="g6", market=market, nodes=1,
        price=price, rate=1.0, start_s=2.0,
    )  # fmt: skip


SPEC = ServiceSpec(
    name="chat",
    model="llama",
    front=FrontSpec(port=8080),
    engine=EngineSpec(job={"command": "x"}, at_once=4, drain_s=60),
    ways=(way("spot", 300_000), way("on_demand", 1_000_000)),
    start=2,
    fewest=1,
    most=6,
)
READY = Serving(state="ready", host="127.0.0.1", port=9000, up_s=5.0, answered_s=3.0, running=0)


class World:
    """A service whose replicas do as they are told; commits are as old as the test says."""

    def __init__(self, spec: ServiceSpec = SPEC) -> None:
        self.state = fold(())
        self.told: dict[str, Told] = {}
        self.front: FrontSeen | None = FrontSeen()
        self.mine = True
        self.ages: dict[int, float] = {}
        self.age_s = 1000.0
        self.load: tuple[float, ...] = ()
        self.doings: list[Any] = []
        self.record(ServiceSubmitted(service_id=NAME, spec=spec))

    def record(self, *events: ServiceEvent) -> None:
        number = self.state.number + 1
        self.state = fold([ServiceCommit(1, number, "w", AT, events)], self.state)

    def seen(self) -> Seen:
        return Seen(
            service_id=NAME,
            known_s=lambda number: self.ages.get(number, self.age_s),
            replicas=self.told,
            front=self.front,
            has_front=self.mine,
            load=self.load,
            requests=self.load,
        )

    def turn(self) -> list[ServiceEvent]:
        """Until there is nothing to record; answers that. What is to be done is in `doings`."""
        events: list[ServiceEvent] = []
        for _ in range(50):
            assert self.state.spec is not None
            actions = decide(self.state, self.seen(), self.state.spec.ways, 0.0)
            new = [each.event for each in actions if isinstance(each, Record)]
            if not new:
                self.doings = actions
                return events
            assert len(new) == len(actions)  # recorded first, and then done
            events += new
            self.record(*new)
        raise AssertionError(events)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.doings if isinstance(each, kind)]

    def up(self, *names: str, market: str = "") -> None:
        for name in names or tuple(self.state.replicas):
            self.told[name] = Told(phase="active", serving=READY)

    def came_up(self) -> None:
        self.turn()
        self.up()
        self.turn()


def kinds(events: list[ServiceEvent]) -> list[str]:
    return [type(each).__name__ for each in events]


def test_it_orders_what_the_plan_begins_with_and_submits_each_once() -> None:
    world = World()
    assert kinds(world.turn()) == ["ReplicaOrdered", "ReplicaOrdered"]
    assert [each.run_id for each in world.of(Submit)] == [f"{NAME}-r1", f"{NAME}-r2"]
    # Whoever was cut off before it submitted is repeated, by anyone, and orders nothing more.
    again = [each.run_id for each in world.of(Submit)]
    assert world.turn() == []
    assert [each.run_id for each in world.of(Submit)] == again
    world.told[f"{NAME}-r1"] = Told(phase="waiting")
    world.turn()
    assert [each.run_id for each in world.of(Submit)] == [f"{NAME}-r2"]


def test_who_may_not_use_the_computer_orders_and_submits_nothing() -> None:
    world = World()
    world.mine, world.front = False, None
    assert decide(world.state, world.seen(), (), 0.0) == []


def test_only_what_is_ready_gets_requests() -> None:
    world = World()
    world.turn()
    world.told[f"{NAME}-r1"] = Told(phase="active", serving=READY)
    world.told[f"{NAME}-r2"] = Told(phase="active", serving=replace(READY, state="warming"))
    assert kinds(world.turn()) == ["ReplicaReady"]
    (front,) = world.of(TendFront)
    assert [(each.name, each.draining) for each in front.backends] == [("r1", False)]
    # One whose engine starts again is taken out, though it was ready once.
    world.told[f"{NAME}-r1"] = Told(phase="active", serving=replace(READY, state="starting"))
    world.turn()
    assert world.of(TendFront)[0].backends == ()


def test_a_notice_is_answered_at_once_with_another() -> None:
    world = World()
    world.came_up()
    world.told[f"{NAME}-r1"] = Told(phase="active", serving=READY, lost="its machine is taken")
    events = world.turn()
    assert kinds(events) == ["ReplicaLeaves", "ReplicaOrdered"]
    assert [each.draining for each in world.of(TendFront)[0].backends] == [True, False]
    assert [each.run_id for each in world.of(Cancel)] == [f"{NAME}-r1"]
    world.told[f"{NAME}-r1"] = Told(phase="closed", outcome="cancelled")
    assert kinds(world.turn()) == ["ReplicaGone"]


def test_a_replica_is_given_back_when_it_has_answered() -> None:
    world = World()
    world.came_up()
    world.age_s = 1.0  # nothing is old
    world.record(ReplicasWanted(count=1, load=0.1, reason="test"))
    assert kinds(world.turn()) == ["ReplicaLeaves"]
    world.front = FrontSeen(current=1, busy={"r2": 1})
    world.turn()
    assert world.of(Cancel) == []  # r2 answers still
    world.front = FrontSeen(current=0, busy={"r2": 0})
    world.turn()
    assert [each.run_id for each in world.of(Cancel)] == [f"{NAME}-r2"]


def test_what_never_ends_is_cut_off_after_its_time() -> None:
    world = World()
    world.came_up()
    world.record(ReplicasWanted(count=1, load=0.1, reason="test"))
    world.front = FrontSeen(current=1, busy={"r2": 1})
    world.turn()
    assert len(world.of(Cancel)) == 1  # commits are 1000 s old, and 60 s are given


def test_a_front_that_does_not_answer_is_no_silence() -> None:
    world = World()
    world.came_up()
    world.front = None
    world.load = (0.0,) * 500
    assert world.turn() == []
    assert world.state.wanted == 2


def test_load_brings_more_at_once_and_fewer_only_after_the_hold() -> None:
    world = World()
    world.came_up()
    world.load = (3.0,) * 30
    (wanted, *orders) = world.turn()
    assert isinstance(wanted, ReplicasWanted)
    assert wanted.count > 3
    assert len(orders) == wanted.count - 2
    world.up()
    world.turn()
    world.load = (3.0,) * 10 + (0.5,) * 5
    assert world.turn() == []  # the most of the last minutes is what counts
    world.load = (0.5,) * 200
    world.turn()
    assert world.state.wanted == 1


def test_never_below_the_floor_nor_above_the_most() -> None:
    world = World()
    world.came_up()
    world.load = (0.0,) * 500
    world.turn()
    assert world.state.wanted == 1
    world.load = (100.0,) * 500
    world.turn()
    assert world.state.wanted == 6
    world.record(Scaled(fewest=3, most=3, reason="test"))
    world.turn()
    assert world.state.wanted == 3


def test_at_zero_a_held_request_wakes_it() -> None:
    world = World(replace(SPEC, fewest=0, start=1))
    world.came_up()
    world.load = (0.0,) * 500
    world.turn()
    assert world.state.wanted == 0
    world.told[f"{NAME}-r1"] = Told(phase="closed", outcome="cancelled")
    world.turn()
    assert world.state.replicas == {}
    world.front, world.load = FrontSeen(current=1, held=1), ((0.0,) * 499 + (0.25,))
    assert kinds(world.turn()) == ["ReplicasWanted", "ReplicaOrdered"]


def test_spot_that_is_not_to_be_had_gives_way_to_on_demand() -> None:
    world = World()
    world.turn()
    assert {each.market for each in world.state.replicas.values()} == {"spot"}
    for name in world.state.replicas:
        world.told[name] = Told(phase="waiting", refused="no capacity")
    events = world.turn()
    assert kinds(events)[:3] == ["SpotGone", "ReplicaLeaves", "ReplicaLeaves"]
    assert {e.market for e in events if isinstance(e, ReplicaOrdered)} == {"on_demand"}


def test_what_must_be_on_demand_is() -> None:
    world = World(replace(SPEC, on_demand=1, spare=1))
    world.turn()
    assert sorted(each.market for each in world.state.replicas.values()) == [
        "on_demand", "spot", "spot",
    ]  # fmt: skip


def test_engines_that_fail_at_once_end_it_with_their_last_lines() -> None:
    world = World(replace(SPEC, start=1))
    for _ in range(2):
        world.turn()
        (name,) = world.state.replicas
        world.told[name] = Told(
            phase="closed", outcome="failed", blame=True, reason="exit code 3", tail="no memory"
        )
    events = world.turn()
    assert kinds(events)[-1] == "ServiceEnded"
    assert (world.state.outcome, world.state.tail) == ("failed", "no memory")
    assert world.of(EndFront)


def test_once_it_was_ready_failures_only_slow_it_down() -> None:
    world = World(replace(SPEC, start=1))
    world.came_up()
    for _ in range(4):
        (name,) = world.state.replicas
        world.told[name] = Told(phase="closed", outcome="failed", blame=True, tail="boom")
        world.turn()
        world.age_s = 1000.0
        world.turn()
    assert world.state.phase == "up"
    world.age_s = 0.0
    (name,) = world.state.replicas
    world.told[name] = Told(phase="closed", outcome="failed", blame=True, tail="boom")
    assert kinds(world.turn()) == ["ReplicaGone"]  # the next one is ordered by and by


def test_stopping_lets_answers_finish_and_closes_when_all_is_gone() -> None:
    world = World()
    world.came_up()
    world.age_s = 1.0
    world.record(ServiceStopAsked(reason="test"))
    assert kinds(world.turn()) == ["ReplicaLeaves", "ReplicaLeaves"]
    assert world.of(EndFront)
    assert not world.of(Cancel)  # the front finishes what it has
    world.front = None
    world.turn()
    assert len(world.of(Cancel)) == 2
    for name in list(world.state.replicas):
        world.told[name] = Told(phase="closed", outcome="cancelled")
    assert kinds(world.turn())[-2:] == ["ServiceEnded", "ServiceClosed"]
    assert world.of(Forget)
    assert world.state.phase == "closed"


def test_a_ready_replica_stays_until_another_is_ready() -> None:
    """The surplus is what is not ready, whatever it costs."""
    world = World(replace(SPEC, start=3))
    world.turn()
    world.up(f"{NAME}-r1")
    world.turn()
    world.record(ReplicasWanted(count=1, load=0.1, reason="test"))
    events = world.turn()
    leaving = {each.run_id for each in events if isinstance(each, ReplicaLeaves)}
    assert leaving == {f"{NAME}-r2", f"{NAME}-r3"}


def test_a_replica_is_a_run_of_one_market() -> None:
    world = World()
    world.turn()
    replica = world.state.replicas[f"{NAME}-r1"]
    spec = run_of(world.state, SPEC, replica)
    assert {each.market for each in spec.ways} == {replica.market}
    assert spec.tags["service"] == NAME
    assert not spec.steps


def test_a_journal_that_cannot_be_is_refused() -> None:
    world = World()
    world.turn()
    for wrong in (
        ReplicaOrdered(number=1, run_id=f"{NAME}-r1", market="spot", tries=1, reason=""),
        ReplicaReady(run_id="x", machine_s=0, answered_s=0, warm_s=0, reason=""),
        ReplicaGone(run_id="x", outcome="", failed=False, reason=""),
        ServiceClosed(reason=""),
    ):
        with pytest.raises(BadFile):
            world.record(wrong)
    with pytest.raises(BadFile):
        fold([ServiceCommit(1, 9, "w", AT, (SpotGone(reason=""),))], ServiceState())
    with pytest.raises(InvalidValue):
        replace(SPEC, fewest=9)
    world.record(ServiceEnded(outcome="failed", reason=""))


PLACES = (
    replace(way("spot", 300_000), zone="a"),
    replace(way("spot", 310_000), zone="b"),
    replace(way("spot", 320_000), zone="c"),
    way("on_demand", 1_000_000),
)


def places(world: World) -> list[str]:
    return [each.place.rpartition("/")[2] for each in world.state.staying if each.market == "spot"]


def test_spot_replicas_are_spread_over_places_and_each_is_bought_in_its_own() -> None:
    world = World(replace(SPEC, ways=PLACES, start=5))
    world.turn()
    assert sorted(places(world)) == ["a", "a", "b", "b", "c"]
    for replica in world.state.staying:
        (only,) = run_of(world.state, replace(SPEC, ways=PLACES), replica).ways
        assert only.zone == replica.place.rpartition("/")[2]


def test_a_place_that_has_none_is_passed_over_for_the_others() -> None:
    world = World(replace(SPEC, ways=PLACES, start=3))
    world.turn()
    (gone,) = [each for each in world.state.staying if each.place.endswith("/b")]
    world.told[gone.run_id] = Told(phase="waiting", refused="no capacity")
    world.ages = {world.state.number + 1: 0.0}
    events = world.turn()
    assert kinds(events) == ["SpotGone", "ReplicaLeaves", "ReplicaOrdered"]
    assert "b" not in places(world)
    assert all(each.market == "spot" for each in world.state.staying)


def test_spares_stand_in_for_the_fullest_place_where_it_is_taken_often() -> None:
    world = World(replace(SPEC, ways=PLACES, start=4, most=20, goal=0.99))
    world.age_s = 600.0  # nothing is known yet but the guess
    world.turn()
    assert len(world.state.staying) == 4 + 2
    world = World(replace(SPEC, ways=PLACES, start=4, most=20, goal=0.95))
    world.age_s = 600.0
    world.turn()
    assert len(world.state.staying) == 4


def test_what_is_on_demand_for_want_of_spot_is_replaced_when_there_may_be_some_again() -> None:
    world = World()
    world.turn()
    for name in world.state.replicas:
        world.told[name] = Told(phase="waiting", refused="no capacity")
    world.age_s = 1.0
    world.turn()
    for name, replica in world.state.replicas.items():
        done = Told(phase="active", serving=READY)
        world.told[name] = done if not replica.leaving_at else Told(phase="closed")
    world.turn()
    assert {each.market for each in world.state.staying} == {"on_demand"}
    assert world.turn() == []  # a moment ago there was no spot
    world.age_s = 2000.0
    ordered = [each for each in world.turn() if isinstance(each, ReplicaOrdered)]
    assert [each.market for each in ordered] == ["spot", "spot"]
    assert sum(each.market == "on_demand" for each in world.state.staying) == 2  # they answer
    world.told[ordered[0].run_id] = Told(phase="active", serving=READY)
    world.turn()
    assert sum(each.market == "on_demand" for each in world.state.staying) == 1


def test_a_replica_that_no_machine_is_found_for_does_not_keep_others_from_being_given_back() -> (
    None
):
    world = World(replace(SPEC, ways=(way("on_demand", 1_000_000),), start=3))
    world.turn()
    world.up(f"{NAME}-r1", f"{NAME}-r2")
    world.told[f"{NAME}-r3"] = Told(phase="waiting", refused="no capacity")
    world.turn()
    world.record(ReplicasWanted(count=1, load=0.1, reason="test"))
    world.turn()
    assert len(world.state.staying) == 1
    assert world.state.staying[0].ready_at


def test_a_replica_that_is_silent_for_a_while_is_counted_again() -> None:
    world = World()
    world.came_up()
    world.told[f"{NAME}-r1"] = Told(phase="active")  # it says nothing
    assert world.turn() == []  # and is not replaced: its machine is not lost
    assert [each.name for each in world.of(TendFront)[0].backends] == ["r2"]
    world.up(f"{NAME}-r1")
    assert world.turn() == []
    assert [each.name for each in world.of(TendFront)[0].backends] == ["r1", "r2"]


def test_what_was_chosen_is_not_chosen_again_in_each_pass() -> None:
    world = World()
    world.came_up()
    world.load = (1.0,) * 3000
    assert "RuleChosen" in kinds(world.turn())
    world.age_s = 60.0
    assert "RuleChosen" not in kinds(world.turn())
