"""The sliders of a serving plan's page in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.catalog.small import NOW, small
from tests.planning.serving.test_serving_plan import SMALL, work
from tests.web.test_page_text import Page
from tradewind.planning.serving.planner import Planner
from tradewind.web.serve_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.system


def test_moving_a_slider_shows_what_was_planned_for_it(browser: Browser, folder: Path) -> None:
    text = render(Planner(work(rate=60.0, tpot_s=None), small(*SMALL), now=NOW).plans(changed=True))
    path = folder / "serve.html"
    path.write_text(text, encoding="utf-8")
    data = json.loads(Page(text).scripts[0])
    costs = {tuple(at): cost for at, cost, _ in data["costs"]}
    for width in (1200, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))  # noqa: B023
        page.goto(path.as_uri())
        result = page.locator("#result")
        assert f"${costs[1, 1]:,.0f} a month" in result.inner_text()
        page.locator("#s-traffic").press("End")
        assert f"${costs[4, 1]:,.0f} a month" in result.inner_text()
        assert page.locator("#o-traffic").inner_text() == "240 requests a second"
        page.locator("#s-ttft").press("Home")
        assert f"${costs[4, 0.5]:,.0f} a month" in result.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not said
        page.screenshot(path=folder / f"serve-{width}.png", full_page=True)
        page.close()
