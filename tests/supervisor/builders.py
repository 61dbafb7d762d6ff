"""A supervisor on the first machine of the first leg, and its job."""

from __future__ import annotations

from typing import Any

from tradewind.supervisor.decide import Job, Me

RUNNING = Job("running", step=40.0, rate=1.0, saved=30.0)


def me(**more: Any) -> Me:
    given: dict[str, Any] = {
        "machine_id": "m1",
        "run_id": "run-1",
        "leg": 1,
        "rank": 0,
        "nodes": 1,
        "hard_stop_s": 36_000,
        "tries": 3,
        "read": 0,
    }
    return Me(**(given | more))


def working(**more: Any) -> Me:
    return me(**({"doing": "working", "resume": "", "reached_s": 1000.0} | more))


def killed(saved: float = 0.0) -> Job:
    return Job("exited", 50.0, None, saved, -9, "infrastructure", "", again=True)


def failed(code: int = 1, trouble: str = "user", saved: float = 0.0) -> Job:
    return Job("exited", 50.0, None, saved, code, trouble, "ValueError: bad batch")
