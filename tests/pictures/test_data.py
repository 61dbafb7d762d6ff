"""What the charts will show, exactly."""

from __future__ import annotations

from datetime import date
from math import inf

import pytest

from tests.pictures.making import ACCELERATORS, ROWS, accelerator, row, select
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model import Market
from tradewind.pictures import ComparedType, Provenance, comparison, matrix, regions, timeline
from tradewind.pictures.matrix import Cell

# -- matrix --------------------------------------------------------------------------------------


def test_matrix_has_the_cheapest_trusted_price_of_each_seller() -> None:
    data = matrix.data(select(ROWS), ACCELERATORS)
    assert data.providers == ("tiny", "aws", "gcp")  # three kinds, two, two
    assert [r.accelerator for r in data.rows] == ["H100", "A100", "RTX9", "RTX8", "TPU"]
    h100 = data.rows[0]
    assert h100.cells == (
        Cell(2_200_000, "spot", 1.1),
        Cell(2_000_000, "spot", 1.0),
        Cell(3_000_000, "on_demand", 1.5),
    )
    assert data.rows[3].cells == (Cell(200_000, "on_demand", 1.0), None, None)  # half a chip
    assert data.markets == ("on_demand", "spot")


def test_matrix_families_stand_together_and_a_lone_one_among_the_others() -> None:
    data = matrix.data(select(ROWS), ACCELERATORS)
    families = ["NVIDIA, data centre"] * 2 + ["NVIDIA, desk-side"] * 2 + ["Others"]
    assert [r.family for r in data.rows] == families


def test_matrix_of_one_market() -> None:
    data = matrix.data(select(ROWS, markets=("on_demand",)), ACCELERATORS)
    cells = dict(zip(data.providers, data.rows[0].cells, strict=True))
    assert cells["aws"] == Cell(4_000_000, "on_demand", 4 / 3)
    assert cells["tiny"] is None  # its price is marked
    assert "All prices are on-demand" in data.caption
    assert data.tables()[0].rows[0] == ("H100", "$4.00", "$3.00", "")


def test_matrix_says_which_market_where_there_are_several() -> None:
    data = matrix.data(select(ROWS), ACCELERATORS)
    table = data.tables()[0]
    assert table.columns == ("accelerator", "tiny", "aws", "gcp")
    assert table.rows[0] == ("H100", "$2.20 spot", "$2.00 spot", "$3.00 on-demand")
    assert table.rows[1] == ("A100", "", "$2.00 on-demand", "")
    assert "s: spot; no letter: on-demand" in data.caption


def test_matrix_knows_where_its_prices_are_from() -> None:
    data = matrix.data(select(ROWS), ACCELERATORS)
    assert data.provenance == Provenance(
        date(2026, 10, 1), date(2026, 11, 1), ("list of aws", "list of gcp", "list of tiny")
    )
    assert "Prices of 2026-10-01 to 2026-11-01." in data.caption


def test_matrix_with_something_free_and_something_unheard_of() -> None:
    rows = [row("mine", "H100", on_demand=0), row("aws", "H100", on_demand=2), row("x", "New-1")]
    rows[2] |= row("x", "New-1", on_demand=1)
    data = matrix.data(select(rows, include_marked=True), ACCELERATORS)
    h100 = next(r for r in data.rows if r.accelerator == "H100")
    ratios = {p: c.ratio for p, c in zip(data.providers, h100.cells, strict=True) if c}
    assert ratios == {"mine": 1.0, "aws": inf}
    assert {r.accelerator: r.memory_gb for r in data.rows} == {"H100": 80, "New-1": None}


def test_matrix_of_the_whole_is_quick_and_complete() -> None:
    rows = [
        row(f"p{p}", f"chip-{a}", on_demand=1 + a, region=f"r{r}")
        for p in range(27)
        for a in range(60)
        for r in range(8)
    ]
    data = matrix.data(select(rows), {f"chip-{a}": accelerator(f"chip-{a}") for a in range(60)})
    assert (len(data.rows), len(data.providers)) == (60, 27)
    assert all(r.sellers == 27 for r in data.rows)


# -- regions -------------------------------------------------------------------------------------


def h100(**asked: object) -> regions.RegionsData:
    return regions.data(select(ROWS, accelerators=frozenset({"H100"}), **asked))


