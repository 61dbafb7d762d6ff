"""The page of buy or rent: its sliders give the same figures as the command."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.economics.making import JOBS, asked, fixed
from tests.web.test_page_text import Page
from tradewind.economics import inputs, own, use
from tradewind.economics.owning import Terms
from tradewind.web.own_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MADE = datetime(2026, 11, 15, 12, tzinfo=UTC)
PRICED = {
    "rent_usd_hour": 3.1, "spot_usd_hour": 1.2, "reserved_1y_usd_hour": 2.2,
    "reserved_3y_usd_hour": 1.7, "usd_per_kwh": 0.08, "pue": 1.4, "colo_usd_kw_month": 150.0,
    "discount": 0.08, "rent_trend": -0.1, "staff_factor": 1.0, "staff_usd_year": 230_000.0,
    "residual_factor": 1.0, "life_years": 5.0, "availability": 0.97, "fabric_share": 0.12,
    "spares_share": 0.03, "support_share": 0.08, "spot_overhead": 1.1,
}  # fmt: skip
CASES = {
    "jobs": asked(use.of_jobs(JOBS, 10, 1), inputs=fixed(**PRICED)),
    "many": asked(use.of_pattern(900_000, "office"), inputs=fixed(**PRICED)),
    "lease": asked(
        use.of_pattern(30_000, "steady"), inputs=fixed(**PRICED), terms=Terms(4, 8, 0.2, lease=True)
    ),
}


def test_the_page_says_all_without_its_script() -> None:
    found = own.answer(CASES["jobs"])
    page = Page(render(found, MADE))
    for one in found.options:
        assert one.words in page.text
        assert f"${one.total:,.0f}" in page.text
    for name in CASES["jobs"].inputs:
        assert name in page.text


def test_names_of_others_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    hostile = fixed(**PRICED) | {"pue": inputs.Input("pue", evil, evil, 1, 1, 1, evil, doubt=evil)}
    text = render(own.answer(asked(inputs=hostile)), MADE)
    assert evil not in text


@pytest.mark.system
@pytest.mark.parametrize("name", CASES)
def test_sliders_give_the_figures_of_the_command(name: str, browser: Browser, folder: Path) -> None:
    question = CASES[name]
    path = folder / f"own-{name}.html"
    path.write_text(render(own.answer(question), MADE))
    errors: list[object] = []
    for wide in (1200, 390):
        tab = browser.new_page(viewport={"width": wide, "height": 900})
        tab.on("pageerror", lambda error: errors.append(error))
        tab.goto(path.as_uri())
        tab.wait_for_selector("#chart circle")
        assert tab.evaluate("document.documentElement.scrollWidth") == wide
        same(tab, question)
        changed = dict(question.inputs) | {
            key: fixed(**{key: value})[key]
            for key, value in (("use_factor", 1.5), ("usd_per_kwh", 0.2), ("discount", 0.12))
        }
        for slider, value in (("use", 150), ("power", 200), ("years", 7), ("discount", 12)):
            tab.evaluate(
                "([id, value]) => { const s = document.getElementById(id); s.value = value;"
                " s.dispatchEvent(new Event('input', { bubbles: true })); }",
                [slider, value],
            )
        terms = Terms(7, 8, question.terms.growth, question.terms.lease)
        same(tab, asked(question.use, inputs=changed, terms=terms))
        assert "--years 7" in tab.inner_text("#again")
        assert "use_factor=1.5" in tab.inner_text("#again")
        tab.screenshot(path=folder / f"own-{name}-{wide}.png", full_page=True)
        assert errors == []
        tab.close()


def same(tab: object, question: own.Question) -> None:
    rows = tab.eval_on_selector_all(  # type: ignore[attr-defined]
        "#options td[data-total]", "all => all.map((e) => [e.dataset.name, +e.dataset.total])"
    )
    found = own.answer(question)
    assert {name for name, _ in rows} == {o.name for o in found.options}
    for one in found.options:
        assert dict(rows)[one.name] == pytest.approx(one.total, rel=1e-9), one.name
