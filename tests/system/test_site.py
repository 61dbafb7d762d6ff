"""The site of the documentation: built without a warning, read from a disk in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]
OPENED = ["index", "README", "docs/get-started", "docs/architecture", "docs/commands/plan"]
OPENED += ["docs/design/006-spot", "examples/tiny-gpt/README", "files/examples/tiny-gpt/train.py"]


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does."""
    words = re.search(r"\$\(BIN\)/sphinx-build (.*)", (ROOT / "Makefile").read_text())
    assert words
    options = words[1].replace("build/doctrees", str(out / "doctrees")).split()
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *options[:-2], str(source), str(out / "site")],
        cwd=source,
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built")
    done = build(ROOT, out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out / "site"


class Reader:
    """A page that remembers what was asked for and what was complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))

    def content(self) -> None:
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:"))] == []


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    page = browser.new_page()
    yield Reader(page)
    page.close()


def test_pages_open_from_a_disk_and_ask_for_nothing_outside(site: Path, reader: Reader) -> None:
    for name in OPENED:
        reader.page.goto((site / f"{name}.html").as_uri())
        reader.page.wait_for_selector("h1")
        assert reader.page.locator(".sidebar-search").count() == 1
    reader.content()


def test_search_finds_from_a_disk(site: Path, reader: Reader) -> None:
    reader.page.goto((site / "docs/README.html").as_uri())
    reader.page.fill(".sidebar-search", "fencing supervisor")
    reader.page.press(".sidebar-search", "Enter")
    reader.page.wait_for_selector("#search-results ul.search li a")
    found = reader.page.locator("#search-results ul.search li a").all_inner_texts()
    assert "005: Runs that cannot be lost" in found
    reader.content()


def test_the_sidebar_is_in_the_order_of_the_list(site: Path, reader: Reader) -> None:
    reader.page.goto((site / "docs/README.html").as_uri())
    shown = reader.page.locator(".sidebar-tree > ul > li > a").all_inner_texts()
    wanted = (
        "Get started,Concepts,One plan,Local machines,PyTorch,Spot and deadlines,Budgets,Stores,"
    )
    wanted += "Benchmarks,Architecture,When something goes wrong,Commands,The workload file"
    places = [next(i for i, s in enumerate(shown) if s.startswith(w)) for w in wanted.split(",")]
    assert places == sorted(places)


def test_the_picture_of_the_house_is_seen(site: Path, reader: Reader) -> None:
    reader.page.goto((site / "docs/architecture.html").as_uri())
    wide = reader.page.evaluate("document.querySelector('article img').naturalWidth")
    assert wide > 500
    reader.content()


def test_no_page_names_a_script_or_style_of_others(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(
            r'<(script|link|img)[^>]+(src|href)="(https?:)?//', page.read_text()
        ), page


def test_links_between_pages_lead_to_pages(site: Path) -> None:
    for page in site.rglob("*.html"):
        for target in re.findall(r'href="([^"#?:]+)["#?]', page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(site)}: {target}"


def copied(folder: Path) -> Path:
    """All that the site is made of, to be broken."""
    source = folder / "source"
    for name in ("docs", "examples", "tools"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    return source


def test_what_leads_nowhere_and_pages_in_no_list_are_errors(tmp_path: Path) -> None:
    """All of them are told at once."""
    source = copied(tmp_path)
    with (source / "docs" / "spot.md").open("a") as page:
        page.write("\n[there](nowhere.md)\n\n[there](concepts.md#no-such-heading)\n")
        page.write("\n![seen](pictures/none.png)\n")
    (source / "docs" / "lonely.md").write_text("# Lonely\n")
    done = build(source, tmp_path)
    assert done.returncode != 0
    for said in ("nowhere", "no-such-heading", "none.png", "lonely"):
        assert re.search(rf"WARNING:.*{said}|{said}.*WARNING:", done.stderr), said


def test_a_folder_without_a_page_is_shown_as_a_list(tmp_path: Path) -> None:
    source = copied(tmp_path)
    with (source / "docs" / "spot.md").open("a") as page:
        page.write("\n[how](../tools/site)\n")
    done = build(source, tmp_path)
    assert done.returncode == 0, done.stderr
    files = tmp_path / "site" / "files" / "tools"
    assert 'href="../files/tools/site.html"' in (tmp_path / "site/docs/spot.html").read_text()
    assert 'href="site/conf.py.html"' in (files / "site.html").read_text()
    assert "html_theme" in (files / "site" / "conf.py.html").read_text()
