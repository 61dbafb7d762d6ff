"""What `tradewind verify` makes of the steps that it has seen."""

from __future__ import annotations

from pathlib import Path

from tradewind.cli.plan.verify import _unsaved
from tradewind.torch.sessions.trial import WAITS, Row
from tradewind.torch.verify.compare import causes, compare, untried
from tradewind.torch.verify.lives import Life


def rows(*averages: str, weights: str = "abcdef") -> list[Row]:
    made = zip(averages, weights, strict=False)
    return [
        Row(step=number, weights=weight, beside={"EMA.shadow": word} if word else {})
        for number, (word, weight) in enumerate(made, 1)
    ]


def test_an_average_that_starts_again() -> None:
    """Weights are the same, and it is not."""
    whole, broken = rows("a", "b", "c", "d"), rows("a", "b", "a", "b")
    found = {each.what: each for each in compare(whole, broken)}
    assert found["weights"].first is None
    assert (found["averages"].first, found["averages"].words) == (3, "EMA.shadow")
    assert "an average or a copy of the model" in causes(list(found.values()), None)[0]
    assert "averages" not in {each.what for each in compare(rows("", ""), rows("", ""))}


def test_what_was_not_reached() -> None:
    assert untried(rows("a", "b", "c")) == []
    (words,) = untried(rows("a", "a", "a"))
    assert "changes of EMA.shadow, which the session does not hold" in words
    (words,) = untried(rows("", "", "", weights="aaa"))
    assert "no weight has changed in 3 steps" in words


def test_a_save_that_waits_for_ever() -> None:
    life = Life("killed", 0, f"tradewind.torch: {WAITS}critic.weight\n", [])
    error = _unsaved(Path("gan.py"), 24, life)
    assert "a gradient of critic.weight is there after each of them" in error.message
    assert (error.hint or "").startswith("--steps 140;")
