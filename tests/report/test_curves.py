from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.report.making import lines, losses
from tradewind.report.curves import MOST, Curves


def taken(*legs: bytes) -> Curves:
    curves = Curves()
    for number, data in enumerate(legs, 1):
        curves.take(number, data.split(b"\n"))
    return curves


def test_steps_that_are_made_again_count_once() -> None:
    again = [{"step": step, "loss": 7.0} for step in range(401, 500)]
    (curve,) = taken(lines(losses(1, 450)), lines(again)).curves()
    assert [bucket.step for bucket in curve.buckets] == list(range(1, 500))
    assert {bucket.mean for bucket in curve.buckets[400:]} == {7.0}
    assert (curve.rows, curve.last) == (499, 7.0)


def test_what_the_first_leg_had_beyond_is_forgotten() -> None:
    """The second goes on from step 200 and comes less far than the first."""
    (curve,) = taken(lines(losses(1, 450)), lines(losses(201, 260))).curves()
    assert [bucket.step for bucket in curve.buckets] == list(range(1, 261))


def test_torn_lines_are_counted_and_the_others_read() -> None:
    torn = lines(losses(1, 3)) + b'{"step": 4, "lo' + b"\n" + lines(losses(5, 6))
    odd = b'[1]\n"x"\n{"step": "two"}\n{"step": -1}\n{"loss": 1}\n\xff\xfe\n' + b"[" * 100_000
    curves = taken(torn, odd)
    (curve,) = curves.curves()
    assert [bucket.step for bucket in curve.buckets] == [1, 2, 3, 5, 6]
    assert curves.unread == 8


def test_values_that_are_no_numbers_leave_a_gap() -> None:
    rows = [
        '{"step": 1, "loss": NaN, "lr": 1}',
        '{"step": 2, "loss": Infinity, "lr": true}',
        '{"step": 3, "loss": 2, "lr": "x", "big": 1' + "0" * 400 + "}",
    ]
    found = {curve.name: curve for curve in taken("\n".join(rows).encode()).curves()}
    assert [bucket.step for bucket in found["loss"].buckets] == [3]
    assert [bucket.step for bucket in found["lr"].buckets] == [1]
    assert "big" not in found


def test_any_number_of_steps_is_held_in_so_many_buckets() -> None:
    curves = Curves()
    for first in range(0, 50_000, 1000):
        data = lines([{"step": step, "loss": float(step)} for step in range(first, first + 1000)])
        curves.take(1, data.split(b"\n"))
    (curve,) = curves.curves()
    assert len(curve.buckets) <= MOST
    assert curve.rows == 50_000
    assert curve.buckets[0].low == 0.0
    assert curve.buckets[-1].high == 49_999.0
    steps = [bucket.step for bucket in curve.buckets]
    assert steps == sorted(steps)


def test_the_loss_comes_first() -> None:
    rows = [{"step": 1, "lr": 0.1, "eval/loss": 2.0, "loss": 3.0}]
    assert [curve.name for curve in taken(lines(rows)).curves()] == ["loss", "eval/loss", "lr"]


def test_checkpoints_are_told_beside() -> None:
    curves = taken(b'{"checkpoint": 40, "took_s": 1.5, "bytes": 7, "at_s": 1794700000}\n')
    (kept,) = curves.kept
    assert (kept.step, kept.leg, kept.took_s, kept.bytes) == (40, 1, 1.5, 7)
    assert kept.at is not None


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8))
def test_the_curve_is_what_was_measured_last(stays: list[tuple[int, int]]) -> None:
    """Whatever legs go on from where: each step once, from the leg that made it last."""
    expected: dict[int, float] = {}
    curves = Curves()
    for number, (first, many) in enumerate(stays, 1):
        rows = [{"step": first + n, "loss": float(number)} for n in range(many)]
        curves.take(number, [json.dumps(row).encode() for row in rows])
        if rows:
            expected = {step: value for step, value in expected.items() if step < first}
            expected |= {first + n: float(number) for n in range(many)}
    found = {b.step: b.mean for curve in curves.curves() for b in curve.buckets}
    assert found == expected


def test_restarts_in_place_are_counted() -> None:
    """The job was killed after step 9 and went on from 5; then after 12, and went on from 2."""
    steps = [*range(1, 10), *range(6, 13), *range(3, 14)]
    curves = taken(b"".join(b'{"step": %d, "loss": 1}\n' % step for step in steps))
    assert curves.again == {1: 4 + 10}
    assert taken(b'{"step": 3}\n{"step": 3, "more": 1}\n').again == {}
