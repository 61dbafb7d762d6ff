"""The page of a serving plan as text: well-formed, small, safe, and whole whatever the plan is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from tests.catalog.small import NOW, row, small
from tests.planning.serving.test_serving_plan import DAY, SMALL, work
from tests.web.test_page_text import HOSTILE, Page
from tradewind.model import Limits
from tradewind.model.lengths import Lengths
from tradewind.model.serveplan import Alternative, Changed, NotChosen, ServingPlans
from tradewind.planning.serving.planner import Planner, plan
from tradewind.web.serve_page import render


@cache
def usual() -> ServingPlans:
    asked = work(rate=60.0, curve=DAY, growth=0.1, quantise=("fp8",))
    return plan(asked, catalog=small(*SMALL), now=NOW)


def bars(text: str) -> list[str]:
    return re.findall(r'<rect class="(?:spot|on-demand)"[^>]*><title>([^<]*)</title>', text)


def test_it_shows_hours_cost_alternatives_and_why_others_were_rejected() -> None:
    plans = usual()
    assert plans.best is not None
    text = render(plans)
    page = Page(text)
    assert len(page.scripts) == 2  # its data, and what moves the sliders
    assert len(text) < 60_000
    assert f"about ${plans.best.cost / 1e6:,.0f} a month." in page.text
    pool = plans.best.pools[0]
    shown = bars(text)
    assert len(shown) == sum((hour.spot > 0) + (hour.on_demand > 0) for hour in pool.hours)
    assert shown[0].startswith("00:00: ")
    assert f"({pool.hours[12].needed} needed)" in next(one for one in shown if "12:00" in one)
    for title in ("Machines by hour", "What targets cost", "With growth", "Instead of machines",
                  "Rejected: 2 accelerators", "What was asked", "What was assumed"):  # fmt: skip
        assert title in page.text
    for one in plans.losers:
        assert one.accelerator in page.text
        assert one.reason in page.text
    for alternative in plans.alternatives:
        assert alternative.what in page.text
    assert "margin: first tokens take" in page.text or "no margin" in page.text


def test_sliders_move_among_plans_that_were_made() -> None:
    asked = work(rate=60.0, curve=DAY, tpot_s=None)
    plans = Planner(asked, small(*SMALL), now=NOW).plans(changed=True)
    assert plans.best is not None
    text = render(plans)
    data = json.loads(Page(text).scripts[0])
    steps = [data["traffic"], *(one["steps"] for one in data["targets"])]
    costs = {tuple(at): cost for at, cost, _ in data["costs"]}
    assert set(costs) == set(product(*steps))
    assert costs[1.0, 1.0] == plans.best.cost / 1e6
    assert costs[2.0, 1.0] > costs[1.0, 1.0] > costs[0.5, 1.0]
    for name in ("traffic", "ttft"):
        assert f'id="s-{name}"' in text
    assert 'id="s-tpot"' not in text


def test_two_pools_are_two_charts() -> None:
    rows = (row("gcp", "L4", 1, on_demand=0.2), row("aws", "H100-SXM", 1, on_demand=9.0))
    asked = work(
        rate=100.0, input=Lengths.shares({200: 0.97, 12_000: 0.03}), ttft_s=0.9, ttft_share=0.99,
        tpot_s=0.08, quantise=("fp8",),
    )  # fmt: skip
    text = render(plan(asked, catalog=small(*rows), now=NOW))
    assert text.count('<svg role="img"') == 2
    assert "Machines by hour: prompts up to 200 tokens" in Page(text).text


@pytest.mark.parametrize(("hours", "first"), [(168, "Mon 00:00: "), (24, "00:00: ")])
def test_a_week_has_its_days(hours: int, first: str) -> None:
    curve = tuple(float(1 + at % 5) for at in range(hours))
    text = render(plan(work(curve=curve), catalog=small(*SMALL), now=NOW, explain=False))
    assert bars(text)[0].startswith(first)


def test_where_nothing_does_it_says_what_would() -> None:
    plans = plan(work(Limits(confidence=0.8), tpot_s=0.001), catalog=small(*SMALL), now=NOW)
    page = Page(render(plans))
    assert "Nothing meets the targets within the limits" in page.text
    assert "nearest: 1× H100-SXM" in page.text
    assert "it could be done with tpot" in page.text
    assert "Machines by hour" not in page.text
    bare = Page(render(replace(plans, nearest=None, losers=())))
    assert "No single change" in bare.text


def test_names_from_outside_stay_text() -> None:
    plans = usual()
    assert plans.best is not None
    pool = replace(plans.best.pools[0], instance_type=HOSTILE, sizes=HOSTILE, band=HOSTILE)
    other = Alternative(
        kind="api", provider=HOSTILE, what=HOSTILE, cost=plans.best.cost, usd_per_million=1.0,
        crossover=None, note=HOSTILE, as_of=HOSTILE, source=HOSTILE,
    )  # fmt: skip
    page = Page(
        render(
            replace(
                plans,
                best=replace(plans.best, pools=(pool,)),
                changed=(
                    Changed(1.0, dict.fromkeys(plans.targets, 1.0), plans.best.cost, HOSTILE),
                ),
                alternatives=(other,),
                losers=(NotChosen(HOSTILE, HOSTILE),),
                notes=(HOSTILE,),
            )
        )
    )
    assert len(page.scripts) == 2
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert HOSTILE in page.text
