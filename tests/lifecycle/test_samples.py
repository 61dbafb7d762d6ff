"""Journals as earlier versions wrote them: never regenerate a sample, only add others.

Whoever has a run in a bucket has written such a journal, and no upgrade may stop reading it. If a
change makes one of these fail, the change is wrong, not the sample.
"""

from __future__ import annotations

from typing import get_args

import pytest

from tests.lifecycle.builders import SAMPLES, sample
from tradewind.ledger.postings import postings
from tradewind.lifecycle import fold
from tradewind.model.event import Event

# name → outcome, legs, what was saved, and what all of it cost in micro-dollars.
FOLDED = {
    "abandoned": ("abandoned", 0, 0.0, 0),
    "dearer": ("out_of_budget", 1, 44101.0, 23_631_945),
    "idle": ("idle", 1, 8750.0, 61_950_578),
    "interrupted-and-late": ("succeeded", 3, 9000.0, 85_331_112),
    "job-failed": ("failed", 2, 0.0, 15_564_089),
    "launch-unknown-then-cancelled": ("cancelled", 2, 0.0, 4_305_615),
    "metered": ("succeeded", 1, 8750.0, 61_990_436),
    "out-of-budget": ("out_of_budget", 0, 0.0, 0),
    "queued": ("succeeded", 7, 481.0, 1_693_895),
    "queued-beside-another": ("too_late", 3, 0.0, 729_552),
    "resumed": ("succeeded", 1, 8750.0, 61_950_578),
    "succeeded": ("succeeded", 1, 8750.0, 61_950_578),
}


def test_every_sample_has_its_outcome_here() -> None:
    assert set(SAMPLES) == set(FOLDED)


@pytest.mark.parametrize("name", FOLDED)
def test_samples_keep_folding_to_what_they_meant(name: str) -> None:
    """Never regenerate a sample to make this pass, only add others."""
    commits = sample(name)
    state = fold(commits)
    micros = sum(p.micros for p in postings(event for c in commits for event in c.events))
    assert (state.outcome, len(state.requests), state.saved, micros) == FOLDED[name]
    assert state.phase == "closed"
    assert all(rented.ended for rented in state.machines.values())


def test_every_type_of_event_is_in_a_sample() -> None:
    written = {type(event) for name in SAMPLES for c in sample(name) for event in c.events}
    assert written == set(get_args(Event))


def test_what_the_last_leg_died_of_is_kept() -> None:
    state = fold(sample("job-failed"))
    assert (state.over_cause, state.failures) == ("job_failed", 2)
    assert state.tail == "ValueError: bad batch"
