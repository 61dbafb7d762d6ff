from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tests.sim import broken
from tradewind.controller import Controller
from tradewind.sim.faults import simulate

FRESH = int(os.environ.get("TRADEWIND_SIM_SEEDS", "2000"))


def digest(seed: int) -> str:
    outcome = simulate(seed, tell=True)
    whole = hashlib.sha256("\n".join(outcome.story).encode())
    for key in sorted(outcome.objects):
        whole.update(key.encode() + b"\0" + outcome.objects[key] + b"\0")
    return whole.hexdigest()


def test_one_seed_reproduces_a_run_byte_for_byte() -> None:
    """The story and every object in the store, in another process with other hashes."""
    seeds = (3, 17, 785, 4004)
    script = f"from tests.sim.test_faults import digest\nprint([digest(seed) for seed in {seeds}])"
    found = {str([digest(seed) for seed in seeds])}
    for hashes in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_telling_the_story_changes_nothing() -> None:
    for seed in range(20):
        told, silent = simulate(seed, tell=True), simulate(seed)
        assert told.objects == silent.objects
        assert told.story
        assert not silent.story


def test_fresh_seeds_keep_every_promise() -> None:
    """Others each time: what is found is reproduced by its number."""
    first = int.from_bytes(os.urandom(6)) % 10**12
    violations = []
    outcomes: set[str] = set()
    for seed in range(first, first + FRESH):
        outcome = simulate(seed)
        outcomes.add(outcome.outcome)
        if outcome.violation:
            violations.append(f"seed {seed}: {outcome.violation}")
    assert not violations
    assert {"succeeded", "failed", "cancelled", "out_of_budget", "too_late"} <= outcomes


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (broken.ActsBeforeRecording, "bought before the purchase is recorded"),
        (broken.SkipsTheListing, "has two sets of machines"),
        (broken.SkipsTheSweeper, "was paid for|left running"),
        (broken.ReusesTheToken, "stands for two purchases"),
        (broken.TrustsAForeignClock, "given up after"),
        (broken.PrunesTheJournal, "cannot go on"),
        (broken.NeverAnnounces, "nobody says so|never announced"),
        (broken.SpendsFreely, "more than its budget"),
    ],
)
def test_a_broken_protocol_is_caught(protocol: type[Controller], words: str) -> None:
    found = {}
    for seed in range(600):
        outcome = simulate(seed, make=protocol)
        if outcome.violation:
            found[seed] = outcome.violation
            if any(word in outcome.violation for word in words.split("|")):
                break
    assert any(word in why for why in found.values() for word in words.split("|")), found
