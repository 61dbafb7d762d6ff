"""The page of a plan in a real browser: it works, asks for nothing outside, and fits a phone.

`TRADEWIND_SHOTS=folder` keeps the pictures that are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.making import nothing, own, plans
from tradewind import catalog, workload
from tradewind.planning import planner
from tradewind.web.plan_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.system

WORK = Path(__file__).parents[2] / "examples" / "pretrain-1.3b" / "work.yaml"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    """Of a real plan over the built-in catalog."""
    path = folder / "plan.html"
    prices = catalog.load(catalog.files.PACKAGED, account=False)
    found = planner.plan(workload.load(WORK), catalog=prices, now=NOW, closer=True)
    path.write_text(render(found), encoding="utf-8")
    return path


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1200, **how: Any) -> Iterator[Page]:
    """The page; at the end, that it said nothing wrong and asked for nothing outside."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **how)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.locator(".chosen, .play[hidden]").wait_for(state="attached")  # drawn, or nothing to draw
    yield page
    assert wrong == []
    assert asked == [path.as_uri()]
    context.close()


def slide(page: Page, name: str, step: int) -> None:
    page.locator(f"#{name}").fill(str(step))


def money(page: Page) -> str:
    return str(page.locator("#figures dd").first.inner_text())


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_it_opens_and_shows_the_recommendation(browser: Browser, file: Path, folder: Path) -> None:
    with opened(browser, file) as page:
        assert page.locator("circle.dot").count() > 100
        assert page.locator("circle.on-front").count() >= 5
        assert page.locator("#plan-eyebrow").inner_text() == "The recommended plan"
        assert money(page) in page.locator(".sentence").inner_text()
        assert page.locator("#costs dd").count() >= 2
        page.set_viewport_size({"width": 1200, "height": 1300})
        page.screenshot(path=folder / "light.png")
        page.screenshot(path=folder / "light-whole.png", full_page=True)


def test_the_sliders_choose_again(browser: Browser, file: Path) -> None:
    with opened(browser, file) as page:
        first, spot = money(page), page.locator(".chosen").get_attribute("cx")
        slide(page, "deadline", 450)
        tighter = money(page)
        assert tighter != first
        assert page.locator(".chosen").get_attribute("cx") != spot
        assert page.locator("#plan-eyebrow").inner_text() == "The cheapest within these limits"
        slide(page, "budget", 0)
        assert "Nothing computed" in page.locator("#plan-title").inner_text()
        slide(page, "budget", 1000)
        assert page.locator("#budget-out").inner_text() == "none"
        assert money(page) == tighter
        slide(page, "deadline", 1000)  # none: the cheapest of all, weighed by being had
        data = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
        weighed = data["columns"].index("weighed")
        cheapest = min(data["ways"], key=lambda way: way[weighed])
        assert page.locator("#plan-title").inner_text().startswith(cheapest[0])
        page.locator("#reset").click()
        assert money(page) == first
        assert page.locator("#deadline-out").inner_text() == "3d"


def test_more_confidence_never_costs_less(browser: Browser, file: Path) -> None:
    with opened(browser, file) as page:
        costs = []
        for step in (50, 80, 95, 99):
            slide(page, "confidence", step)
            costs.append(float(money(page).replace("$", "").replace(",", "")))
        assert costs == sorted(costs)


def test_dots_tell_of_themselves_to_mouse_and_keyboard(browser: Browser, file: Path) -> None:
    with opened(browser, file) as page:
        dot = page.locator("circle.on-front").first
        dot.hover(force=True)
        assert page.locator("#tip").is_visible()
        page.mouse.move(5, 5)
        assert page.locator("#tip").is_hidden()
        page.locator("circle.dot[tabindex='0']").focus()
        before = page.locator("#tip").inner_text()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#tip").inner_text() not in ("", before)
        page.keyboard.press("Enter")
        assert page.locator("#plan-eyebrow").inner_text() == "The plan that you chose"
        title = page.locator("#plan-title").inner_text()
        page.locator("button.pick").nth(2).click()
        assert page.locator("#plan-title").inner_text() != title


def test_the_rejected_are_searched_and_filtered(browser: Browser, file: Path) -> None:
    with opened(browser, file) as page:
        rows = page.locator("#losers tr")
        few = rows.count()
        page.locator("#more").click()
        everything = rows.count()
        assert everything > few > 0
        page.locator("#kinds button", has_text="too slow").click()
        page.locator("#more").click()
        slow = rows.count()
        assert 0 < slow < everything
        page.locator("#search").fill("a100 aws")
        for text in rows.all_inner_texts():
            assert "A100" in text
            assert "aws" in text
        page.locator("#search").fill("no such machine")
        assert rows.count() == 0
        assert page.locator("#lost-count").inner_text().startswith("0 that match")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_sticks_out(
    browser: Browser, file: Path, folder: Path, width: int, scheme: str
) -> None:
    with opened(browser, file, width, color_scheme=scheme) as page:
        assert overflow(page) <= 0
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
        page.screenshot(path=folder / f"{scheme}-{width}.png", full_page=True)


def test_turning_the_screen_draws_again(browser: Browser, file: Path) -> None:
    with opened(browser, file, 390) as page:
        page.set_viewport_size({"width": 900, "height": 400})
        page.locator("#chart[viewBox^='0 0 852']").wait_for()  # less the margins
        assert overflow(page) <= 0


@pytest.mark.parametrize("case", ["nothing", "own", "free", "one", "empty", "no losers"])
def test_odd_plans_work_too(browser: Browser, tmp_path: Path, case: str) -> None:
    mine, free = own(), own(0)
    found = {
        "nothing": nothing(),
        "own": plans(best=mine, plans=(mine,), front=(*plans().front[:2], mine)),
        "free": plans(best=free, plans=(free,), front=(*plans().front[:2], free)),
        "one": plans(plans=(), front=plans().front[1:2], others=()),
        "empty": plans(best=None, plans=(), front=(), others=()),
        "no losers": plans(losers=()),
    }[case]
    path = tmp_path / "plan.html"
    path.write_text(render(found), encoding="utf-8")
    with opened(browser, path, 390) as page:
        assert overflow(page) <= 0
        shown = page.locator("#plan").is_visible()
        assert shown == (case != "empty")
        assert page.locator("#lost").is_visible() == (case != "no losers")
        if case == "nothing":
            assert "Nothing computed" in page.locator("#plan-title").inner_text()
            slide(page, "deadline", 1000)
            assert page.locator("#figures").is_visible()
        if case == "own":
            assert page.locator("#plan-where").inner_text() == "your own"


def test_a_hostile_name_does_nothing(browser: Browser, tmp_path: Path) -> None:
    bad = own(instance_type="<img src=x onerror='document.title=1'></script><script>x()</script>")
    path = tmp_path / "plan.html"
    path.write_text(render(plans(best=bad, plans=(bad,), front=(bad,))), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.title() == "bot: plan"
        assert "<img src=x" in page.locator("#plan-title").inner_text()
        assert page.locator("img").count() == 0
