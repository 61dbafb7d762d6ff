"""The page of a run in a real browser: it opens, asks for nothing outside, and fits a phone.

`TRADEWIND_SHOTS=folder` keeps the pictures that are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPOT, WAY
from tests.report.making import MARKETS, START, Making, finished, losses, of_many
from tests.web.test_report_text import hostile
from tradewind import store as stores
from tradewind.api.handle import Run
from tradewind.report.figures import Rehearsal, Report
from tradewind.web.report_page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.system

Scheme = Literal["light", "dark"]
SIGHTS: tuple[tuple[int, Scheme], ...] = (
    (1280, "light"),
    (390, "light"),
    (1280, "dark"),
    (390, "dark"),
)
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
EXAMPLES = Path(__file__).parents[2] / "examples" / "store"


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00+00:00")


def going() -> Report:
    """Late, on two nodes, in a rehearsal."""
    ways = (replace(WAY, provider="local", nodes=2), replace(SPOT, provider="local", nodes=2))
    spec = replace(MARKETS, ways=ways, work=20_000.0, deadline_s=START.timestamp() + 5 * 3600)
    made = Making(spec=spec, budget=50_000_000)
    made.stay(3000, way=ways[1]).measured(1, losses(1, 3000)).wait(600).refused().wait(900)
    made.stay(None, way=ways[1])
    rehearsal = Rehearsal(kind="chaos", words="spot machines were interrupted at random")
    return replace(made.report(), rehearsal=rehearsal)


PAGES: dict[str, Callable[[], Report]] = {
    "example": lambda: Run("run-0199", stores.open(str(EXAMPLES))).report(),
    "finished": lambda: finished().report(),
    "going": going,
    "failed": hostile,
    "empty": lambda: Making().report(),
    "many": lambda: of_many(500).report(),
}
SEEN = {  # how many legs, curves, uprights of refusals are drawn
    "example": (3, 1, 0),
    "finished": (3, 1, 1),
    "going": (2, 1, 1),
    "failed": (1, 2, 0),
    "empty": (0, 0, 0),
    "many": (501, 1, 0),
}


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def opened(browser: Browser, path: Path, width: int, scheme: Scheme) -> Iterator[Page]:
    """The page; at the end, that it said nothing wrong and asked for nothing outside."""
    size: ViewportSize = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert wrong == []
    assert asked == [path.as_uri()]
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_it_opens_everywhere(browser: Browser, folder: Path, name: str) -> None:
    path = folder / f"report-{name}.html"
    path.write_text(render(PAGES[name]()), encoding="utf-8")
    assert path.stat().st_size < 1_500_000
    legs, curves, refused = SEEN[name]
    for width, scheme in SIGHTS:
        with opened(browser, path, width, scheme) as page:
            page.screenshot(path=folder / f"report-{name}-{width}-{scheme}.png", full_page=True)
            assert overflow(page) == 0
            drawn = page.locator(".chart rect.spot, .chart rect.on-demand")
            assert drawn.count() == legs
            for each in drawn.all()[:5]:
                box = each.bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= width
            assert page.locator("path.raw").count() == curves
            assert page.locator(".chart line.refused").count() == refused
            flat = page.locator(".chart rect").evaluate_all(
                "all => all.filter(r => !r.getBoundingClientRect().width).length"
            )
            assert flat == 0  # which no browser draws
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == GROUND[scheme]


def test_letters_keep_their_size_on_a_phone(browser: Browser, folder: Path) -> None:
    path = folder / "report-size.html"
    path.write_text(render(finished().report()), encoding="utf-8")
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        heights = page.evaluate(
            "[...document.querySelectorAll('.chart text')].map(t => t.getBoundingClientRect())"
            ".filter(box => box.width).map(box => box.height)"
        )
        assert heights
        assert all(10 < height < 24 for height in heights)
        page.close()


def test_it_can_be_printed(browser: Browser, folder: Path) -> None:
    path = folder / "report-print.html"
    path.write_text(render(finished().report()), encoding="utf-8")
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf(path=folder / "report.pdf")) > 10_000
    context.close()
