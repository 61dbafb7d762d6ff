"""The page of a plan as text: well-formed, small, safe, and whole whatever the plan is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.web.making import FRONT, LOSERS, OTHERS, loser, nothing, own, plan, plans, workload
from tradewind.base.units import format_hours
from tradewind.model.plan import Plans
from tradewind.web import page_data, words
from tradewind.web.plan_page import render

VOID = {"meta", "input", "br", "link", "img", "hr"}
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<!--{{data}}"


class Page(HTMLParser):
    """Fails on tags that do not match, and gathers what is there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self) -> dict[str, Any]:
        found = json.loads(self.scripts[0])
        assert isinstance(found, dict)
        return found


CASES: dict[str, Plans] = {
    "usual": plans(),
    "nothing feasible": nothing(),
    "no losers": plans(losers=()),
    "no way at all": plans(best=None, plans=(), front=(), others=()),
    "own": plans(best=own(), plans=(own(), FRONT[1]), front=(*FRONT, own())),
    "own, free": plans(best=own(0), plans=(own(0),), front=(own(0),)),
    "no limits": plans(workload=workload(within_s=None, budget=None), deadline_hours=None),
    "one way": plans(plans=FRONT[1:2], front=FRONT[1:2], others=()),
    "reserved": plans(best=plan(markets=("reserved",), costs={"reserved": 5})),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_whole_small_and_asks_for_nothing(name: str) -> None:
    text = render(CASES[name])
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert [tag for tag, _ in page.tags].count("script") == 2
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert not [a for _, a in page.tags if "src" in a or "href" in a or "style" in a]
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    labels = {a["for"] for tag, a in page.tags if tag == "label"}
    ranges = {a["id"] for tag, a in page.tags if tag == "input" and a.get("type") == "range"}
    assert labels == ranges == {"deadline", "budget", "confidence"}


def test_what_matters_is_there_without_the_script() -> None:
    page = Page(render(plans()))
    assert (
        "Rent p5.48xlarge (8 × H100-SXM) on-demand at aws use1-az1: about $100 in 10h, "
        "95% likely to be done within 20h, over 99% likely for $500 at most." in page.text
    )
    for expected in ("$400", "1B tokens", "2026-10-01 to 2026-11-01", "Spot: as public probes"):
        assert expected in page.text


def test_the_numbers_are_all_there_once() -> None:
    page = Page(render(plans())).data
    assert len(page["ways"]) == len(FRONT) + len(OTHERS)
    costs = [row[page["columns"].index("cost")] for row in page["ways"]]
    assert costs == sorted(costs)
    assert costs[page["best"]] == 100_000_000
    assert [costs[i] for i in page["front"]] == [400_000_000, 100_000_000, 60_000_000]
    assert (page["deadline"], page["budget"], page["confidence"]) == (20, 500_000_000, 0.9)
    assert {kind: count for kind, _, count in page["kinds"]} == {"money": 1, "time": 1, "memory": 1}


def test_hostile_names_stay_names() -> None:
    bad = plan(instance_type=HOSTILE, provider=HOSTILE, band=HOSTILE, price_source=HOSTILE)
    wicked = plans(
        best=bad, plans=(bad,), front=(bad,), others=(bad,), notes=(HOSTILE,),
        losers=(loser(instance_type=HOSTILE, why=HOSTILE),),
    )  # fmt: skip
    page = Page(render(wicked))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert HOSTILE in page.text
    assert page.data["losers"][0][2] == HOSTILE
    assert "<!--" not in page.scripts[0]


@pytest.mark.parametrize("odd", ["\x00\x1b[31m", "\ud800", "a\nb\u2028c", "x" * 5000])
def test_odd_characters_do_not_spoil_it(odd: str) -> None:
    text = render(plans(losers=(loser(instance_type=odd, why=odd),), notes=(odd,)))
    text.encode("utf-8")
    Page(text)
    assert "x" * 200 not in text


def test_many_losers_are_cut_and_it_is_said() -> None:
    many = tuple(loser(instance_type=f"a-rather-long-name-of-a-type-{i}") for i in range(5000))
    text = render(plans(losers=many))
    assert len(text.encode()) < 1_000_000
    assert len(Page(text).data["losers"]) == page_data.MOST_LOSERS
    assert "The first 2,000 are listed." in Page(text).text


def test_nothing_feasible_says_what_would_make_room() -> None:
    page = Page(render(nothing()))
    assert "Nothing among 900 ways finishes this work within 2h for $500." in page.text
    assert "A later deadline with 14h instead of 2h" in page.text
    assert "A larger budget with 4.0× the budget" in page.text
    assert page.data["best"] is None
    alone = Page(render(replace(nothing(), relaxations=())))
    assert "No single limit, lifted alone" in alone.text


def test_own_hardware_is_called_that_and_its_file_is_not_told() -> None:
    text = render(plans(best=own(), plans=(own(),), front=(*FRONT, own())))
    assert "Use your own desk (4 × RTX4090): about $50.00 in 1d 16h" in Page(text).text
    assert "account.yaml line 4" in text
    assert "/home/ada" not in text


def test_numbers_that_are_none_do_not_break_the_data() -> None:
    endless = plan(hours=float("inf"), hours_high=float("inf"))
    page = Page(render(plans(others=(endless, plan(hours_high=float("inf"), nodes=2)))))
    assert len(page.data["ways"]) == len(FRONT) + 1


def test_losers_that_came_close_are_first() -> None:
    dear = loser(instance_type="dear", cost=10**12)
    found = page_data.data(plans(losers=(LOSERS[2], dear, LOSERS[0])))["losers"]
    assert [row[2] for row in found] == ["a3-highgpu-8g", "dear", "g4dn.xlarge"]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0.002, "7s"),
        (0.5, "30m"),
        (67.2, "2d 19h"),
        (52.4968, "2d 4h"),
        (23.999, "1d"),
        (1.0, "1h"),
        (0.0, "0s"),
    ],
)
def test_spans(hours: float, expected: str) -> None:
    assert format_hours(hours) == expected


@pytest.mark.parametrize(
    ("micros", "expected"),
    [(4_797_757_549, "$4,798"), (23_577_187, "$23.58"), (1_234, "$0.0012"), (0, "$0.00")],
)
def test_money(micros: int, expected: str) -> None:
    assert words.money(micros) == expected
