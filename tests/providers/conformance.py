"""What every provider must do. A test module names its provider by a fixture `place`, and says by
`safety` what keeps a launch from being made twice there (`Facts.safety`):

token     the provider knows the launch's id again
name      it gives a name to one machine only
recorder  neither: only who recorded a purchase makes it, once; so nothing that repeats a launch is
          tried, and of one that was cut off only what is promised then: all of it is listed

Listings may lag and launches take their time: tests wait for what must come to be (`eventually`),
and never for a while.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import tradewind
from tests.eventually import eventually
from tests.lifecycle.builders import WAY
from tradewind.model.run import Machine, Request, Way
from tradewind.providers.base import Provider, Refused

WHERE = [str(Path(__file__).parents[2]), str(Path(tradewind.__file__).parents[1])]


@dataclass
class Place:
    provider: Provider
    way: Way = field(default_factory=lambda: replace(WAY, facts=replace(WAY.facts, tokens=True)))
    others: Provider | None = None
    """The same provider, as another owner sees it."""
    threads: bool = True
    """It may be called by several threads at once."""
    again: Callable[[], Provider] | None = None
    """Opens it once more for the same owner, as another controller does."""
    client: tuple[str, str] | None = None
    """How another process opens it for the same owner: module:function and its argument."""
    alive: Callable[[Machine], bool] | None = None
    """Whether anything runs of a machine, whatever the listing says."""
    crashes: int = 1000
    """At how many of its steps a process is killed, at most."""
    room: Callable[[int], None] | None = None
    """Lets it have so many more machines of the way, and no more."""
    busy: Callable[[], None] | None = None
    """Whatever it is asked next is asked too often."""

    @property
    def repeats(self) -> bool:
        """Whether a launch may be made again, and buys nothing again."""
        return self.way.facts.tokens

    def request(self, leg: int = 1, nodes: int = 1, run_id: str = "run-1") -> Request:
        return Request(
            launch_id=f"{run_id}-{leg}",
            run_id=run_id,
            leg=leg,
            way=replace(self.way, nodes=nodes),
            hard_stop_s=3600,
        )

    def listed(self, launch_id: str | None = None) -> list[Machine]:
        machines = self.provider.list_machines().machines
        return [m for m in machines if launch_id in (None, m.launch_id)]

    def running(self, launch_id: str | None = None) -> list[Machine]:
        return [m for m in self.listed(launch_id) if m.ended_s is None]

    def is_gone(self, machines: Sequence[Machine]) -> None:
        """They end, as listed and in fact."""
        names = {m.machine_id for m in machines}
        eventually(lambda: not names & {m.machine_id for m in self.running()})
        if self.alive:
            assert not [m for m in machines if self.alive(m)]


def _needs_repeats(place: Place) -> None:
    if not place.repeats:
        pytest.skip("a launch is made once")


class Conformance:
    safety = "token"
    """As its facts have it. Each provider's tests say it, so that it is changed knowingly."""

    def test_the_level_of_safety_is_known(self, place: Place) -> None:
        assert place.way.facts.safety == self.safety

    def test_nothing_is_listed_before_anything_is_bought(self, place: Place) -> None:
        assert place.listed() == []

    def test_launch_list_terminate(self, place: Place) -> None:
        (machine,) = place.provider.launch(place.request(), 1)
        eventually(lambda: place.running() == [machine])
        if place.alive:
            assert place.alive(machine)
        place.provider.terminate([machine.machine_id])
        place.is_gone([machine])
        (ended,) = place.listed()
        assert ended == replace(machine, ended_s=ended.ended_s)

    @pytest.mark.parametrize("nodes", [1, 3])
    def test_every_machine_carries_its_tags(self, place: Place, nodes: int) -> None:
        request = place.request(leg=7, nodes=nodes, run_id="run-tagged")
        bought = place.provider.launch(request, 1)
        listed = eventually(lambda: place.listed() if len(place.listed()) == nodes else [])
        assert sorted(listed, key=str) == sorted(bought, key=str)
        assert {(m.launch_id, m.run_id, m.leg) for m in listed} == {
            (request.launch_id, "run-tagged", 7)
        }
        assert sorted(m.rank for m in listed) == list(range(nodes))
        assert len({m.machine_id for m in listed}) == nodes

    def test_two_launches_are_two(self, place: Place) -> None:
        one = place.provider.launch(place.request(leg=1, nodes=2), 1)
        two = place.provider.launch(place.request(leg=2), 1)
        assert not {m.machine_id for m in one} & {m.machine_id for m in two}
        eventually(lambda: len(place.running()) == 3)
        place.provider.terminate([m.machine_id for m in one])
        place.is_gone(one)
        eventually(lambda: place.running() == list(two))

    def test_one_of_several_machines_can_be_terminated(self, place: Place) -> None:
        bought = place.provider.launch(place.request(nodes=3), 1)
        eventually(lambda: len(place.running()) == 3)
        place.provider.terminate([bought[1].machine_id])
        place.is_gone([bought[1]])
        assert {m.rank for m in place.running()} == {0, 2}

    def test_times_are_the_providers(self, place: Place) -> None:
        before = place.provider.list_machines().at_s
        (machine,) = place.provider.launch(place.request(), 1)
        eventually(place.listed)
        place.provider.terminate([machine.machine_id])
        place.is_gone([machine])
        (ended,) = place.listed()
        after = place.provider.list_machines().at_s
        assert ended.ended_s is not None
        assert before <= ended.launched_s <= ended.ended_s <= after

    def test_terminating_again_changes_nothing(self, place: Place) -> None:
        bought = place.provider.launch(place.request(nodes=2), 1)
        names = [m.machine_id for m in bought]
        eventually(lambda: len(place.running()) == 2)
        place.provider.terminate([names[0], names[0]])
        place.is_gone(bought[:1])
        first = next(m for m in place.listed() if m.machine_id == names[0])
        place.provider.terminate(names)
        place.provider.terminate(names)
        place.is_gone(bought)
        assert first in place.listed()

    def test_terminating_what_is_not_there_is_harmless(self, place: Place) -> None:
        (machine,) = place.provider.launch(place.request(), 1)
        eventually(place.running)
        odd = ["none", "local-none-0", f"{machine.machine_id}0", "", "-", "../../x-0", "ü"]
        place.provider.terminate(odd)
        place.provider.terminate([])
        assert [m.machine_id for m in place.running()] == [machine.machine_id]
        place.provider.terminate([*odd, machine.machine_id])
        place.is_gone([machine])

    def test_another_owner_sees_and_touches_nothing(self, place: Place) -> None:
        if place.others is None:
            pytest.skip("has one owner")
        (machine,) = place.provider.launch(place.request(), 1)
        eventually(place.running)
        assert place.others.list_machines().machines == ()
        place.others.terminate([machine.machine_id])
        assert place.running() == [machine]
        # Even with ids of the same names.
        place.others.launch(place.request(), 1)
        theirs = eventually(lambda: place.others and place.others.list_machines().machines)
        place.provider.terminate([machine.machine_id])
        place.is_gone([machine])
        assert place.others.list_machines().machines == theirs
        place.others.terminate([m.machine_id for m in theirs])

    def test_another_controller_sees_and_ends_the_same(self, place: Place) -> None:
        if place.again is None:
            pytest.skip("lives in one object")
        bought = place.provider.launch(place.request(nodes=2), 1)
        eventually(lambda: len(place.running()) == 2)
        other = place.again()
        assert sorted(other.list_machines().machines, key=str) == sorted(bought, key=str)
        other.terminate([m.machine_id for m in bought])
        # Who has not ended them may list them as ended, or not any more.
        place.is_gone(bought)

    # All or none.

    @pytest.mark.parametrize("room", [0, 1, 2])
    def test_where_not_all_can_be_had_nothing_is(self, place: Place, room: int) -> None:
        if place.room is None:
            pytest.skip("always has room")
        place.room(room)
        with pytest.raises(Refused) as caught:
            place.provider.launch(place.request(nodes=3), 1)
        assert caught.value.kind == "no_capacity"
        eventually(lambda: place.running() == [])
        place.room(3)
        assert len(place.provider.launch(place.request(leg=2, nodes=3), 1)) == 3

    def test_asked_too_often_nothing_is_bought(self, place: Place) -> None:
        if place.busy is None:
            pytest.skip("is never too busy")
        place.busy()
        with pytest.raises(Refused) as caught:
            place.provider.launch(place.request(), 1)
        assert caught.value.kind == "throttled"
        assert place.running() == []

    # Where the launch id, or a name, is the idempotency token.

    def test_launching_again_buys_nothing(self, place: Place) -> None:
        _needs_repeats(place)
        request = place.request(nodes=2)
        first = place.provider.launch(request, 1)
        assert list(place.provider.launch(request, 1)) == list(first)
        eventually(lambda: len(place.running()) == 2)
        place.provider.terminate([m.machine_id for m in first])
        place.is_gone(first)
        again = place.provider.launch(request, 1)
        assert {m.machine_id for m in again} == {m.machine_id for m in first}
        assert place.running() == []

    def test_threads_that_launch_at_once_buy_once(self, place: Place) -> None:
        _needs_repeats(place)
        if not place.threads:
            pytest.skip("is for one thread")
        requests = [place.request(leg=leg, nodes=2) for leg in (1, 2)]
        with ThreadPoolExecutor(8) as pool:
            sold = list(pool.map(lambda n: place.provider.launch(requests[n % 2], 1), range(8)))
        assert all(list(machines) == list(sold[n % 2]) for n, machines in enumerate(sold))
        eventually(lambda: len(place.running()) == 4)
        with ThreadPoolExecutor(8) as pool:
            names = [m.machine_id for machines in sold[:2] for m in machines]
            list(pool.map(lambda _: place.provider.terminate(names), range(8)))
        place.is_gone([*sold[0], *sold[1]])

    @pytest.mark.slow  # many processes
    def test_processes_that_launch_at_once_buy_once(self, place: Place) -> None:
        _needs_repeats(place)
        request = place.request(nodes=2)
        launchers = [self._caller(place, 0, "launch", request) for _ in range(4)]
        for launcher in launchers:
            assert launcher.stdout is not None
            assert launcher.stdout.readline() == "ready\n"
        answers = set()
        for launcher in launchers:
            assert launcher.stdin is not None
            launcher.stdin.write("go\n")
            launcher.stdin.flush()
        for launcher in launchers:
            out, _ = launcher.communicate(timeout=120)
            assert launcher.returncode == 0
            answers.add(out)
        (answer,) = answers
        sold = msgspec.json.decode(answer, type=list[Machine])
        eventually(lambda: sorted(place.running(), key=str) == sorted(sold, key=str))

    @pytest.mark.slow  # many processes
    def test_a_launch_cut_off_anywhere_is_all_or_none_and_can_be_repeated(
        self, place: Place
    ) -> None:
        """A launching process is killed before each of its deeds in turn."""
        _needs_repeats(place)
        for step in range(1, place.crashes + 1):
            request = place.request(leg=step, nodes=2)
            launcher = self._caller(place, step, "launch", request)
            launcher.communicate(timeout=120)
            # All or none. A controller that finds them does not launch again: they must come up.
            found = place.running(request.launch_id)
            assert len(found) in (0, 2), step
            eventually(partial(self._are_alive, place, found))
            sold = place.provider.launch(request, 1)
            assert len(sold) == 2
            eventually(partial(self._are_two, place, request))
            eventually(partial(self._are_alive, place, sold))
            place.provider.terminate([m.machine_id for m in sold])
            place.is_gone(sold)
            if launcher.returncode == 0:
                assert step > 3, "nothing was cut off"
                return
            assert launcher.returncode == -signal.SIGKILL

    @pytest.mark.slow  # many processes
    def test_whatever_a_launch_that_was_cut_off_has_bought_is_listed(self, place: Place) -> None:
        if place.repeats:
            pytest.skip("it can be repeated, which is tried above")
        for step in range(1, place.crashes + 1):
            request = place.request(leg=step, nodes=2)
            launcher = self._caller(place, step, "launch", request)
            launcher.communicate(timeout=120)
            found = place.running(request.launch_id)
            ranks = [m.rank for m in found]
            assert sorted(ranks) == list(range(len(ranks))), step
            assert {(m.run_id, m.leg) for m in found} <= {(request.run_id, step)}
            place.provider.terminate([m.machine_id for m in found])
            place.is_gone(found)
            if launcher.returncode == 0:
                assert len(ranks) == 2
                assert step > 3, "nothing was cut off"
                return
            assert launcher.returncode == -signal.SIGKILL

    @pytest.mark.slow  # many processes
    def test_a_termination_cut_off_anywhere_can_be_repeated_and_lists_no_living_as_ended(
        self, place: Place
    ) -> None:
        for step in range(1, place.crashes + 1):
            bought = place.provider.launch(place.request(leg=step, nodes=2), 1)
            names = [machine.machine_id for machine in bought]
            caller = self._caller(place, step, "terminate", names)
            caller.communicate(timeout=120)
            running = {m.machine_id for m in place.running(bought[0].launch_id)}
            if place.alive:
                lives = {m.machine_id for m in bought if place.alive(m)}
                assert lives <= running, step
            place.provider.terminate(names)
            place.is_gone(bought)
            if caller.returncode == 0:
                assert step > 3, "nothing was cut off"
                return
            assert caller.returncode == -signal.SIGKILL

    @staticmethod
    def _are_two(place: Place, request: Request) -> bool:
        return len(place.running(request.launch_id)) == 2

    @staticmethod
    def _are_alive(place: Place, machines: Sequence[Machine]) -> bool:
        return all(place.alive is None or place.alive(machine) for machine in machines)

    @staticmethod
    def _caller(place: Place, step: int, call: str, what: Any) -> subprocess.Popen[str]:
        if place.client is None:
            pytest.skip("lives in one process")
        text = msgspec.json.encode(what).decode()
        return subprocess.Popen(
            [sys.executable, "-m", "tests.providers.caller", *place.client, str(step), call, text],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(WHERE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
