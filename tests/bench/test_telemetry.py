from __future__ import annotations

from tradewind.bench.telemetry import _figures


def test_the_least_of_the_rounds_counts() -> None:
    """By the clock, of one thread and of all."""
    told = {
        "bare": [[50e-6, 30e-6, 31e-6], [40e-6, 32e-6, 33e-6]],
        "session": [[60e-6, 36e-6, 38e-6], [90e-6, 35e-6, 39e-6]],
        "telemetry": [[55e-6, 38e-6, 40e-6], [70e-6, 37e-6, 45e-6]],
    }
    assert _figures(told) == {
        "bare": {"step_us": 40.0, "added_us": 0.0, "added_cpu_us": 0.0},
        "session": {"step_us": 60.0, "added_us": 20.0, "added_cpu_us": 7.0},
        "telemetry": {"step_us": 55.0, "added_us": 15.0, "added_cpu_us": 9.0},
    }
