from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.controller.fakes import World
from tests.lifecycle.builders import NOW, SPEC, WAY, a_machine, with_tokens
from tradewind.base.errors import BadFile, InvalidValue, SourceFailed
from tradewind.journal import journal
from tradewind.lifecycle.next import MOST_TROUBLES
from tradewind.model import bounds, places
from tradewind.model.event import (
    Abandoned,
    CancelAsked,
    Ended,
    LaunchRefused,
    LaunchUnknown,
    LegOver,
    MachinesFound,
    Stored,
    Submitted,
)
from tradewind.model.timing import GRACE_S, LOST_S
from tradewind.model.usage import Rates, Usage
from tradewind.providers.base import LaunchMachines, OutcomeUnknown, Refused
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import Create, Delete

TOKENS = replace(SPEC, ways=(with_tokens(),))


def started(world: World, **more: Any) -> Any:
    """A controller whose run has a machine that works."""
    controller = world.controller(**more)
    assert world.submit(controller)
    assert world.whole_pass(controller) == []
    world.beat("m1")
    world.wait(30)
    assert world.whole_pass(controller) == []
    return controller


def test_a_run_from_its_submission_to_its_end() -> None:
    world = World()
    controller = world.controller()
    assert world.submit(controller)
    assert world.store.list_after(places.LIVE) == [places.LIVE + "run-1"]
    world.whole_pass(controller)
    assert world.types() == ["Submitted", "LegRequested", "MachinesFound"]
    assert [request.launch_id for request in world.cloud.launches] == ["run-1-1"]
    world.beat("m1", "setup")
    world.wait(60)
    world.whole_pass(controller)
    assert world.types()[3:] == ["LegUp"]
    world.beat("m1", step=600.0, saved=500.0, beat=2)
    world.wait(60)
    world.whole_pass(controller)
    assert world.types()[4:] == ["Progress"]
    world.beat("m1", "finished", step=3600.0, saved=500.0, exit_code=0, beat=3)
    world.wait(60)
    world.whole_pass(controller)
    assert world.types()[5:] == ["LegOver", "Ended"]
    assert world.cloud.terminated == ["m1"]
    world.wait(60)
    world.whole_pass(controller)
    assert world.types()[7:] == ["MachineEnded"]
    world.wait(120)
    world.whole_pass(controller)
    assert world.types()[8:] == ["Closed"]
    assert world.store.list_after(places.LIVE) == []
    world.asked.clear()
    assert world.whole_pass(controller) == []
    assert world.asked == {"ListAll": 1, "ListAfter": 1}


def test_the_last_words_of_machines_are_recorded_when_a_run_is_closed() -> None:
    """A machine goes on with its store after its end is told, and until it is off."""
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.whole_pass(controller)
    said = Usage(writes=10)
    world.beat("m1", "finished", exit_code=0, usage=said)
    world.wait(60)
    world.whole_pass(controller)
    assert world.types()[3:] == ["MachineUsed", "LegOver", "Ended"]
    world.beat("m1", "finished", exit_code=0, beat=2, usage=said + said)
    for _ in range(3):
        world.wait(120)
        world.whole_pass(controller)
    assert world.types()[6:] == ["MachineEnded", "MachineUsed", "Closed"]
    state = controller.memory.runs["run-1"].state
    assert state.used == {"m1": said + said}


def test_what_a_run_has_left_in_the_store_is_weighed_when_it_is_closed() -> None:
    """Where that has a price, and the store tells it."""

    class Scales(MemoryStore):
        def weigh(self, prefix: str) -> list[tuple[int, float]]:
            assert prefix == "runs/run-1/"
            now = NOW + world.passed_s
            return [(1000, now - 50), (10, now - 1), (5, now + 9)]

    for store, rates, weighed in (
        (Scales(), Rates(gb_month=23_000), [Stored(bytes=1015, byte_s=50_010)]),
        (MemoryStore(), Rates(gb_month=23_000), []),
        (Scales(), None, []),
    ):
        world = World(store)
        controller = world.controller()
        world.submit(controller, spec=replace(SPEC, ways=(replace(WAY, rates=rates),)))
        world.whole_pass(controller)
        world.beat("m1", "finished", exit_code=0)
        for _ in range(4):
            world.wait(120)
            world.whole_pass(controller)
        assert world.types()[-1] == "Closed"
        assert [event for event in world.events() if isinstance(event, Stored)] == weighed


def test_the_supervisor_is_told_from_where_to_read() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    asked: list[Any] = []
    world.meanwhile = asked.append
    world.whole_pass(controller)
    assert [step.after for step in asked if isinstance(step, LaunchMachines)] == [2]


