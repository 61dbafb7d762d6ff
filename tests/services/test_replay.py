"""What a number of replicas means for a load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.services.replay import (
    GIVE_UP_S,
    PATIENT_S,
    PERIOD_S,
    Replicas,
    most_of_last,
    outcome,
    ready_of,
)

KIND = Replicas(cold_s=30, slack_s=0.5, drain_s=4)


def seconds(*by_period: float) -> np.ndarray:
    return np.repeat(np.array(by_period, float), PERIOD_S)


def test_one_is_ready_when_it_was_wanted_long_enough() -> None:
    ordered = np.array([1, 3, 3, 3, 3, 2, 4, 4, 4, 4], float)
    assert ready_of(ordered, 30).tolist() == [1, 1, 1, 1, 3, 2, 2, 2, 2, 4]
    assert ready_of(ordered, 0).tolist() == ordered.tolist()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 50))
def test_the_most_of_the_last(values: list[int], periods: int) -> None:
    found = most_of_last(np.array(values, float), periods).tolist()
    assert found == [max(values[max(i - periods + 1, 0) : i + 1]) for i in range(len(values))]


def test_what_fits_is_never_late() -> None:
    load = seconds(1.0, 2.0, 1.5)
    told = outcome(load, load, np.array([1.0, 2.0, 2.0]), Replicas(0, 0.5, 4))
    assert (told.late, told.lost) == (0, 0)
    assert told.seconds == 50


def test_what_waits_too_long_is_late_and_at_last_lost() -> None:
    load = seconds(*[2.0] * 20)
    told = outcome(load, load, np.ones(20), KIND)
    # One is behind by a second each second: after half a second all are late, then lost.
    assert told.late == pytest.approx(2 * 199.5)
    assert told.lost == pytest.approx(2 * (200 - GIVE_UP_S))
    assert told.attainment == pytest.approx(0.5 / 200)


PATIENT = replace(KIND, patient_s=PATIENT_S)


def test_only_what_is_too_much_is_late_where_it_waits_for_the_rest() -> None:
    load, ones = seconds(1.25, 1.25, 0.5, 0.5, 0.5), np.ones(5)
    in_turn, patient = (outcome(load, load, ones, kind) for kind in (KIND, PATIENT))
    # A quarter of a replica more than there is, for twenty seconds, less what may wait in time.
    assert patient.late == pytest.approx(0.25 * 20 - 0.5)
    assert in_turn.late > 4 * patient.late
    assert (patient.lost, in_turn.lost) == (0, 0)


def test_who_has_waited_has_his_turn_before_he_gives_up() -> None:
    """Too much for minutes: those who wait are served while others come who could be in time."""
    load = seconds(*[1.2] * 30)
    told = outcome(load, load, np.ones(30), PATIENT)
    assert told.lost == 0
    assert 60 < told.late < 300


@given(st.lists(st.floats(0, 3), min_size=3, max_size=12))
def test_both_orders_serve_the_same_and_none_is_late_in_one_alone(load: list[float]) -> None:
    asked, counts = seconds(*load), np.arange(len(load)) % 3 + 1.0
    in_turn, patient = (outcome(asked, asked, counts, kind) for kind in (KIND, PATIENT))
    assert (in_turn.late > 1e-6) == (patient.late > 1e-6)
    assert patient.seconds == in_turn.seconds


def test_counting_ends_where_too_many_are_late() -> None:
    load = seconds(*[3.0] * 20)
    most = outcome(load, load, np.ones(20), PATIENT, most_late=10.0).late
    assert 10 < most < outcome(load, load, np.ones(20), PATIENT).late


def test_giving_one_up_is_paid_until_its_answers_are_done() -> None:
    load = seconds(1.0, 1.0)
    assert outcome(load, load, np.array([3.0, 1.0]), KIND).seconds == 40 + 2 * KIND.drain_s


@given(st.lists(st.floats(0, 5), min_size=3, max_size=12), st.integers(1, 5))
def test_more_replicas_never_make_later(load: list[float], more: int) -> None:
    asked = seconds(*load)
    few = np.arange(len(load)) % 4 + 1.0
    late = [outcome(asked, asked, few + extra, KIND).late for extra in (0, more)]
    assert late[1] <= late[0] + 1e-6
