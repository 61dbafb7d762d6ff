"""All machines or none, of a cloud that sells them singly. No clock and no network."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tests.providers.singles import FakeSingles
from tradewind.base.errors import NoAccess
from tradewind.model.run import Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gang import Gang


def request(nodes: int = 3, leg: int = 1) -> Request:
    way = replace(WAY, nodes=nodes)
    return Request(launch_id=f"run-{leg}", run_id="run", leg=leg, way=way, hard_stop_s=3600)


@pytest.fixture
def singles() -> FakeSingles:
    return FakeSingles()


def ranks(singles: FakeSingles) -> list[int]:
    return sorted(each.rank for each in singles.machines.values())


def test_all_are_bought_in_order(singles: FakeSingles) -> None:
    bought = Gang(singles).launch(request(), 1)
    assert [each.rank for each in bought] == [0, 1, 2]
    assert ranks(singles) == [0, 1, 2]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_first_refusal_gives_all_back_and_is_raised(singles: FakeSingles, rank: int) -> None:
    singles.fails[rank] = Refused("no_capacity", "there is none", hint="elsewhere")
    with pytest.raises(Refused, match="there is none") as caught:
        Gang(singles).launch(request(), 1)
    assert (caught.value.kind, caught.value.hint) == ("no_capacity", "elsewhere")
    assert ranks(singles) == []
    assert len(Gang(singles).launch(request(leg=2), 1)) == 3


def test_so_does_a_key_that_is_taken_away_in_the_middle(singles: FakeSingles) -> None:
    singles.fails[2] = NoAccess("the key is not known any more")
    with pytest.raises(NoAccess):
        Gang(singles).launch(request(), 1)
    assert ranks(singles) == []


def test_what_cannot_be_given_back_is_listed_under_its_leg(singles: FakeSingles) -> None:
    singles.fails[2] = Refused("no_capacity", "there is none")
    singles.stuck = True
    with pytest.raises(Refused, match="there is none") as caught:
        Gang(singles).launch(request(), 1)
    assert caught.value.kind == "no_capacity"
    listed = Gang(singles).list_machines().machines
    assert {(each.run_id, each.leg, each.rank) for each in listed} == {("run", 1, 0), ("run", 1, 1)}
    singles.stuck = False
    Gang(singles).terminate([each.machine_id for each in listed])
    assert ranks(singles) == []


@pytest.mark.parametrize("done", [False, True])
def test_an_answer_that_is_lost_leaves_all_to_the_listing(singles: FakeSingles, done: bool) -> None:
    singles.fails[1] = OutcomeUnknown("the line was cut")
    singles.bought_anyway = {1} if done else set()
    with pytest.raises(OutcomeUnknown, match=r"the line was cut \(machine 2 of 3\)"):
        Gang(singles).launch(request(), 1)
    assert ranks(singles) == ([0, 1] if done else [0])


def test_what_is_listed_whole_is_not_bought_again(singles: FakeSingles) -> None:
    first = Gang(singles).launch(request(), 1)
    assert list(Gang(singles).launch(request(), 1)) == list(first)
    assert ranks(singles) == [0, 1, 2]


def test_what_is_listed_in_part_is_not_bought_either(singles: FakeSingles) -> None:
    first = Gang(singles).launch(request(), 1)
    singles.terminate([first[1].machine_id])
    with pytest.raises(OutcomeUnknown, match="of 3 machines of run-1 2 are listed"):
        Gang(singles).launch(request(), 1)
    assert ranks(singles) == [0, 2]
