"""Every process of a chain that is started with this folder on its PYTHONPATH lives faster, by
$TRADEWIND_TEST_SPEED: the supervisors' watch runs faster, and the lengths that controllers reckon
with are shorter by the same. Their proportions, which all safety rests on, stay. What a client of a
bucket waits does not get shorter, so there is a limit to that.
"""

from __future__ import annotations

import os
import sys

SPEED = float(os.environ.get("TRADEWIND_TEST_SPEED", "1"))


def _supervisors() -> None:
    from tradewind.supervisor import watch

    whole = watch.Watch

    def faster(since_s: float, speed: float = 1.0) -> object:
        return whole(since_s, speed * SPEED)

    watch.Watch = faster  # type: ignore[assignment,misc]


def _controllers() -> None:
    from tradewind.model import timing

    for name, value in vars(timing).items():
        if name.endswith("_S"):
            setattr(timing, name, value / SPEED)


if "tradewind.supervisor" in sys.orig_argv:
    _supervisors()
elif "tradewind" in sys.orig_argv:
    _controllers()
