from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.sim import broken
from tradewind.base import clock
from tradewind.base.steps import Steps
from tradewind.controller import Controller
from tradewind.ledger.postings import Posting, postings
from tradewind.lifecycle import RunState, beats
from tradewind.model.event import Event, MachineBack, MachineEnded
from tradewind.model.run import Heartbeat
from tradewind.model.usage import Line, Rates, Usage, lines
from tradewind.sim import scenario
from tradewind.sim.faults import simulate
from tradewind.store.steps import Create, ListAfter
from tradewind.supervisor.decide import Me

pytestmark = pytest.mark.slow

FRESH = int(os.environ.get("TRADEWIND_SIM_SEEDS", "800"))
# Seeds that show what a test looks for, which are tried first: where they do so no more, the others
# are searched, and the test only takes longer.
CALM = (130, 53, 3313, 84, 2480, 2642, 2215)  # short, one of each outcome, some of two machines
RELIEVED = (488, 1078, 1349)
UNFENCED = 744
EAGER = 852
UNTOLD = 1096
UNPRICED = (98, 124)
LATE = b'"late":true'
CAUGHT = {"CountsNoTime": 778, "KeepsHalfAGang": 288, "SpendsFreely": 124}  # others take fewer


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


def test_a_crash_before_and_after_every_step() -> None:
    """Of runs in which nothing else goes wrong: of every outcome, with one machine and several."""
    calm: dict[str, int] = {}
    for seed in (*CALM, *range(2000)):
        found = simulate(seed)
        if not found.faults:
            calm.setdefault(found.outcome, seed)
        if len(calm) == len(CALM):
            break
    assert len(calm) >= 4
    tried = 0
    for seed in calm.values():
        for step in range(1, simulate(seed).steps + 1):
            for crash_at in (step, -step):
                outcome = simulate(seed, crash_at=crash_at)
                assert not outcome.violation, (seed, crash_at)
                assert outcome.crash_points >= 1
                tried += 1
    assert tried > 200


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
        (broken.SpendsFreely, "more than"),
        (broken.ForgetsTheMonth, "more than"),
        (broken.CountsNoTime, "machines were up|had machines up"),
        (broken.NeverCallsItIdle, "has not ended|left running"),
        (broken.HearsNoLastWords, "is recorded"),
        (broken.LeavesQueues, "left in a queue|is not closed|was not closed"),
        (broken.TrustsAShutdown, "was paid for|left running"),
        (broken.SeesOneCloud, "has not ended|was not closed|left running|was paid for"),
        (broken.KeepsPasses, "is left in the store, and good"),
        (broken.LendsForEver, "passes are lent to it"),
        (broken.KeepsHalfAGang, "was paid for|left running"),
    ],
)
def test_a_broken_protocol_is_caught(protocol: type[Controller], words: str) -> None:
    found = {}
    for seed in (CAUGHT.get(protocol.__name__, 0), *range(2000)):
        outcome = simulate(seed, make=protocol)
        if outcome.violation:
            found[seed] = outcome.violation
            if any(word in outcome.violation for word in words.split("|")):
                break
    assert any(word in why for why in found.values() for word in words.split("|")), found


def caught(words: str) -> bool:
    return any(words in simulate(seed).violation for seed in range(400))


def test_who_cannot_write_it_down_is_not_taken_for_silent() -> None:
    """The store fails just when a run is to be announced as late: the next pass does it. Seed
    70,011,108 showed it once."""
    assert simulate(70_011_108).violation == ""
    told = simulate(UNTOLD, make=broken.AnnouncesAtTheSecondTry)
    assert (told.violation, LATE in b"".join(told.objects.values())) == ("", True)


def test_gangs_that_are_broken_off_count_by_their_machines() -> None:
    """Five in one hour that is paid in full, a machine of each, beside the set that works. Seed
    91,025,604 showed it."""
    assert simulate(91_025_604).violation == ""


@pytest.mark.parametrize("seed", [92_076_480, 92_150_104])
def test_what_others_have_just_recorded_counts(seed: int) -> None:
    """A lender's refusal is not written down for a run that another has just ended; and a deadline
    that is lost in one queue is not lost where another way makes it."""
    assert simulate(seed).violation == ""


def test_a_ledger_that_moves_bytes_for_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(usage: Usage, rates: Rates) -> list[Line]:
        return [line for line in lines(usage, rates) if not line.moved]

    monkeypatch.setattr("tradewind.ledger.postings.lines", free)
    assert caught("has moved bytes for")


