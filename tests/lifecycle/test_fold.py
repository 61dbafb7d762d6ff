from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import (
    SAMPLES,
    WAY,
    a_machine,
    commits,
    found,
    requested,
    running,
    sample,
    simulated,
    state_of,
    submitted,
    up,
)
from tradewind.base.errors import BadFile
from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle.states import LEG, RUN, moved
from tradewind.model import event as events
from tradewind.model.event import Commit, Event
from tradewind.model.usage import Usage

SEEDS = range(60)
LEG_STATES = {old for old, _ in LEG if old}
PHASES = {new for _, new in RUN}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_prefix_folds_to_a_consistent_state(seed: int) -> None:
    state = RunState()
    for commit in simulated(seed):
        state = fold([commit], state)
        assert state.number == commit.number
        check(state)
    assert state.phase == "closed"
    assert state == fold(simulated(seed))


def check(state: RunState) -> None:
    """What holds after every commit that any controller wrote."""
    assert state.phase in PHASES
    assert (state.leg is not None) == (state.phase == "active")
    assert bool(state.outcome) == (state.phase in ("ended", "closed"))
    assert list(state.requests) == sorted(state.requests)
    assert all(1 <= number <= state.last for number in state.requests)
    assert all(rented.machine.leg in state.requests for rented in state.machines.values())
    assert all(1 <= at <= state.number for at in state.doubts.values())
    assert state.troubles <= state.barren
    assert state.over_at <= state.number
    if state.leg is None:
        assert state.claimed == (state.queued.machines if state.queued else ())
        return
    leg = state.leg
    assert leg.state in LEG_STATES
    assert max(each.number for each in state.legs) <= state.last
    assert leg.requested_at <= leg.at <= state.number
    assert (len(leg.machines) == leg.request.way.nodes) == (leg.state != "requested")
    assert all(state.machines[name].machine.leg == leg.number for name in leg.machines)
    assert [state.machines[n].machine.rank for n in leg.machines] == list(range(len(leg.machines)))
    assert bool(leg.cause) == (leg.state == "draining")


@given(seed=st.sampled_from(SEEDS), share=st.floats(0, 1))
def test_folding_in_two_parts_is_folding_at_once(seed: int, share: float) -> None:
    whole = simulated(seed)
    cut = round(share * len(whole))
    assert fold(whole[cut:], fold(whole[:cut])) == fold(whole)


@given(seed=st.sampled_from(SEEDS), share=st.floats(0, 1))
def test_folding_leaves_the_state_that_it_was_given(seed: int, share: float) -> None:
    whole = simulated(seed)
    cut = round(share * len(whole))
    given_state, same = fold(whole[:cut]), fold(whole[:cut])
    fold(whole[cut:], given_state)
    assert given_state == same


def test_folding_nothing() -> None:
    assert fold([]) == RunState()
    state = state_of(submitted())
    again = fold([], state)
    assert again == state
    assert again is not state


