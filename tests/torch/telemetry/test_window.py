"""Figures of a window, with a clock of the test's own."""

from __future__ import annotations

import pytest

from tradewind.torch.telemetry import tally as tallies
from tradewind.torch.telemetry.tally import Tally
from tradewind.torch.telemetry.window import Mark, Window


def test_tokens_and_the_time_of_a_step_are_of_the_same_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where marks fall between steps, and a pause is in the window."""
    now = [100.0]
    monkeypatch.setattr(tallies, "now_s", lambda: now[0])
    tally, window = Tally(), Window()
    for step in range(900):
        now[0] += 5.0 if step == 300 else 0.04
        tally.made(tokens=1000)
        if step % 25 == 7:
            window.mark(Mark(now[0] + 0.013, tally.steps, 0.0, 0.0, 0.0, None, 0, 0))
    found = window.figures(tally, None)
    assert found["tokens_rate"] * found["step_s"] == pytest.approx(1000, rel=1e-4)
    assert found["step_s"] == pytest.approx(0.04)