def test_a_budget_that_forgets_what_moving_costs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the reserve, in what is exposed, and in the hard stop."""
    for name in ("start", "saving"):
        monkeypatch.setattr(f"tradewind.lifecycle.money.{name}", lambda *values: 0)
    monkeypatch.setattr("tradewind.lifecycle.money._hour", lambda way: way.price_all)
    assert any("more than" in simulate(seed).violation for seed in (*UNPRICED, *range(2000)))


def test_a_supervisor_that_ignores_its_orders_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(me: Me) -> Steps[None]:
        yield ListAfter("live/")

    monkeypatch.setattr("tradewind.supervisor.beat.orders", deaf)
    assert caught("s after leg")


def test_a_supervisor_that_never_fences_itself_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FENCE_S", "UNREACHABLE_S"):
        monkeypatch.setattr(f"tradewind.supervisor.decide.{name}", 10**9)
    assert any("s after leg" in simulate(seed).violation for seed in (UNFENCED, *range(4000)))


def test_a_queued_leg_that_does_not_wait_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def eager(me: Me) -> bool:
        return not (me.fenced or me.relieves)

    monkeypatch.setattr(Me, "may_begin", property(eager))
    told = ("both work", "has it in a queue", "leaves out the complete checkpoint")
    found = (simulate(seed).violation for seed in (EAGER, *range(4000)))
    assert any(words in violation for violation in found for words in told)


def test_a_run_that_goes_on_after_its_users_no_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("leg", "next"):
        monkeypatch.setattr(f"tradewind.lifecycle.{room}.unwanted", lambda *values: None)
    assert caught("was cancelled")


def test_a_job_that_is_tried_for_ever_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradewind.lifecycle.next._end", lambda *values: None)
    assert caught("has not ended") or caught("was tried")


def test_a_leg_that_starts_anew_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(me: Me) -> Steps[None]:
        if (yield Create(f"runs/{me.run_id}/legs/{me.leg:06d}/resume", b"")):
            me.resume = ""

    monkeypatch.setattr("tradewind.supervisor.beat.choose_resume", forgetful)
    assert caught("leaves out the complete checkpoint")


def test_machines_that_resume_from_different_checkpoints_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_odds(me: Me) -> Steps[None]:
        keys = yield ListAfter(f"runs/{me.run_id}/checkpoints/")
        me.resume = max(keys, default="") if me.rank == 0 else ""

    monkeypatch.setattr("tradewind.supervisor.beat.choose_resume", at_odds)
    assert caught("and from")


def test_a_ledger_that_believes_the_first_report_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(events: list[Event]) -> list[Posting]:
        ended: set[str] = set()
        kept: list[Event] = []
        for event in events:
            if isinstance(event, MachineEnded):
                if event.machine.machine_id in ended:
                    continue
                ended.add(event.machine.machine_id)
            if not isinstance(event, MachineBack):
                kept.append(event)
        return postings(kept)

    monkeypatch.setattr("tradewind.sim.money.postings", hasty)
    assert caught("the ledger says")


def liars(whose: str, upto: int = 1500) -> list[int]:
    """Seeds in which machines lie: the run's own, or another run's."""
    return [n for n in range(upto) if scenario.of(clock.generator(n)).liar == whose]


def test_whatever_machines_say_every_promise_is_kept() -> None:
    for whose in ("own", "other"):
        seeds = liars(whose)
        assert len(seeds) > 100
        outcomes = [simulate(seed) for seed in seeds]
        assert [(each.seed, each.violation) for each in outcomes if each.violation] == []
        assert sum(each.kinds.get(f"{LIES[whose]}", 0) for each in outcomes) > 500


LIES = {"own": "machine lies", "other": "stranger writes"}


def test_a_controller_that_believes_anyone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def believes(state: RunState, name: str, data: bytes, *more: Any) -> Heartbeat | None:
        return beats.decode(data[:-65]) or beats.decode(data)

    monkeypatch.setattr("tradewind.lifecycle.beats.read", believes)
    assert any("and was not" in simulate(seed).violation for seed in liars("other"))


def test_a_run_that_buys_at_every_word_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradewind.lifecycle.next._unused", lambda *values: 0)
    monkeypatch.setattr("tradewind.lifecycle.next._wait_s", lambda barren: 0.0)
    assert any("others are paid for" in simulate(seed).violation for seed in liars("own"))


def test_a_relief_that_does_not_wait_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds in which one is asked for are few: those are found first."""
    for seeds in (RELIEVED, range(1500)):
        relieved = [seed for seed in seeds if b'"relieves":1' in journal_of(seed)]
        with monkeypatch.context() as patch:
            patch.setattr("tradewind.sim.machine.Me", eager)
            found = any("before it is not over" in simulate(seed).violation for seed in relieved)
        if len(relieved) >= 3 and found:
            return
    raise AssertionError(f"of {relieved} none is caught")


def journal_of(seed: int) -> bytes:
    return b"".join(data for key, data in simulate(seed).objects.items() if "/journal/" in key)


def eager(*values: Any, relieves: int, **more: Any) -> Me:
    return Me(*values, **more)