# What a journal could say, legal or not, of few enough legs and machines that much of it fits.
_legs = st.integers(1, 3)
_names = st.sampled_from(("m1", "m2", "m3"))
_words = st.sampled_from(("", "because"))
_steps = st.floats(0, 1000)
_causes = st.sampled_from(("finished", "interrupted", "lost", "job_failed", "cancelled", "moved"))
_ways = st.builds(
    lambda nodes, market: replace(WAY, nodes=nodes, market=market),
    st.integers(1, 2),
    st.sampled_from(("spot", "on_demand")),
)
_machines = st.builds(
    lambda name, leg, rank, end: a_machine(name, leg, rank, ended_s=end),
    _names,
    _legs,
    st.integers(0, 2),
    st.none() | st.integers(0, 10_000),
)
EVENTS: dict[type, st.SearchStrategy[Event]] = {
    events.Submitted: st.builds(submitted, budget=st.none() | st.integers(0, 10**9)),
    events.Abandoned: st.builds(events.Abandoned, run_id=st.just("run-1"), reason=_words),
    events.LegRequested: st.builds(requested, _legs, _ways),
    events.MachinesFound: st.builds(
        lambda machines: found(*machines), st.lists(_machines, min_size=1, max_size=3)
    ),
    events.LaunchRefused: st.builds(
        events.LaunchRefused,
        leg=_legs,
        kind=st.sampled_from(("no_capacity", "no_quota", "throttled")),
        reason=_words,
    ),
    events.LaunchUnknown: st.builds(events.LaunchUnknown, leg=_legs, reason=_words),
    events.LegUp: st.builds(up, _legs),
    events.Progress: st.builds(
        events.Progress,
        leg=_legs,
        step=_steps,
        saved=_steps,
        rate=st.none() | st.floats(0, 10),
    ),
    events.LegLimited: st.builds(
        events.LegLimited, leg=_legs, hard_stop_s=st.integers(1, 10_000), reason=_words
    ),
    events.LegDraining: st.builds(events.LegDraining, leg=_legs, cause=_causes, reason=_words),
    events.LegOver: st.builds(
        events.LegOver,
        leg=_legs,
        cause=_causes,
        reason=_words,
        saved=_steps,
        failures=st.integers(0, 3),
        tail=_words,
    ),
    events.MachineEnded: st.builds(events.MachineEnded, machine=_machines, reason=_words),
    events.MachineBack: st.builds(events.MachineBack, machine_id=_names, reason=_words),
    events.MachineUsed: st.builds(
        events.MachineUsed, machine_id=_names, leg=_legs, usage=st.just(Usage(writes=1))
    ),
    events.LegQueued: st.builds(
        events.LegQueued, leg=_legs, reason=_words, starts_s=st.none() | st.integers(0, 9)
    ),
    events.Stored: st.builds(events.Stored, bytes=st.integers(0, 9), byte_s=st.integers(0, 9)),
    events.Forecast: st.builds(
        events.Forecast,
        late=st.booleans(),
        over_budget=st.booleans(),
        finish_s=_steps,
        cost=st.integers(0, 10**9),
        reason=_words,
    ),
    events.Warned: st.builds(
        events.Warned, about=_words, level=st.integers(0, 10**9), reason=_words
    ),
    events.CancelAsked: st.builds(events.CancelAsked, reason=_words),
    events.Ended: st.builds(
        events.Ended, outcome=st.sampled_from(("succeeded", "failed")), reason=_words
    ),
    events.Closed: st.builds(events.Closed, reason=_words),
    events.Resumed: st.builds(
        events.Resumed,
        reason=_words,
        budget=st.none() | st.integers(0, 10**9),
        deadline_s=st.none() | st.floats(0, 1e10),
    ),
}


def test_every_type_of_event_is_tried() -> None:
    assert set(EVENTS) == set(get_args(Event))


_anything = st.lists(st.one_of(list(EVENTS.values())), max_size=12)


@settings(max_examples=600)
@given(begun=st.booleans(), then=_anything)
def test_any_events_fold_or_are_a_bad_file(begun: bool, then: list[Event]) -> None:
    """Half of them from a leg that runs on: most others stop at their first event."""
    state = running() if begun else RunState()
    for number, event in enumerate(then, state.number + 1):
        before, same = state, state.copy()
        try:
            state = fold([Commit(1, number, "w1", commits(event)[0].at, (event,))], state)
        except BadFile:
            assert before == same  # also where it stops halfway
            return
        assert state.number == number
        assert (state.leg is not None) == (state.phase == "active")
        for table, move in moves(before, state):
            assert move in table


Move = tuple[str, str]


def moves(old: RunState, new: RunState) -> Iterator[tuple[dict[Move, str], Move]]:
    """The changes of state that one event has made."""
    if old.phase != new.phase:
        yield RUN, (old.phase, new.phase)
    was, now = _states(old), _states(new)
    for number in was.keys() | now.keys():
        move = was.get(number, ""), now.get(number, "over")
        if move[0] != move[1]:
            yield LEG, move


def _states(state: RunState) -> dict[int, str]:
    return {leg.number: leg.state for leg in state.legs}


def made(journal: Sequence[Commit]) -> set[tuple[int, Move]]:
    """Those of a whole journal, event by event; tables by their identity."""
    state, done = RunState(), set()
    for event in (event for commit in journal for event in commit.events):
        new = fold([Commit(1, state.number + 1, "w1", journal[0].at, (event,))], state)
        done |= {(id(table), move) for table, move in moves(state, new)}
        state = new
    return done


def test_the_tables_hold_what_happens_and_nothing_else() -> None:
    """What is rare in simulations, the samples have: no row is dead."""
    journals = [*map(simulated, SEEDS), *map(sample, SAMPLES)]
    happened = set().union(*map(made, journals))
    assert happened == {(id(table), move) for table in (RUN, LEG) for move in table}


