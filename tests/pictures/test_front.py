"""Time against money: what is drawn, and that every kind of plan can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pictures.test_draw import png_size, texts
from tests.web.making import FRONT, OTHERS, nothing, own, plan, plans, workload
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.plan import Plans
from tradewind.pictures import canvas, front


def test_every_way_is_there_once_and_says_whether_it_keeps_the_limits() -> None:
    found = front.data(plans())
    assert len(found.ways) == len(FRONT) + len(OTHERS)
    assert found.best is found.front[1]
    assert [way.kept for way in found.front] == [True, True, False]
    assert found.caption.startswith(
        "Chosen: p5.48xlarge at aws use1-az1, on-demand, $100 in 10h. Every dot"
    )
    assert "Prices of 2026-10-01 to 2026-11-01." in found.caption
    assert found.tables()[0].rows[0][-3:] == ("4h", "$400", "95%")


def test_the_svg_names_the_front_and_the_limits(tmp_path: Path) -> None:
    front.draw(plans(), tmp_path / "front.svg")
    found = texts((tmp_path / "front.svg").read_bytes())
    for expected in ("bot", "8 × H100-SXM · on-demand · $100", "deadline 20h", "budget $500"):
        assert expected in found


def test_names_do_not_lie_on_one_another(tmp_path: Path) -> None:
    close = tuple(plan(100 - i, 10 + i / 10, instance_type=f"t{i}") for i in range(20))
    front.draw(plans(best=close[-1], plans=(), front=close, others=()), tmp_path / "close.svg")
    named = [text for text in texts((tmp_path / "close.svg").read_bytes()) if "H100" in text]
    assert 1 < len(named) < 20


CASES: dict[str, Plans] = {
    "nothing feasible": nothing(),
    "own": plans(best=own(), front=(*FRONT, own())),
    "free": plans(best=own(0), front=(*FRONT, own(0))),
    "all free": plans(best=own(0), front=(own(0),), others=()),
    "one": plans(front=FRONT[1:2], others=()),
    "no limits": plans(workload=workload(within_s=None, budget=None), deadline_hours=None),
    "hostile": plans(best=plan(instance_type="$<&>$"), front=(plan(instance_type="$<&>$"),)),
    "undated": plans(prices_from="", prices_until=""),
}


@pytest.mark.parametrize("name", CASES)
def test_plans_of_every_kind_are_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "DPI", 40)
    front.draw(CASES[name], tmp_path / "front.png")
    assert png_size((tmp_path / "front.png").read_bytes())[0] == round((12 + 0.8) * 40)


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no way to finish"):
        front.draw(replace(nothing(), front=(), others=()), tmp_path / "front.png")
    with pytest.raises(InvalidValue, match="not known"):
        front.draw(plans(), tmp_path / "front.gif")
