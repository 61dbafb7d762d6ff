"""Energy and emissions: from rated power to grams, and as a limit and a weight of plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.catalog.small import NOW, row, small
from tests.cli.conftest import Cli, cli, home
from tradewind.base.errors import InvalidValue
from tradewind.economics import carbon
from tradewind.model import Limits
from tradewind.model.workload import Workload
from tradewind.planning.planner import Planner
from tradewind.workload import reader

__all__ = ["cli", "home"]

CLEAN, DIRTY = ("gcp", "europe-north1"), ("gcp", "us-east1")
WORK = ("--hours", "100", "--on", "8xH100-SXM", "--accelerator", "H100-SXM")


def work(**limits: object) -> Workload:
    from tests.workload.making import KNOWN

    made = reader.read(
        "{name: w, work: {hours: 100, on: 8xH100-SXM}}", "test", now=NOW, known=KNOWN
    )
    return replace(made, limits=Limits(accelerators=("H100-SXM",), max_nodes=1, **limits))  # type: ignore[arg-type]


def catalog() -> object:
    return small(
        row("gcp", "H100-SXM", 8, on_demand=20.0, region=DIRTY[1]),
        row("gcp", "H100-SXM", 8, on_demand=21.0, region=CLEAN[1]),
    )


def test_eight_h100_draw_what_their_data_sheet_says_at_most() -> None:
    low, likely, high = (8 * kw for kw in carbon.kilowatts(700))
    best, usual, most = carbon.pue()
    assert best <= usual <= most
    assert high / most == pytest.approx(10.2, rel=0.01)
    assert likely / usual == pytest.approx(8 * 0.7 * 0.85 + 2.0, rel=0.01)
    assert low < likely < high


def test_a_grid_that_nobody_knows_is_taken_as_dirty_and_says_so() -> None:
    known, unknown = carbon.grid(*DIRTY), carbon.grid("nobody", "nowhere")
    assert not known.words.startswith("unknown")
    assert unknown.doubt
    assert unknown.g_per_kwh > carbon.grid(*CLEAN).g_per_kwh


def test_emissions_are_energy_times_the_grid() -> None:
    found = carbon.emitted(*CLEAN, 700.0, 800.0)
    assert found.kg == pytest.approx(found.kwh * found.grid.g_per_kwh / 1000)
    assert found.kg_low < found.kg < found.kg_high


def test_a_limit_and_a_weight_choose_another_place() -> None:
    shop = catalog()

    def best(**limits: object) -> object:
        return Planner(work(**limits), shop, now=NOW).plans(explain=True)  # type: ignore[arg-type]

    free = best().best  # type: ignore[attr-defined]
    assert free.region == DIRTY[1]
    limited = best(carbon=f"{free.co2_kg / 2:.1f}kg")
    assert limited.best.region == CLEAN[1]  # type: ignore[attr-defined]
    assert best(carbon="$1/t").best.region == DIRTY[1]  # type: ignore[attr-defined]
    assert best(carbon="$5000/t").best.region == CLEAN[1]  # type: ignore[attr-defined]
    none = best(carbon="1g")
    assert none.best is None  # type: ignore[attr-defined]
    assert [r.limit for r in none.relaxations] == ["carbon"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "kg", "micros"),
    [
        ("50kg", 50, 0),
        ("2 t", 2000, 0),
        ("500g", 0.5, 0),
        ("$100/t", None, 1e5),
        ("$1/kg", None, 1e6),
    ],
)
def test_carbon_is_a_mass_or_a_price(text: str, kg: float | None, micros: float) -> None:
    limits = Limits(carbon=text)
    assert (limits.carbon_kg, limits.carbon_micros_kg) == (kg, micros)


@pytest.mark.parametrize("text", ["", "little", "-5kg", "0kg", "50", "€100/t", "$0/t", "50 lb"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="carbon"):
        Limits(carbon=text)


def test_the_command_shows_places_and_what_a_tonne_less_costs(cli: Cli) -> None:
    found = cli("carbon", *WORK, "--json").json
    assert found["places"][0]["cost_usd"] == min(p["cost_usd"] for p in found["places"])
    front = [p for p in found["places"] if p["front"]]
    assert [p["co2_kg"] for p in front] == sorted((p["co2_kg"] for p in front), reverse=True)
    assert front[0]["usd_per_tonne_less"] is None
    shown = cli("carbon", *WORK)
    assert "What decides it" in shown.out
    assert front[-1]["place"] in shown.out


def test_plan_takes_carbon_and_bad_ones_are_told(cli: Cli) -> None:
    free = cli("carbon", *WORK, "--json").json["places"][0]["co2_kg"]
    plan = cli("plan", *WORK, "--carbon", f"{free / 3:.1f}kg")
    assert plan.code == 0, plan.err
    assert "carbon: " in plan.out
    bad = cli("plan", *WORK, "--carbon", "little")
    assert (bad.code, bad.out) == (2, "")
    assert "--carbon" in bad.err