def test_a_run_is_submitted_once() -> None:
    world = World()
    first, second = world.controller("w1"), world.controller("w2")
    assert world.submit(first)
    assert not world.submit(second, spec=replace(SPEC, name="another"))
    (event,) = world.events()
    assert isinstance(event, Submitted)
    assert event.spec == SPEC


# -- buying ----------------------------------------------------------------------------------------


def test_it_adopts_what_carries_the_launch_id_already() -> None:
    """Whoever bought them was cut off before it could tell."""
    world = World()
    world.submit(world.controller("w1"), spec=TOKENS)
    world.cloud.lose_answer = OutcomeUnknown("the connection broke")
    world.whole_pass(world.controller("w1"))
    assert world.types()[1:] == ["LegRequested", "LaunchUnknown"]
    world.whole_pass(world.controller("w2"))
    assert len(world.cloud.launches) == 1
    found = world.events()[-1]
    assert isinstance(found, MachinesFound)
    assert [machine.machine_id for machine in found.machines] == ["m1"]


def test_it_lists_once_more_right_before_it_buys() -> None:
    """What another has bought since this pass began shows there."""
    world = World()
    controller = world.controller("w1")
    world.submit(controller, spec=TOKENS)

    def buys(step: Any) -> None:
        if isinstance(step, Create):
            world.cloud.machines["m7"] = a_machine("m7")

    world.meanwhile = buys
    world.whole_pass(controller)
    assert world.cloud.launches == []
    found = world.events()[-1]
    assert isinstance(found, MachinesFound)
    assert "already" in found.reason
    assert [machine.machine_id for machine in found.machines] == ["m7"]


def test_what_is_not_listed_first_is_not_bought() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)

    def breaks(step: Any) -> None:
        if isinstance(step, Create) and not world.types()[1:]:
            world.cloud.next_error["list"] = SourceFailed("no answer")

    world.meanwhile = breaks
    world.whole_pass(controller)
    assert world.cloud.launches == []
    refused = world.events()[-1]
    assert isinstance(refused, LaunchRefused)
    assert "could not be listed" in refused.reason


def test_a_refusal_is_recorded_with_its_kind() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.cloud.next_error["launch"] = Refused("no_capacity", "sold out")
    world.whole_pass(controller)
    assert world.events()[-1] == LaunchRefused(leg=1, kind="no_capacity", reason="sold out")


def test_a_refusal_is_recorded_with_what_would_help() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.cloud.next_error["launch"] = Refused("no_quota", "Contact Support.", hint="ask for more")
    world.whole_pass(controller)
    told = [event.reason for event in world.events() if isinstance(event, LaunchRefused)]
    assert told == ["Contact Support; ask for more"]


def test_a_launch_of_unknown_outcome_is_recorded_and_not_repeated() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.cloud.next_error["launch"] = OutcomeUnknown("the connection broke")
    world.whole_pass(controller)
    assert world.events()[-1] == LaunchUnknown(leg=1, reason="the connection broke")
    world.wait(60)
    world.whole_pass(controller)
    assert world.cloud.launches == []
    world.wait(60)
    world.whole_pass(controller)
    over = world.events()[-1]
    assert isinstance(over, LegOver)
    assert over.cause == "launch_unknown"


def test_a_purchase_that_comes_to_light_late_is_ended() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.cloud.lose_answer = OutcomeUnknown("the connection broke")
    world.whole_pass(controller)
    hidden = world.cloud.machines.pop("m1")  # the listing lags
    world.wait(120)
    world.whole_pass(controller)
    world.cloud.machines["m1"] = hidden
    world.wait(15)
    world.whole_pass(controller)
    assert "MachinesFound" in world.types()
    assert world.cloud.terminated == ["m1"]


# -- two of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [SPEC, TOKENS], ids=["without tokens", "with tokens"])
@pytest.mark.parametrize("after", range(9))
def test_of_two_controllers_one_wins(spec: Any, after: int) -> None:
    """Wherever the second comes in between: one purchase is recorded, and one is made."""
    world = World()
    first, second = world.controller("w1"), world.controller("w2")
    world.submit(first, spec=spec)
    done: list[Any] = []

    def comes_in(step: Any) -> None:
        if len(done) == after:
            world.whole_pass(second)
        done.append(step)

    world.meanwhile = comes_in
    world.whole_pass(first)
    assert len(done) > after  # it did come in
    world.meanwhile = None
    world.whole_pass(first)
    world.whole_pass(second)
    assert world.types() == ["Submitted", "LegRequested", "MachinesFound"]
    assert {request.launch_id for request in world.cloud.launches} == {"run-1-1"}
    assert len(world.cloud.machines) == 1


