"""Clouds whose machines only a controller ends: what is refused before money is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import AT, SPEC, WAY, submitted
from tradewind.api import attended, orders
from tradewind.base.errors import InvalidValue
from tradewind.journal import journal
from tradewind.model.run import Spec
from tradewind.model.windows import Schedule, Window
from tradewind.sim.faults import RUN
from tradewind.store.memory import MemoryStore

LAMBDA = replace(WAY, provider="lambda", facts=replace(WAY.facts, ends="never"))
AWS = replace(WAY, provider="aws")
USD = 10**6


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    return tmp_path


def spec(*ways: Any, **more: Any) -> Spec:
    return replace(SPEC, ways=ways, **more)


def refusal(given: Spec, **more: bool) -> str:
    """Why it is refused; "" where it is not."""
    try:
        attended.check(given, **more)
    except InvalidValue as error:
        return error.message
    return ""


def test_a_budget_that_only_a_controller_keeps_is_refused_of_a_detached_run() -> None:
    with pytest.raises(InvalidValue, match=r"the budget of \$40\.00 cannot be kept") as caught:
        attended.check(spec(LAMBDA, budget=40 * USD), attended=False)
    assert "on Lambda" in caught.value.message
    assert "without --detach" in str(caught.value.hint)
    assert "--attended" in str(caught.value.hint)
    assert "--on" not in str(caught.value.hint)  # there is nothing else in the plan
    with pytest.raises(InvalidValue) as caught:
        attended.check(spec(LAMBDA, AWS, budget=40 * USD), attended=False)
    assert "--on aws leaves Lambda out" in str(caught.value.hint)
    here = replace(WAY, provider="local")
    with pytest.raises(InvalidValue) as caught:
        attended.check(spec(LAMBDA, here, budget=40 * USD), attended=False)
    assert "--on" not in str(caught.value.hint)


def test_what_is_not_promised_is_not_refused() -> None:
    promised = spec(LAMBDA, budget=40 * USD)
    assert "budget" in refusal(promised, attended=False)
    assert refusal(promised, attended=True) == ""
    assert refusal(spec(LAMBDA), attended=False) == ""
    for ends in ("itself", "limit", "key"):
        way = replace(LAMBDA, facts=replace(LAMBDA.facts, ends=ends))
        assert refusal(spec(way, budget=40 * USD), attended=False) == "", ends


def test_a_month_s_budget_is_one_too(home: Path) -> None:
    file = home / "budgets.yaml"
    file.write_text("projects:\n  nlp: {month: $100}\n  cv: {month: $100, what: warn}\n")
    with pytest.raises(InvalidValue, match=r"budget of project nlp, \$100\.00, cannot be kept"):
        attended.check(spec(LAMBDA, project="nlp"), attended=False)
    attended.check(spec(LAMBDA, project="cv"), attended=False)
    attended.check(spec(LAMBDA), attended=False)


def test_a_window_is_one_too() -> None:
    night = Schedule(windows=(Window(start_s=22 * 3600, end_s=6 * 3600),))
    with pytest.raises(InvalidValue, match="the window 22:00-06:00 UTC cannot be kept"):
        attended.check(spec(LAMBDA, schedule=night), attended=False)
    attended.check(spec(LAMBDA, schedule=night), attended=True)
    attended.check(spec(AWS, schedule=night), attended=False)
    attended.check(spec(LAMBDA, schedule=Schedule(not_before_s=1.0)), attended=False)


def test_it_is_said_in_a_line() -> None:
    assert attended.words(spec(LAMBDA, AWS)) == (
        "only a controller ends the bill of machines of Lambda"
    )
    assert attended.words(spec(AWS)) == ""
    unknown = replace(LAMBDA, provider="of-a-newer-version")
    assert attended.words(spec(unknown)).endswith("of-a-newer-version")


def test_a_run_that_is_resumed_is_asked_for_the_same() -> None:
    store = MemoryStore()
    first = submitted(spec(LAMBDA, budget=40 * USD))
    journal.append(store, RUN, 1, writer="w1", at=AT, events=[first])
    for budget, said in ((None, "$40.00"), (50 * USD, "$50.00")):
        with pytest.raises(InvalidValue, match="cannot be kept") as caught:
            orders.check_attended(store, RUN, attended=False, budget=budget)
        assert said in caught.value.message
        orders.check_attended(store, RUN, attended=True, budget=budget)