def test_regions_have_a_price_for_each_market() -> None:
    (panel,) = h100().panels
    lines = [(line.provider, line.regions, line.prices) for line in panel.lines]
    assert lines == [
        ("aws", ("r1",), (("spot", 2_000_000), ("on_demand", 4_000_000))),
        ("aws", ("r2",), (("on_demand", 5_000_000),)),
        ("tiny", ("r1",), (("spot", 2_200_000),)),  # on-demand is marked
        ("gcp", ("r1",), (("on_demand", 3_000_000),)),
    ]
    assert panel.hidden == 0


def test_regions_respect_the_question() -> None:
    (panel,) = h100(markets=("on_demand",), max_micros_hour=35_000_000).panels
    assert [(line.provider, line.regions) for line in panel.lines] == [
        ("gcp", ("r1",)),
        ("aws", ("r1",)),
    ]
    (panel,) = h100(include_marked=True).panels
    assert "old" in {line.provider for line in panel.lines}


def test_regions_respect_a_shortened_selection() -> None:
    selection = select(ROWS, accelerators=frozenset({"H100"}))
    (panel,) = regions.data(selection[:1]).panels
    assert [line.provider for line in panel.lines] == ["aws"]


def test_regions_at_the_same_prices_share_a_line() -> None:
    rows = [row("lambda", "H100", on_demand=2.99, region=f"r{n}") for n in range(17)]
    rows.append(row("lambda", "H100", on_demand=3.29, region="far"))
    data = regions.data(select(rows))
    assert [line.regions for line in data.panels[0].lines] == [
        tuple(sorted(f"r{n}" for n in range(17))),
        ("far",),
    ]
    assert data.tables()[0].rows[1] == ("H100", "lambda", "far", "$3.29")


def test_regions_beyond_the_limit_are_counted_and_no_provider_is_lost() -> None:
    rows = [row("big", "H100", on_demand=1 + n / 100, region=f"r{n:02}") for n in range(60)]
    rows.append(row("dear", "H100", on_demand=50))
    data = regions.data(select(rows))
    (panel,) = data.panels
    assert len(panel.lines) == regions.MOST_LINES
    assert [line.provider for line in panel.lines] == ["big"] * 39 + ["dear"]
    assert panel.lines[38].regions == ("r38",)
    assert panel.hidden == 21
    assert "21 more lines not shown; each provider's cheapest is." in data.caption


def test_regions_do_not_promise_what_the_limit_took() -> None:
    rows = [row(f"p{n:02}", "H100", on_demand=1 + n) for n in range(50)]
    data = regions.data(select(rows))
    assert data.panels[0].hidden_providers == 10
    assert "10 more lines not shown. " in data.caption


def test_regions_of_several_accelerators_and_of_too_many() -> None:
    data = regions.data(select(ROWS))
    assert [p.accelerator for p in data.panels] == ["RTX8", "RTX9", "TPU", "A100", "H100"]
    rows = [row("p", f"chip-{n}", on_demand=1) for n in range(7)]
    with pytest.raises(InvalidValue, match="7 accelerators") as caught:
        regions.data(select(rows))
    assert "at most 6" in str(caught.value)


def test_regions_with_reserved_prices() -> None:
    data = regions.data(select([row("p", "H100", on_demand=4, spot=1, reserved=2)]))
    assert data.markets == ("on_demand", "spot", "reserved")
    assert data.tables()[0].rows == (("H100", "p", "r1", "$4.00", "$1.00", "$2.00"),)


# -- timeline ------------------------------------------------------------------------------------


def test_timeline_takes_medians_of_providers_not_of_offers() -> None:
    rows = [row("many", "H100", on_demand=10, region=f"r{n}") for n in range(9)]
    rows += [row("b", "H100", on_demand=2), row("c", "H100", 2, on_demand=8, spot=1)]
    data = timeline.data(ACCELERATORS, select(rows))
    point = next(p for p in data.points if p.name == "H100")
    assert (point.micros_pflop_hour, point.providers) == (4_000_000, 3)
    assert data.years == (timeline.Year(2022, 4_000_000, 1),)


