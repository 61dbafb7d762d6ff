"""Rented fronts: ordered and replaced, told, added up; and when a replica may go."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.services.test_decide import NAME, READY, SPEC, World, kinds
from tradewind.model.circle import Circle
from tradewind.model.frontorder import Backend, FrontOrder
from tradewind.model.service import ServiceStopAsked
from tradewind.model.serving import FrontTold, Serving
from tradewind.services import fronting
from tradewind.services.action import Cancel, EndFront, Forget, Submit, TendFront
from tradewind.services.seen import Seen, Told

RENTED = replace(
    SPEC,
    fronts=2,
    front_ways=SPEC.ways[1:],
    front_job={"command": "front"},
    engine=replace(SPEC.engine, port=8000),
    front=replace(SPEC.front, ranges=("10.0.0.0/8",)),
)
F1, F2, R1 = f"{NAME}-f1", f"{NAME}-f2", f"{NAME}-r1"


class Rented(World):
    """Its fronts carry out what they are told at once, unless a test says what they say."""

    def __init__(self) -> None:
        super().__init__(RENTED)
        self.fronts: dict[str, Told] = {}
        self.orders: dict[str, FrontOrder] = {}

    def seen(self) -> Seen:
        front = fronting.together(self.state, self.fronts, self.orders)
        return replace_seen(super().seen(), fronts=self.fronts, front=front)

    def say(self, run_id: str, **front: Any) -> None:
        serving = Serving(state="ready", host="10.0.0.9", port=8080, front=FrontTold(**front))
        self.fronts[run_id] = Told(phase="active", serving=serving)

    def came_up(self) -> None:
        self.turn()
        self.say(F1, order=1)
        self.say(F2, order=1)
        super().came_up()


def replace_seen(seen: Seen, **more: Any) -> Seen:
    return replace(seen, **more)


def order(number: int, **backends: bool) -> FrontOrder:
    """Each replica with whether it drains."""
    told = tuple(Backend(name, "10.0.0.1", 8000, 4, drains) for name, drains in backends.items())
    return FrontOrder(
        number=number, front=RENTED.front, health="/health", backends=told, in_time_s=1.0
    )


def test_fronts_are_ordered_as_runs_in_the_circle_of_the_service() -> None:
    world = Rented()
    events = world.turn()
    assert kinds(events) == ["FrontOrdered"] * 2 + ["ReplicaOrdered"] * 2
    submitted = {each.run_id: each.spec for each in world.of(Submit)}
    assert set(submitted) == {F1, F2, R1, f"{NAME}-r2"}
    circle = Circle(name=NAME, port=8000, open_port=8080, ranges=("10.0.0.0/8",))
    assert {spec.circle for spec in submitted.values()} == {circle}
    assert submitted[F1].job == {"command": "front"}
    assert {way.market for way in submitted[F1].ways} == {"on_demand"}
    # Who may not rent there submits nothing and tells nobody.
    world.mine = False
    assert world.turn() == []
    assert world.doings == []


def test_a_front_that_dies_is_replaced_and_the_other_counts() -> None:
    world = Rented()
    world.came_up()
    world.say(F2, order=1, current=3, total=7, busy={"r1": 3}, up=("r1",))
    world.fronts[F1] = Told(phase="active", lost="its machine is gone")
    assert kinds(world.turn()) == ["FrontLeaves", "FrontOrdered"]
    assert [each.run_id for each in world.of(Cancel)] == [F1]
    front = world.seen().front
    assert front is not None
    assert (front.current, front.total, front.busy) == (3, 7, {"r1": 3})
    world.fronts[F1] = Told(phase="closed", outcome="cancelled")
    assert kinds(world.turn()) == ["FrontGone"]
    # None answers: that is no silence.
    world.fronts[F2] = Told(phase="active")
    assert world.seen().front is None


def test_a_replica_goes_when_every_front_has_let_go_of_it() -> None:
    world = Rented()
    world.came_up()
    world.orders = {F1: order(2, r1=True, r2=False), F2: order(2, r1=True, r2=False)}
    world.say(F1, order=1)
    world.say(F2, order=2)
    world.ages = dict.fromkeys(range(100), 0.0)
    world.record(leaves())
    world.turn()
    assert [each.run_id for each in world.of(Cancel)] == []  # the first may send something yet
    world.say(F1, order=2, busy={"r1": 1})
    world.turn()
    assert [each.run_id for each in world.of(Cancel)] == []  # and it answers still
    world.say(F1, order=2)
    world.turn()
    assert [each.run_id for each in world.of(Cancel)] == [R1]


def leaves() -> Any:
    from tradewind.model.service import ReplicaLeaves

    return ReplicaLeaves(run_id=R1, lost=False, reason="test")


def test_it_stops_when_the_last_answer_is_given() -> None:
    world = Rented()
    world.came_up()
    world.ages = dict.fromkeys(range(100), 0.0)
    world.record(ServiceStopAsked(reason="test"))
    assert "ServiceEnded" not in kinds(world.turn())
    assert len(world.of(EndFront)) == 1
    assert world.of(Cancel) == []
    world.say(F1, order=3, finished=True)
    world.say(F2, order=3)
    assert kinds(world.turn()) == ["FrontLeaves"]
    assert [each.run_id for each in world.of(Cancel)] == [F1]
    world.say(F2, order=3, finished=True)
    assert kinds(world.turn()) == ["FrontLeaves"]
    cancelled = {each.run_id for each in world.of(Cancel)}
    assert cancelled == {F1, F2, R1, f"{NAME}-r2"}
    for run_id in cancelled:
        told = world.fronts if run_id in (F1, F2) else world.told
        told[run_id] = Told(phase="closed", outcome="cancelled")
    events = kinds(world.turn())
    assert events[-2:] == ["ServiceEnded", "ServiceClosed"]
    assert len(world.of(Forget)) == 1


def test_a_front_that_never_says_that_it_has_finished_is_given_up() -> None:
    world = Rented()
    world.came_up()
    world.record(ServiceStopAsked(reason="test"))
    world.turn()
    assert world.state.staying_fronts == []


def test_fronts_that_fail_before_any_was_ready_end_the_service() -> None:
    world = Rented()
    world.turn()
    for run_id in (F1, F2):
        world.fronts[run_id] = Told(
            phase="closed", outcome="failed", blame=True, reason="exit code 1", tail="no haproxy"
        )
    events = world.turn()
    assert "ServiceEnded" in kinds(events)
    assert world.state.outcome == "failed"
    assert world.state.tail == "no haproxy"


def test_orders_say_what_tending_says() -> None:
    world = Rented()
    world.came_up()
    (tend,) = world.of(TendFront)
    assert [each.name for each in tend.backends] == ["r1", "r2"]
    told = fronting.order_of(tend, RENTED, None)
    assert (told.fronts, told.ending) == (2, False)
    assert told.backends == tend.backends
    ending = fronting.order_of(EndFront(NAME, 60.0), RENTED, told)
    assert ending == replace(told, ending=True)
    assert READY.news == ("ready",)