def test_every_row_of_the_tables_has_its_reason() -> None:
    for table in (RUN, LEG):
        for (old, new), why in table.items():
            assert why
            assert moved(table, old, new, "it") == new
    with pytest.raises(BadFile, match="went from nothing to ended"):
        moved(RUN, "", "ended", "the run")


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ([requested()], "the run went from nothing to active"),
        ([submitted(), submitted()], "the run went from waiting to waiting"),
        ([submitted(), requested(), submitted()], "the run went from active to waiting"),
        ([events.Closed(reason="r")], "the run went from nothing to closed"),
        (
            [
                submitted(),
                events.Ended(outcome="failed", reason="r"),
                events.Abandoned(run_id="run-1", reason="r"),
            ],
            "the run went from ended to closed",
        ),
        ([submitted(), requested(leg=2)], "leg 2 after 0"),
        ([submitted(), up()], "leg 1, which is not under way"),
        ([submitted(), requested(), up()], "the leg went from requested to running"),
        ([submitted(), requested(), up(leg=2)], "leg 2, which is not under way"),
        ([submitted(), found()], "machine m1 of no leg"),
        ([submitted(), events.MachineBack(machine_id="m1", reason="r")], "m1, which was never"),
        (
            [submitted(), events.MachineUsed(machine_id="m1", leg=1, usage=Usage())],
            "m1, which was never",
        ),
        ([submitted(), events.Stored(bytes=1, byte_s=1)], "it has not ended"),
        ([submitted(), events.Closed(reason="r")], "the run went from waiting to closed"),
        (
            [submitted(), requested(), events.Ended(outcome="failed", reason="r")],
            "the run went from active to ended",
        ),
    ],
)
def test_what_no_controller_writes_is_named(journal: list[Event], words: str) -> None:
    fold(commits(*journal[:-1]))
    with pytest.raises(BadFile, match=words):
        fold(commits(*journal))


def test_commits_follow_each_other() -> None:
    first, second = commits(submitted(), requested())
    with pytest.raises(BadFile, match="commit 2 does not follow 0"):
        fold([second])
    with pytest.raises(BadFile, match="commit 1 does not follow 1"):
        fold([first, first])


def test_a_gang_is_complete_when_every_rank_was_found() -> None:
    way = replace(WAY, nodes=2)
    begun = (submitted(ways=(way,)), requested(way=way))
    half = state_of(*begun, found(a_machine("m2", rank=1)))
    assert half.leg is not None
    assert (half.leg.state, half.leg.machines) == ("requested", ("m2",))
    whole = state_of(*begun, found(a_machine("m2", rank=1)), found(a_machine("m1", rank=0)))
    assert whole.leg is not None
    assert (whole.leg.state, whole.leg.machines) == ("booting", ("m1", "m2"))


def test_a_second_machine_of_a_rank_is_not_claimed() -> None:
    state = state_of(submitted(), requested(), found(a_machine("m1"), a_machine("m2")))
    assert state.claimed == ("m1",)
    assert set(state.machines) == {"m1", "m2"}


def test_a_machine_of_an_earlier_leg_is_kept_and_not_claimed() -> None:
    over = events.LegOver(leg=1, cause="launch_unknown", reason="r")
    state = state_of(submitted(), requested(), over, requested(2), found(a_machine("m1", leg=1)))
    assert state.leg is not None
    assert (state.leg.state, state.claimed) == ("requested", ())
    assert not state.machines["m1"].ended


def test_a_checkpoint_ends_a_row_of_failures() -> None:
    failed = events.LegOver(leg=1, cause="job_failed", reason="r", saved=10.0, failures=2)
    state = running(failed)
    assert (state.saved, state.failures, state.step) == (10.0, 2, 10.0)
    again = replace(failed, leg=2)  # no further than before
    more = (requested(2), found(a_machine("m2", leg=2)), up(2))
    assert running(failed, *more, again).failures == 4
    further = events.Progress(leg=2, step=20.0, saved=20.0)
    assert running(failed, *more, further).failures == 0


def test_only_what_nobody_wished_is_trouble() -> None:
    for cause, troubles in (("lost", 1), ("boot_timeout", 1), ("interrupted", 0), ("moved", 0)):
        state = running(events.LegOver(leg=1, cause=cause, reason="r"))
        assert (cause, state.troubles) == (cause, troubles)
        saved = running(events.LegOver(leg=1, cause=cause, reason="r", saved=1.0))
        assert (cause, saved.troubles) == (cause, 0)


def test_a_leg_whose_progress_was_recorded_while_it_lasted_has_brought_something() -> None:
    further = events.Progress(leg=1, step=20.0, saved=20.0)
    lost = events.LegOver(leg=1, cause="lost", reason="r", saved=20.0)
    state = running(further, lost)
    assert (state.barren, state.troubles) == (0, 0)
    more = (requested(2), found(a_machine("m2", leg=2)), up(2), replace(lost, leg=2))
    again = running(further, lost, *more)
    assert (again.barren, again.troubles) == (1, 1)