def test_a_lost_heartbeat_takes_each_controller_its_own_time() -> None:
    world = World()
    first = started(world)
    world.wait(LOST_S - 1)
    second = world.controller("w2")
    world.whole_pass(second)  # for it, the heartbeat is new
    world.wait(LOST_S - 1)
    assert world.types()[-1] == "LegUp"
    world.whole_pass(second)
    assert world.types()[-1] == "LegUp"
    world.whole_pass(first)
    over = next(event for event in world.events() if isinstance(event, LegOver))
    assert over.cause == "lost"


# -- one run and another ---------------------------------------------------------------------------


def test_a_damaged_journal_does_not_stop_the_others() -> None:
    world = World()
    controller = world.controller()
    for run_id in ("run-0", "run-1", "run-2"):
        world.submit(controller, run_id)
    world.store.replace("runs/run-1/journal/00000000000000000001.json", b"{]")
    ((run_id, error),) = world.whole_pass(controller)
    assert run_id == "run-1"
    assert isinstance(error, BadFile)
    for run_id in ("run-0", "run-2"):
        assert world.types(run_id) == ["Submitted", "LegRequested", "MachinesFound"]


def test_a_journal_that_no_controller_wrote_does_not_stop_the_others() -> None:
    world = World()
    controller = world.controller()
    for run_id in ("run-1", "run-2"):
        world.submit(controller, run_id)
    twice = Submitted(run_id="run-1", spec=SPEC)
    at = journal.moment(0)
    assert journal.append(world.store, "run-1", 2, writer="x", at=at, events=[twice])
    ((run_id, error),) = world.whole_pass(controller)
    assert (run_id, type(error)) == ("run-1", BadFile)
    assert world.types("run-2")[-1] == "MachinesFound"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b'"rate":1.0', b'"rate":0.0'),
        (b'"nodes":1', b'"nodes":0'),
        (b'"billing_step_s":1,', b'"billing_step_s":0,'),
    ],
)
def test_a_run_that_cannot_be_reckoned_does_not_stop_the_others(good: bytes, bad: bytes) -> None:
    world = World()
    controller = world.controller()
    for run_id in ("run-1", "run-2"):
        world.submit(controller, run_id)
    key = "runs/run-1/journal/00000000000000000001.json"
    data = world.store.get(key)
    assert good in data
    world.store.replace(key, data.replace(good, bad))
    ((run_id, error),) = world.whole_pass(controller)
    assert (run_id, type(error)) == ("run-1", BadFile)
    assert world.types("run-2")[-1] == "MachinesFound"


def test_what_could_never_be_done_cannot_be_asked_for() -> None:
    for wrong in ({"rate": 0.0}, {"rate": -1.0}, {"rate": float("nan")}, {"nodes": 0}):
        with pytest.raises(InvalidValue):
            replace(WAY, **wrong)
    with pytest.raises(InvalidValue, match="billing step"):
        replace(WAY.facts, billing_step_s=0)
    with pytest.raises(InvalidValue, match="no way"):
        replace(SPEC, ways=())


def test_a_provider_that_cannot_be_listed_stops_nobody() -> None:
    world = World()
    controller = started(world)
    world.cloud.next_error["list"] = SourceFailed("no answer")
    world.beat("m1", saved=100.0, beat=2)
    ((provider, error),) = world.whole_pass(controller)
    assert (provider, error.message) == ("cloud", "no answer")
    assert world.types()[-1] == "Progress"


def test_a_termination_that_fails_is_asked_again() -> None:
    world = World()
    controller = started(world)
    world.beat("m1", "finished", exit_code=0, beat=2)
    world.cloud.next_error["terminate"] = SourceFailed("no answer")
    assert world.whole_pass(controller) == []
    assert world.cloud.terminated == []
    assert world.whole_pass(controller) == []
    assert world.cloud.terminated == ["m1"]


def test_what_is_not_ours_to_use_is_not_ended_either() -> None:
    """A journal may name any machine."""
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.whole_pass(controller)
    world.run(controller.cancel("run-1", "enough"))
    other = world.controller("w2")
    other._may_use = lambda run_id, provider: False
    world.wait(60)
    world.whole_pass(other)
    assert world.cloud.terminated == []
    world.whole_pass(controller)
    assert world.cloud.terminated == ["m1"]


def test_an_idle_run_costs_one_look_into_its_journal_and_one_heartbeat() -> None:
    world = World()
    controller = started(world)
    world.asked.clear()
    assert world.whole_pass(controller) == []
    # One listing of the provider and one of what is live are for all runs together.
    assert world.asked == {"ListAll": 1, "ListAfter": 1, "Find": 2}


