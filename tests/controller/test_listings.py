"""Providers are asked all at once: one that hangs or fails is not seen, and the others are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from tradewind.base import steps
from tradewind.base.errors import SourceFailed
from tradewind.controller import Controller
from tradewind.controller.drive import performer
from tradewind.controller.listings import Listings
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import ListAll, TerminateMachines
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import ListAfter

HERE = Listing(at_s=7, machines=())
BOTH = ListAll(("quick", "slow"))


class Quick:
    def list_machines(self) -> Listing:
        return HERE

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        raise NotImplementedError

    def terminate(self, machine_ids: Sequence[str]) -> None:
        raise NotImplementedError


class Slow(Quick):
    """Answers when it is let."""

    def __init__(self) -> None:
        self.begun, self.may = threading.Event(), threading.Event()
        self.times = 0

    def list_machines(self) -> Listing:
        self.times += 1
        self.begun.set()
        self.may.wait()
        return HERE


class Failing(Quick):
    def list_machines(self) -> Listing:
        raise SourceFailed("it is down")


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.may.set()


class Broken(Quick):
    """As a vendor's library is that meets a region `us east 1`."""

    def list_machines(self) -> Listing:
        raise KeyError("us east 1")


def test_whatever_a_provider_raises_is_its_own_trouble() -> None:
    """One that is not ours ended the pass, and with it whoever watched."""
    controller = Controller("c", ("quick", "slow"), clock=lambda: 0.0, watch=lambda: 0.0)
    providers = {"quick": Quick(), "slow": Broken()}
    sight = steps.run(controller.look(), performer(MemoryStore(), providers))
    assert sight.clocks == {"quick": 7}
    ((name, error),) = sight.troubles
    assert (name, "us east 1" in str(error)) == ("slow", True)
    with pytest.raises(SourceFailed, match="NotImplementedError"):
        performer(MemoryStore(), providers)(TerminateMachines("quick", ("m",)))


def test_all_answer() -> None:
    asked = Listings({"quick": Quick(), "slow": Quick()})
    assert asked(BOTH) == {"quick": HERE, "slow": HERE}
    assert asked(ListAll(("quick",))) == {"quick": HERE}
    assert asked(ListAll(())) == {}


def test_why_one_fails_is_told_and_others_are_seen() -> None:
    found = Listings({"quick": Quick(), "slow": Failing()})(BOTH)
    assert found["quick"] == HERE
    assert "it is down" in str(found["slow"])
    assert "it is down" in str(Listings({"slow": Failing()})(ListAll(("slow",)))["slow"])


def test_one_that_hangs_is_not_seen(slow: Slow) -> None:
    found = Listings({"quick": Quick(), "slow": slow}, patience_s=0.0)(BOTH)
    assert isinstance(found["slow"], SourceFailed)
    assert "did not list its machines" in str(found["slow"])


def test_one_that_still_hangs_is_not_asked_again(slow: Slow) -> None:
    """And nobody waits for it: the patience of this test is a day."""
    asked = Listings({"quick": Quick(), "slow": slow}, patience_s=86_400.0)
    before = threading.Thread(target=lambda: asked(ListAll(("slow",))))
    before.start()
    slow.begun.wait()
    found = asked(BOTH)
    assert found["quick"] == HERE
    assert "earlier pass" in str(found["slow"])
    assert slow.times == 1
    slow.may.set()
    before.join()
    assert asked(BOTH) == {"quick": HERE, "slow": HERE}


def test_a_look_takes_what_it_gets() -> None:
    ctl = Controller("w", ("quick", "slow"), clock=lambda: 0.0, watch=lambda: 0.0)
    look = ctl.look()
    assert next(look) == BOTH
    down = SourceFailed("it is down")
    assert isinstance(look.send({"quick": HERE, "slow": down}), ListAfter)
    with pytest.raises(StopIteration) as done:
        look.send([])
    assert done.value.value.clocks == {"quick": 7}
    assert done.value.value.troubles == [("slow", down)]
