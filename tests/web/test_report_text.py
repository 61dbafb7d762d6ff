"""The page of a run as text: well-formed, small, safe, and whole whatever became of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec
import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SAMPLES, SPOT, sample, simulated
from tests.report.making import MARKETS, Making, finished, losses, of_many
from tests.web.test_page_text import HOSTILE, Page
from tradewind.api.handle import Run
from tradewind.model.event import Commit
from tradewind.report.figures import Report
from tradewind.sim.faults import RUN
from tradewind.store.memory import MemoryStore
from tradewind.web.report_page import render
from tradewind.web.svg import Plot, round_marks, time_marks


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00+00:00")


def many_curves() -> Making:
    rows = [{"step": 1, **{f"metric {n}": n for n in range(30)}}]
    return Making().stay(None).measured(1, rows)


CASES: dict[str, Callable[[], Making]] = {
    "finished": finished,
    "running": lambda: Making().stay(300).stay(None),
    "failed": lambda: Making().stay(50, "job_failed").end("failed", "the job has failed"),
    "no legs": Making,
    "cancelled before": lambda: Making().end("cancelled", "its user asked for it"),
    "no metrics": lambda: Making().stay(1000, "finished").end(),
    "torn metrics": lambda: finished().measured(5, b'{"step": 3, "lo\n{"step": 900}\nnull'),
    "one row": lambda: Making().stay(None).measured(1, losses(5, 5)),
    "a flat curve": lambda: Making().stay(None).measured(1, b'{"step":1,"x":0}\n{"step":2,"x":0}'),
    "many curves": many_curves,
    "hours": lambda: Making(spec=replace(MARKETS, steps=False)).stay(None),
    "only refused": lambda: Making().refused().refused(),
    "far deadline": lambda: Making(deadline_s=4e9).stay(None),
    "the farthest deadline": lambda: Making(deadline_s=1e11).stay(None),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_whole_small_and_asks_for_nothing(name: str) -> None:
    text = render(CASES[name]().report())
    page = Page(text)
    assert len(text.encode()) < 200_000
    tags = [tag for tag, _ in page.tags]
    assert "script" not in tags
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert not [a for _, a in page.tags if "src" in a or "href" in a or "style" in a]
    assert not re.search(r"url\(|@import|https?://", text)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text.lower())
    assert "What was asked" in page.text


def test_five_hundred_legs_are_still_a_page() -> None:
    text = render(of_many(500).report())
    page = Page(text)
    assert len(text.encode()) < 1_500_000
    assert "All 501 legs" in page.text
    assert page.text.count("interrupted: so it is") == 199  # of 501; the last one has finished
    assert "… 301 more …" in page.text


def test_thousands_of_legs_too() -> None:
    report = of_many(30).report()
    legs = [replace(leg, leg=n) for n in range(200) for leg in report.legs]
    text = render(replace(report, legs=tuple(legs), events=report.events * 200))
    assert len(text.encode()) < 1_500_000
    Page(text)


def test_what_matters_is_said() -> None:
    page = Page(render(finished().report()))
    for expected in (
        "Done in 19m for $0.58, 41m before the deadline",
        "2 interrupted, 1 refused",
        "80 steps lost with machines",
        "On demand alone $1.01",
        "loss by step, all legs together, up to step 1,000: 0.9091 at the end",
    ):
        assert expected in page.text
    assert "rehearsal" not in page.text


def hostile() -> Report:
    way = replace(SPOT, zone=HOSTILE, instance_type=HOSTILE)
    job = {"command": HOSTILE}
    made = Making(name=HOSTILE, user=HOSTILE, project=HOSTILE, tags={HOSTILE: HOSTILE}, job=job)
    made.stay(50, "job_failed", way).measured(1, [{"step": 1, HOSTILE: 1.0, "loss": 2.0}])
    return made.end("failed", HOSTILE).report()


def test_names_with_html_in_them_stay_names() -> None:
    page = Page(render(hostile()))
    assert not [tag for tag, _ in page.tags if tag in ("img", "script")]
    assert page.text.count(HOSTILE) >= 8
    assert "<b>bad</b>" in page.text


@pytest.mark.parametrize("odd", ["\x00\x1b[31m", "a\nb\u2028c", "x" * 5000])
def test_odd_characters_do_not_spoil_it(odd: str) -> None:
    report = replace(hostile(), name=odd, user=odd, words=f"failed: {odd}")
    text = render(report)
    assert text.encode("utf-8")
    assert Page(text).text


def test_charts_hold_their_data() -> None:
    page = Page(render(finished().report()))
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") in ("spot", "on-demand")]
    assert len(bars) == 3
    paths = [a for tag, a in page.tags if tag == "path" and a.get("class") == "done"]
    assert len(paths) == 2  # progress, loss
    assert all(len(a["d"] or "") > 20 for a in paths)
    assert len([a for tag, a in page.tags if a.get("class") == "taken" and tag == "circle"]) == 2
    assert len([a for _, a in page.tags if a.get("class") == "refused" and "x1" in a]) == 1


def test_marks_are_round_and_few() -> None:
    assert round_marks(0, 1000) == [0, 250, 500, 750, 1000]
    assert round_marks(0.113, 0.142, 3) == [0.12, 0.13, 0.14]
    assert round_marks(5, 5) == [5]
    assert round_marks(float("nan"), 1) == []
    assert [words for _, words in time_marks(3600)] == ["0", *(f"{n}0m" for n in range(1, 6)), "1h"]
    for seconds in (0.5, 1, 59, 4000, 90_000, 3e6, 3e8):
        assert 1 <= len(time_marks(seconds)) <= 9


def test_a_plot_of_nothing_divides_by_nothing() -> None:
    plot = Plot((5, 5), (0, 0), height=10, label="x")
    plot.line([], "done")
    plot.area([], [], "band")
    plot.bar(5, 5, 0, 1, "spot")
    assert "<svg" in plot.made()


def written(commits: Sequence[Commit]) -> Report:
    store = MemoryStore()
    for commit in commits:
        store.create(f"runs/{RUN}/journal/{commit.number:020d}.json", msgspec.json.encode(commit))
    return Run(RUN, store).report()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_controllers_write_can_be_reported(seed: int) -> None:
    """Runs through everything that can go wrong, at their ends and cut off in the middle."""
    commits = simulated(seed)
    for part in (commits, commits[: max(len(commits) // 2, 1)], commits[:1]):
        report = written(part)
        Page(render(report))
        assert sum(leg.micros for leg in report.legs) == report.money.micros
        assert sum(each.micros for each in report.money.by_place) == report.money.micros


@pytest.mark.parametrize("name", SAMPLES)
def test_journals_of_old_can_be_reported(name: str) -> None:
    commits = sample(name)
    report = written(
        [msgspec.structs.replace(commit, number=n) for n, commit in enumerate(commits, 1)]
    )
    Page(render(report))
    assert (report.submitted is None) == (name == "abandoned")
