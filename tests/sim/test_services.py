"""Services through crashes, lost answers and lies; and a referee that sees what goes wrong."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.cases import and_long
from tradewind.cli import app
from tradewind.services import decide
from tradewind.sim.services import Sim, Violation


@pytest.mark.parametrize("seed", and_long([0], range(20)))
def test_nothing_happens_that_never_may(seed: int) -> None:
    sim = Sim(seed)
    sim.run()
    assert sim.answered > 100
    assert sim.faults > 20


def test_one_seed_is_one_service() -> None:
    def told(seed: int) -> tuple[object, ...]:
        sim = Sim(seed, noisy_s=300.0)
        sim.run()
        return sim.asked, sim.answered, sim.faults, sim.kinds, sorted(sim.hosts)

    assert told(3) == told(3)


def test_the_referee_sees_an_answer_that_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that end at once when they are asked, of replicas that are not waited for."""
    monkeypatch.setattr(decide, "_may_go", lambda *_: True)
    found = []
    for seed in range(6):
        try:
            Sim(seed, hasty=True).run()
        except Violation as violation:
            found.append(str(violation))
            break
    assert found
    assert "ended with" in found[0]


def test_the_command_counts() -> None:
    done = CliRunner().invoke(
        app.command, ["sim", "faults", "--services", "--seeds", "1", "--json"]
    )
    told = json.loads(done.stdout)
    assert (told["seeds"], told["violations"]) == (1, 0)
    assert told["reached_a_replica"] > 100