def test_timeline_points_and_years() -> None:
    data = timeline.data(ACCELERATORS, select(ROWS))
    # A K80 has neither bf16 nor fp16.
    assert [(p.year, p.name, p.tflops, p.precision) for p in data.points] == [
        (2020, "A100", 312.0, "bf16"),
        (2020, "RTX8", 50.0, "fp16"),
        (2022, "H100", 1000.0, "bf16"),
        (2022, "TPU", 200.0, "bf16"),
        (2022, "RTX9", 100.0, "bf16"),
    ]
    costs = {p.name: p.micros_pflop_hour for p in data.points}
    assert costs == {
        "A100": round(2e6 / 0.312),
        "RTX8": 4_000_000,
        "H100": round((4.5e6 + 3e6) / 2),  # aws: the median of 4 and 5; gcp: 3
        "TPU": 5_000_000,
        "RTX9": 5_000_000,
    }
    assert [(y.year, y.micros_pflop_hour, y.accelerators) for y in data.years] == [
        (2020, round((2e6 / 0.312 + 4e6) / 2), 2),
        (2022, 5_000_000, 3),
    ]
    assert len(data.tables()) == 2


def test_timeline_without_prices_shows_speeds_alone() -> None:
    data = timeline.data(ACCELERATORS, select([row("p", "H100", spot=1)]))
    assert len(data.points) == 5
    assert data.years == ()
    assert all(p.micros_pflop_hour is None and p.providers == 0 for p in data.points)
    assert len(data.tables()) == 1


def test_timeline_of_nothing() -> None:
    with pytest.raises(NotFound, match="nothing to draw"):
        timeline.data({"K80": ACCELERATORS["K80"]}, select(ROWS))


# -- comparison ----------------------------------------------------------------------------------


def test_comparison_measures_against_the_best() -> None:
    data = comparison.data(
        [
            ComparedType(
                name="p4d", provider="aws", region="us", on_demand_micros_hour=20_000_000,
                accelerator_memory_gb=320, network_gbps=400,
            ),
            ComparedType(
                name="a2", provider="gcp", region="", on_demand_micros_hour=25_000_000,
                spot_micros_hour=5_000_000, accelerator_memory_gb=640, peak_pflops=2.496,
            ),
        ]
    )  # fmt: skip
    assert data.types == ("p4d · aws · us", "a2 · gcp")
    shares = {m.label: [bar.share for bar in m.bars] for m in data.measures}
    assert shares == {
        "on-demand $/hour": [1.0, 0.8],
        "spot $/hour": [None, 1.0],
        "accelerator memory": [0.5, 1.0],
        "dense peak": [None, 1.0],
        "network": [1.0, None],
    }
    assert data.tables()[0].rows == (
        ("p4d · aws · us", "$20.00", "", "320 GB", "", "400 Gbit/s"),
        ("a2 · gcp", "$25.00", "$5.00", "640 GB", "2.5 PFLOP/s", ""),
    )


def test_comparison_with_something_free() -> None:
    types = [
        ComparedType(name=name, provider="p", region="r", spot_micros_hour=price, network_gbps=0)
        for name, price in (("own", 0), ("other", 5))
    ]
    data = comparison.data(types)
    assert [[bar.share for bar in m.bars] for m in data.measures] == [[1.0, 0.0], [1.0, 1.0]]


def test_comparison_of_none_of_nothing_known_and_of_too_many() -> None:
    unknown = ComparedType(name="x", provider="p", region="r")
    with pytest.raises(NotFound, match="nothing to compare"):
        comparison.data([])
    with pytest.raises(NotFound, match="no number is known"):
        comparison.data([unknown])
    with pytest.raises(InvalidValue, match="9 types"):
        comparison.data([unknown] * 9)


# -- nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("market", ["on_demand", "reserved"])
def test_an_empty_selection_says_what_to_do(market: Market) -> None:
    rows = [row("old", "H100", on_demand=1, on_demand_as_of="2025-01-01")]
    for draw in (lambda s: matrix.data(s, ACCELERATORS), regions.data):
        with pytest.raises(NotFound, match="nothing to draw") as caught:
            draw(select(rows, markets=(market,)))
        hint = caught.value.hint
        assert hint is not None
        assert ("1 offer match" in hint and "1 stale" in hint) == (market == "on_demand")


def test_machines_without_accelerators_are_not_drawn() -> None:
    rows = [row("p", "", 0, on_demand=1)]
    with pytest.raises(NotFound):
        matrix.data(select(rows), ACCELERATORS)
    with pytest.raises(NotFound):
        regions.data(select(rows))
