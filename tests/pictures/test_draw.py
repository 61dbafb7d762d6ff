"""Files: that they are what their ending says, whole, the same every time, and need no network."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.pictures.making import ACCELERATORS, ROWS, accelerator, row, select
from tradewind import pictures
from tradewind.base.errors import InvalidValue, MissingExtra, NoAccess, NotFound
from tradewind.pictures import ComparedType, canvas, comparison, matrix, regions, timeline
from tradewind.pictures.chart import Chart, Provenance, Table

TITLE, NOTE = "Prices & <speed>, $1 to $2", "Tradewind catalog of 2026-11-15"
CHARTS: dict[str, Chart] = {
    "matrix": matrix.data(select(ROWS), ACCELERATORS),
    "regions": regions.data(select(ROWS)),
    "timeline": timeline.data(ACCELERATORS, select(ROWS)),
    "comparison": comparison.data(
        [
            ComparedType(name="p4d", provider="aws", region="us", on_demand_micros_hour=21_960_000),
            ComparedType(name="a2", provider="gcp", region="eu", network_gbps=100),
        ]
    ),
}
EXPECTED = {
    "matrix": ["H100", "tiny", "$0.50", "80 GB", "sold by one only", "NVIDIA, desk-side"],
    "regions": ["aws", "$2.00", "spot", "on-demand", "$ per accelerator-hour (logarithmic)"],
    "timeline": ["H100", "RTX8", "2020", "2021", "2022", "Google", "dense TFLOP/s", "$5.00"],
    "comparison": ["p4d · aws · us", "$21.96", "not known", "100 Gbit/s", "network"],
}


def drawn(charts: list[Chart], path: Path) -> bytes:
    pictures.draw(charts, path, title=TITLE, note=NOTE)
    return path.read_bytes()


def png_size(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[12:16] == b"IHDR"
    assert data[-8:-4] == b"IEND"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def texts(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", CHARTS)
def test_svg_holds_the_words(name: str, tmp_path: Path) -> None:
    found = texts(drawn([CHARTS[name]], tmp_path / "x.svg"))
    for expected in [TITLE, NOTE, CHARTS[name].heading, *EXPECTED[name]]:
        assert expected in [text.replace("\u2009", " ") for text in found]


def test_png_of_one_and_of_several_below_one_another(tmp_path: Path) -> None:
    wide, high = png_size(drawn([CHARTS["comparison"]], tmp_path / "one.PNG"))
    assert wide == round((canvas.WIDTH + 2 * canvas.MARGIN) * canvas.DPI)
    both = png_size(drawn([CHARTS["comparison"]] * 2, tmp_path / "two.png"))
    assert both[0] == wide
    assert high * 1.5 < both[1] < high * 2


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_the_same_charts_give_the_same_bytes(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "DPI", 50)
    charts = [CHARTS["matrix"], CHARTS["regions"]]
    first, second = (drawn(charts, tmp_path / f"{n}.{ending}") for n in "ab")
    assert first == second


def test_a_users_matplotlib_settings_change_nothing(tmp_path: Path) -> None:
    import matplotlib

    plain = drawn([CHARTS["comparison"]], tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "axes.facecolor": "red"}):
        assert drawn([CHARTS["comparison"]], tmp_path / "b.svg") == plain
        assert matplotlib.rcParams["font.size"] == 30


class Reader(HTMLParser):
    """Gathers tables, ids and everything that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.fetched.append(value or "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return drawn(list(CHARTS.values()), tmp_path_factory.mktemp("page") / "x.html").decode()


def test_the_page_needs_no_network_and_has_the_numbers(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert reader.fetched == []
    assert not reader.tags & {"script", "link", "img", "iframe", "base", "object", "embed"}
    assert set(re.findall(r"https?://[^\"' <)]*", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in page
    tables = [table for chart in CHARTS.values() for table in chart.tables()]
    assert reader.tables == [
        [list(table.columns), *(list(row) for row in table.rows)] for table in tables
    ]
    assert len(reader.ids) == len(set(reader.ids))
    assert page.count("<svg") == len(CHARTS)
    assert "<title>Prices &amp; &lt;speed&gt;, $1 to $2</title>" in page
    assert '<span class="date">2026-11-15</span>' in page
    assert "<li>list of aws</li>" in page


def test_the_page_is_light_and_dark(page: str) -> None:
    head, body = page.split("</style>", 1)
    assert "@media (prefers-color-scheme:dark)" in head
    # Every colour in the drawings is a variable, and every variable has both values.
    assert re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", body) == []
    for role in set(re.findall(r"var\(--([a-z0-9-]+)\)", body)):
        assert head.count(f"--{role}:") == 2


def test_hostile_names_break_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "DPI", 50)
    name = "</svg><script>alert(1)</script>\x00\x1b $x$ _ 東京"
    rows = [
        row(name, name, on_demand=1, region=name),
        row("_p", name, on_demand=2, region="a" * 99),
    ]
    charts: list[Chart] = [matrix.data(select(rows), {}), regions.data(select(rows))]
    assert any("script" in text for text in texts(drawn(charts, tmp_path / "x.svg")))
    png_size(drawn(charts, tmp_path / "x.png"))
    page = drawn(charts, tmp_path / "x.html").decode()
    assert "<script" not in page
    assert "\x00" not in page


def test_a_huge_selection_stays_small_and_legible(tmp_path: Path) -> None:
    rows = [
        row(f"provider-{p:02}", f"chip-{a}", on_demand=1 + (a * 7 + p * 3) % 23)
        for p in range(27)
        for a in range(60)
    ]
    known = {f"chip-{a}": accelerator(f"chip-{a}", bf16_tflops=10.0 + a) for a in range(60)}
    chart = matrix.data(select(rows), known)
    assert len(drawn([chart], tmp_path / "x.html")) < 1_000_000
    width, height = chart.size()
    assert width < 20
    assert height < 20


@dataclass(frozen=True)
class Blank:
    width: float
    height: float
    heading: str = "blank"
    caption: str = ""
    provenance: Provenance = field(default_factory=Provenance)

    def tables(self) -> tuple[Table, ...]:
        return ()

    def size(self) -> tuple[float, float]:
        return self.width, self.height

    def paint(self, area: canvas.Area) -> None:
        pass


def test_a_picture_beyond_the_rasteriser_is_drawn_coarser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "MOST_SIDE", 1000)
    assert png_size(drawn([Blank(12, 30)], tmp_path / "x.png"))[1] == pytest.approx(1000, abs=2)
    monkeypatch.setattr(canvas, "MOST_PIXELS", 200_000)
    wide, high = png_size(drawn([Blank(12, 30)], tmp_path / "x.png"))
    assert wide * high == pytest.approx(200_000, rel=0.02)


# -- what can go wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.png.txt", ".png"])
def test_another_ending_is_refused_and_the_three_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue) as caught:
        drawn([CHARTS["comparison"]], tmp_path / name)
    assert caught.value.hint == "let the name end in .png, .svg or .html"
    assert list(tmp_path.iterdir()) == []


def test_no_charts(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        drawn([], tmp_path / "x.png")


def test_a_folder_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NoAccess, match="is not a folder"):
        drawn([Blank(2, 1)], tmp_path / "new" / "x.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.svg").mkdir()
    for path in (tmp_path / "file" / "x.svg", Path("/proc/none/x.svg"), tmp_path / "folder.svg"):
        with pytest.raises(NoAccess, match=r"cannot be written|is not a folder"):
            drawn([Blank(2, 1)], path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.svg"]


def test_an_old_picture_survives_a_failed_drawing(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    before = drawn([Blank(2, 1)], path)

    class Failing(Blank):
        def paint(self, area: canvas.Area) -> None:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        drawn([Failing(2, 1)], path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("ending", ["png", "html"])
def test_without_matplotlib(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra) as caught:
        drawn([CHARTS["comparison"]], tmp_path / f"x.{ending}")
    assert caught.value.hint == "pip install 'tradewind[plot]'"


def test_importing_and_gathering_data_does_not_import_matplotlib() -> None:
    code = (
        "import sys, tradewind.pictures.canvas, tradewind.pictures.page\n"
        "from tests.pictures.making import *\n"
        "from tradewind.pictures import matrix, regions, timeline\n"
        "matrix.data(select(ROWS), ACCELERATORS).tables(); regions.data(select(ROWS)).caption\n"
        "timeline.data(ACCELERATORS, select(ROWS)).tables()\n"
        "sys.exit('matplotlib' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_exported_names() -> None:
    assert pictures.__all__ == sorted(pictures.__all__, key=lambda n: (not n.isupper(), n))
    assert all(hasattr(pictures, name) for name in pictures.__all__)