def test_an_idle_gangs_heartbeats_are_read_at_once() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller, spec=replace(SPEC, ways=(replace(WAY, nodes=4),)))
    world.whole_pass(controller)
    for name in ("m1", "m2", "m3", "m4"):
        world.beat(name)
    world.whole_pass(controller)
    assert world.types()[-1] == "LegUp"
    world.asked.clear()
    world.whole_pass(controller)
    assert world.asked == {"ListAll": 1, "ListAfter": 1, "Find": 1, "GetMany": 1}


def test_a_heartbeat_that_cannot_be_read_is_none() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.whole_pass(controller)
    world.store.replace(places.heartbeat("run-1", "m1"), b"{]")
    assert world.whole_pass(controller) == []
    assert world.types()[-1] == "MachinesFound"


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_heartbeat_larger_than_any_is_silence(nodes: int) -> None:
    """It is not read, the other machines' are, and its own machine is lost like a silent one."""
    world = World()
    controller = world.controller()
    world.submit(controller, spec=replace(SPEC, ways=(replace(WAY, nodes=nodes),)))
    world.whole_pass(controller)
    for number in range(nodes):
        world.beat(f"m{number + 1}")
    world.whole_pass(controller)
    assert world.types()[-1] == "LegUp"
    world.store.replace(places.heartbeat("run-1", "m1"), b" " * (bounds.HEARTBEAT + 1))
    for _ in range(2):
        assert world.whole_pass(controller) == []
    assert world.types()[-1] == "LegUp"
    world.wait(LOST_S)
    if nodes > 1:
        world.beat("m2", beat=2)
    assert world.whole_pass(controller) == []
    over = next(event for event in world.events() if isinstance(event, LegOver))
    assert over.cause == "disbelieved"
    pulses = controller.memory.runs["run-1"].pulses
    assert all(len(pulse.data) <= bounds.HEARTBEAT for pulse in pulses.values())


@pytest.mark.parametrize("comes_up", [True, False])
def test_machines_that_are_never_believed_are_no_failure_of_the_job(comes_up: bool) -> None:
    """Whoever overwrites what they say: their run buys others, later each time, and goes on."""
    world = World()
    controller = world.controller()
    world.submit(controller)
    for _ in range(2 * MOST_TROUBLES):
        for _ in range(3):
            world.wait(300)  # after the longest pause
            world.whole_pass(controller)
            if isinstance(world.events()[-1], MachinesFound):
                break
        last = world.events()[-1]
        assert isinstance(last, MachinesFound)
        machine, name = last.machines[0], last.machines[0].machine_id
        if comes_up:
            world.beat(name, leg=machine.leg)
            assert world.whole_pass(controller) == []
        world.store.replace(places.heartbeat("run-1", name), b"{]")
        assert world.whole_pass(controller) == []
        world.wait(1000)
        assert world.whole_pass(controller) == []
    overs = [event for event in world.events() if isinstance(event, LegOver)]
    assert {over.cause for over in overs} == {"disbelieved"}
    assert "cannot be believed" in overs[0].reason
    state = controller.memory.runs["run-1"].state
    assert state.outcome == ""
    assert state.barren >= MOST_TROUBLES
    assert {refusal.kind for refusal in state.refusals.values()} == {"disbelieved"}


# -- what nobody asks for any more -----------------------------------------------------------------


def test_a_submission_that_was_cut_off_is_abandoned() -> None:
    world = World()
    controller = world.controller()
    generator = controller.submit("run-1", SPEC)
    world.perform(next(generator))  # the marker, and no more
    generator.close()
    world.whole_pass(controller)
    world.wait(GRACE_S - 1)
    world.whole_pass(controller)
    assert world.events() == []
    world.wait(1)
    world.whole_pass(controller)
    (event,) = world.events()
    assert isinstance(event, Abandoned)
    assert world.store.list_after(places.LIVE) == []
    assert not world.submit(controller)  # too late now, and nobody looks at it again
    world.whole_pass(controller)
    assert world.store.list_after(places.LIVE) == []


def test_a_cancelled_run_saves_and_ends() -> None:
    world = World()
    controller = started(world)
    assert world.run(world.controller("user").cancel("run-1", "no longer needed"))
    world.whole_pass(controller)
    assert world.types()[-2:] == ["CancelAsked", "LegDraining"]
    world.beat("m1", "stopped", saved=40.0, beat=2)
    world.wait(30)
    world.whole_pass(controller)
    end = world.events()[-1]
    assert end == Ended(outcome="cancelled", reason="no longer needed")
    assert world.cloud.terminated == ["m1"]


