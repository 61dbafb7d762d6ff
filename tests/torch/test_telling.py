"""What is told of a step."""

from __future__ import annotations

import json
from pathlib import Path

from tradewind.torch.sessions.telling import Teller


def test_a_step_has_one_row(tmp_path: Path) -> None:
    """Whenever something is told of it, also after it was written; and its number is ours."""
    path = tmp_path / "metrics.jsonl"
    teller = Teller(None, path)
    for step in (1, 2):
        teller.made(step, {"loss": float(step), "step": 70.0 + step})
        teller.tell()
        teller.made(step, {"decay": step / 10})
    teller.tell(now=True)
    teller.made(2, {"tested": 1.0})
    teller.tell(now=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [
        {"step": 1, "loss": 1.0, "logged_step": 71.0, "decay": 0.1},
        {"step": 2, "loss": 2.0, "logged_step": 72.0, "decay": 0.2, "tested": 1.0},
    ]
    assert [json.loads(line) for line in teller.durable(2).splitlines()] == lines
    again = Teller(None, path)
    again.resumed(2)
    again.made(2, {"tested": 2.0})
    again.made(3, {"loss": 3.0})
    again.tell(now=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["step"], row.get("tested")) for row in rows] == [(1, None), (2, 2.0), (3, None)]
