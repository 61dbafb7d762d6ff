from __future__ import annotations

import gc
import signal

import pytest

from tests.cli.conftest import Cli
from tradewind.sim import campaign
from tradewind.sim.faults import Outcome

pytestmark = pytest.mark.slow

KEYS = "seeds violations first_violation_seed seeds_per_s crash_points faults_injected".split()


def broken(seed: int, *, tell: bool = False) -> Outcome:
    """Seeds 7, 17, 27 … break a promise."""
    violation = "m1 was leaked" if seed % 10 == 7 else ""
    story = ["0:00:00  scenario     …", "0:00:05  m1           lives on"] if tell else []
    outcome = "" if violation else "succeeded"
    return Outcome(seed, violation, story, outcome, 3, 1, 40, {"crash": 1, "stall": 2}, {})


def test_json(cli: Cli) -> None:
    ran = cli("sim", "faults", "--seeds", "20", "--json")
    assert ran.code == 0
    found = ran.json
    assert list(found)[:6] == KEYS
    assert (found["seeds"], found["violations"], found["first_violation_seed"]) == (20, 0, None)
    assert found["seeds_per_s"] > 0
    assert found["faults_injected"] > found["crash_points"] > 0
    assert sum(found["by_outcome"].values()) == 20
    assert sum(found["by_fault"].values()) == found["faults_injected"]


def test_the_counts_are_those_of_the_seeds(cli: Cli) -> None:
    whole = campaign.run(20)
    parts = campaign.Tally()
    for seed in range(20):
        found = cli("sim", "faults", "--seed", str(seed), "--json").json
        assert found["seeds"] == 1
        parts.faults += found["faults_injected"]
        parts.by_outcome.update(found["by_outcome"])
    assert (parts.faults, parts.by_outcome) == (whole.faults, whole.by_outcome)
    later = campaign.run(15, first=5)
    earlier = campaign.run(5)
    earlier.merge(later)
    assert earlier == whole


def test_the_counts_do_not_depend_on_jobs() -> None:
    assert campaign.run(120, first=30, jobs=2) == campaign.run(120, first=30)


def test_text(cli: Cli) -> None:
    ran = cli("sim", "faults", "--seeds", "20", "--from", "100")
    assert ran.code == 0
    assert "100 to 119" in ran.out
    for word in ("violations", "seeds a second", "runs ended", "succeeded", "stall"):
        assert word in ran.out


def test_a_story(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = cli("sim", "faults", "--seed", "22", "--story")
    assert ran.code == 0
    assert ran.out == cli("sim", "faults", "--seed", "22", "--story").out
    head, story, end = ran.out.split("\n\n")
    for word in ("seed 22", "work", "deadline", "budget", "machines", "$", "controllers"):
        assert word in head
    assert "Scenario(" not in ran.out
    assert "Submitted" in story
    assert "Closed" in story
    assert "nothing happened that never may" in end
    told = cli("sim", "faults", "--seed", "22", "--story", "--json").json
    assert [line.rstrip() for line in told["story"]] == story.splitlines()
    assert told["scenario"]["spec"]["work"] > 0
    assert "run-2        beside it: 240 steps" in head
    assert told["second_scenario"]["run_id"] == "run-2"


@pytest.mark.parametrize("seed", [0, 1, 3, 12345])
def test_the_scenario_shown_is_the_one_simulated(seed: int) -> None:
    scenarios, outcome = campaign.told(seed)
    for line, scenario in zip(outcome.story, scenarios, strict=False):
        assert line.endswith(str(scenario))


@pytest.mark.parametrize("seed", range(40))
def test_every_scenario_can_be_described(seed: int) -> None:
    from tradewind.cli.sim import simstory

    (scenario, *_), _ = campaign.told(seed)
    lines = dict(simstory.described(scenario))
    assert ("cancelled" in lines) == (scenario.cancel_at_s is not None)
    assert set(simstory.GOES_WRONG) == set(scenario.chances.__struct_fields__)


def test_violations_are_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "simulate", broken)
    ran = cli("sim", "faults", "--seeds", "200", "--from", "10", "--json")
    assert ran.code == 1
    assert (ran.json["violations"], ran.json["first_violation_seed"]) == (20, 17)
    assert ran.json["by_outcome"] == {"succeeded": 180, "not at all": 20}
    for shown in (ran, cli("sim", "faults", "--from", "10")):
        assert shown.code == 1
        assert "m1 was leaked" in shown.err
        assert "tradewind sim faults --seed 17 --story" in shown.err
    assert cli("sim", "faults", "--seed", "17").code == 1
    assert cli("sim", "faults", "--seed", "18").code == 0
    ran = cli("sim", "faults", "--seed", "17", "--story")
    assert ran.code == 1
    assert "lives on" in ran.out
    assert "m1 was leaked" in ran.err
    assert "never may" not in ran.out
    ran = cli("sim", "faults", "--seed", "17", "--story", "--json")
    assert (ran.code, ran.json["violation"], ran.json["outcome"]) == (1, "m1 was leaked", None)


def test_without_options_a_thousand(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "simulate", lambda seed: broken(0))
    assert cli("sim", "faults", "--json").json["seeds"] == 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--seeds 0", "x<="),
        ("--seeds -5", "x<="),
        ("--seeds many", "not a whole number"),
        ("--seeds 3 --seed 1", "leave out --seeds"),
        ("--from 3 --seed 1", "leave out --seeds and --from"),
        ("--from -1", "x>=0"),
        ("--seed -1", "x>=0"),
        ("--story", "--seed SEED"),
        ("--seeds 5 --story", "--seed SEED"),
        ("--seed 5 --story --jobs 2", "--jobs"),
        ("--jobs 0", "1<=x<=256"),
    ],
)
def test_misuse(options: str, words: str, cli: Cli) -> None:
    ran = cli("sim", "faults", *options.split())
    assert ran.code == 2
    assert words in ran.err
    assert not ran.out


def test_the_collector_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    seen = []

    def simulated(seed: int) -> Outcome:
        seen.append(gc.get_threshold()[0])
        if seed == 60:
            raise KeyboardInterrupt
        return broken(0)

    monkeypatch.setattr(campaign, "simulate", simulated)
    campaign.run(10)
    with pytest.raises(KeyboardInterrupt):
        campaign.run(10, first=55)
    assert min(seen) > before[0]
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, frozen)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