def test_cancelling_twice_is_cancelling_once() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    assert world.run(controller.cancel("run-1", "a"))
    assert world.run(world.controller("w2").cancel("run-1", "b"))
    asked = [event for event in world.events() if isinstance(event, CancelAsked)]
    assert [event.reason for event in asked] == ["a"]


def test_there_is_nothing_to_cancel() -> None:
    world = World()
    controller = world.controller()
    assert not world.run(controller.cancel("run-1", "a"))
    world.submit(controller)
    world.run(controller.cancel("run-1", "a"))
    world.whole_pass(controller)
    assert world.types() == ["Submitted", "CancelAsked", "Ended", "Closed"]
    assert not world.run(controller.cancel("run-1", "again"))


def test_cancelling_among_others_who_write() -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)

    def writes(step: Any) -> None:
        if isinstance(step, Create):
            world.whole_pass(controller)  # takes the number that the other is about to

    world.meanwhile = writes
    assert world.run(world.controller("user").cancel("run-1", "a"))
    assert world.types()[1:4] == ["LegRequested", "MachinesFound", "CancelAsked"]


def test_a_machine_of_no_run_is_swept_up() -> None:
    world = World()
    controller = world.controller()
    world.cloud.machines["m9"] = a_machine("m9", run_id="run-9", launch_id="run-9-1")
    world.whole_pass(controller)
    world.wait(GRACE_S - 1)
    world.whole_pass(controller)
    assert world.cloud.terminated == []
    world.wait(1)
    world.whole_pass(controller)
    assert world.cloud.terminated == ["m9"]
    assert world.events("run-9") == []


def test_a_machine_that_shows_up_when_its_run_is_closed_wakes_it_up() -> None:
    world = World()
    controller = started(world)
    world.beat("m1", "finished", exit_code=0, beat=2)
    for _ in range(3):
        world.whole_pass(controller)
        world.wait(150)
    assert world.types()[-1] == "Closed"
    world.cloud.machines["m2"] = a_machine("m2")  # a second one of its first leg
    for _ in range(3):
        world.whole_pass(controller)
        world.wait(60)
    assert world.types()[-2:] == ["MachinesFound", "MachineEnded"]
    assert world.cloud.terminated == ["m1", "m2"]
    world.asked.clear()
    world.whole_pass(controller)  # and all is settled
    assert world.asked == {"ListAll": 1, "ListAfter": 1}


# -- going on --------------------------------------------------------------------------------------


def stopped(world: World) -> Any:
    """A controller whose run was cancelled and is closed."""
    controller = started(world)
    assert world.run(controller.cancel("run-1", "enough"))
    world.beat("m1", "stopped", saved=500.0, beat=2)
    for _ in range(6):
        world.wait(120)
        world.whole_pass(controller)
    assert world.types()[-1] == "Closed"
    return controller


def test_a_run_that_was_stopped_goes_on() -> None:
    world = World()
    controller = stopped(world)
    assert world.run(controller.resume("run-1", "more", budget=10**9, deadline_s=None))
    assert world.store.list_after(places.LIVE) == [places.live("run-1", 2)]
    world.whole_pass(controller)
    assert world.types()[-3:] == ["Resumed", "LegRequested", "MachinesFound"]
    state = controller.memory.runs["run-1"].state
    assert (state.phase, state.life, state.spec.budget) == ("active", 2, 10**9)
    assert state.saved == 500.0


def test_a_late_forgetting_does_not_touch_a_resumed_run() -> None:
    """Decided while the run was closed, done after it was resumed."""
    world = World()
    controller = stopped(world)
    world.store.create(places.live("run-1"), b"{}")  # as if it had not been removed yet
    late = world.controller("late")
    generator = late.whole_pass()
    step = next(generator)
    while not isinstance(step, Delete):
        step = generator.send(world.perform(step))
    assert world.run(controller.resume("run-1", "more", budget=None, deadline_s=None))
    world.perform(step)
    assert world.store.list_after(places.LIVE) == [places.live("run-1", 2)]


def test_what_cannot_be_resumed() -> None:
    world = World()
    controller = started(world)
    more: dict[str, Any] = {"budget": None, "deadline_s": None}
    assert not world.run(controller.resume("run-1", "it goes on", **more))
    assert not world.run(controller.resume("run-9", "there is none", **more))
    world.beat("m1", "finished", exit_code=0, beat=2)
    for _ in range(6):
        world.wait(120)
        world.whole_pass(controller)
    assert not world.run(controller.resume("run-1", "it has succeeded", **more))
    assert world.types()[-1] == "Closed"
