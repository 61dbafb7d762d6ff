"""Buy or rent: the model's own properties."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.economics.making import JOBS, NOTHING, asked, fixed
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.catalog import load
from tradewind.economics import facts, inputs, own, own_figures, owning, use, waiting
from tradewind.economics.owning import Terms
from tradewind.economics.use import Job, Use

# -- use -----------------------------------------------------------------------------------------


def test_drawn_hours_hold_the_work_that_was_told() -> None:
    drawn = use.of_jobs(JOBS, 10, 1)
    assert drawn.hours_month == pytest.approx(sum(job.hours_month for job in JOBS), rel=1e-6)
    assert sum(drawn.shares) == pytest.approx(1)
    assert drawn.hours == 87_600
    assert drawn.peak > 3 * drawn.mean
    assert use.of_jobs(JOBS, 10, 1) == drawn
    assert use.of_jobs(JOBS, 10, 2) != drawn


def test_office_jobs_start_in_office_hours() -> None:
    drawn = use.of_jobs([Job("x", 1, 1, 200, "office")], 2, 3)
    week = [start % 168 for start, _ in drawn.starts]
    assert all(hour < 120 and 8 <= hour % 24 < 18 for hour in week)


def test_patterns_hold_the_hours() -> None:
    for pattern in ("steady", "office"):
        assert use.of_pattern(7300, pattern).hours_month == pytest.approx(7300)
    assert use.of_pattern(7300, "steady").peak == pytest.approx(10)
    assert use.of_pattern(7300, "office").peak == pytest.approx(10 * 168 / 50)


@pytest.mark.parametrize(
    "change", [{"hours": 0.0}, {"accelerators": -1.0}, {"per_month": math.inf}, {"when": "noon"}]
)
def test_impossible_jobs_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        replace(JOBS[0], **change)  # type: ignore[arg-type]


# -- waiting -------------------------------------------------------------------------------------


def erlang_c(servers: int, busy: float) -> float:
    """Chance to wait in M/M/k."""
    terms = [busy**k / math.factorial(k) for k in range(servers)]
    last = busy**servers / math.factorial(servers) * servers / (servers - busy)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("servers", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rho", [0.5, 0.7, 0.9])
def test_waiting_is_near_erlang_s(servers: int, rho: float) -> None:
    """Jobs of one length: half the waiting of exponential ones, by Allen and Cunneen."""
    job = Job("x", 1, 10.0, rho * servers / 10.0 * use.MONTH_H)
    exact = erlang_c(servers, rho * servers) * 10.0 / (servers * (1 - rho)) / 2
    assert waiting.expected([job], servers) == pytest.approx(exact, rel=0.35, abs=0.25)


@pytest.mark.parametrize("machines", [2, 3])
def test_waiting_is_near_the_replay_of_drawn_jobs(machines: int) -> None:
    jobs = [Job("long", 8, 60, 6), Job("short", 8, 6, 40), Job("small", 4, 2, 200)]
    drawn = use.of_jobs(jobs, 10, 1)
    replayed = waiting.replayed(drawn, 8 * machines)
    assert replayed is not None
    # Small jobs share a machine, which the formula does not know: it is on the safe side.
    assert 0.7 < waiting.expected(jobs, 8 * machines) / replayed < 2


def test_more_than_can_be_done_waits_for_ever() -> None:
    assert waiting.expected(JOBS, 8) == math.inf
    assert waiting.expected([Job("large", 16, 1, 1)], 8) == math.inf
    assert waiting.expected((), 8) == 0


def test_enough_machines_keep_the_waiting() -> None:
    for most_h in (0.1, 1, 10):
        number = waiting.enough(JOBS, 8, most_h, 0.97)
        assert waiting.expected(JOBS, 8 * number, 0.97) <= most_h
        assert waiting.expected(JOBS, 8 * (number - 1), 0.97) > most_h


# -- the model -----------------------------------------------------------------------------------


def test_a_year_by_hand() -> None:
    """Two servers, half used, one year, nothing discounted."""
    values = NOTHING | {
        "server_usd": 100_000.0, "watts": 10_000.0, "fabric_share": 0.1, "spares_share": 0.03,
        "support_share": 0.05, "colo_usd_kw_month": 150.0, "usd_per_kwh": 0.1, "pue": 1.5,
        "idle_draw": 0.4, "staff_factor": 1.0, "staff_usd_year": 200_000.0, "residual_factor": 1.0,
    }  # fmt: skip
    found = owning.cost(values, Use((8.0, 20.0), (0.75, 0.25)), 2, Terms(1, 8))
    covered = 8760 * (0.75 * 8 + 0.25 * 16)
    load = covered / 8760 / 16
    assert float(found.parts["machines"]) == pytest.approx(2 * 113_000)
    assert float(found.parts["residual"]) == pytest.approx(-200_000 * 0.65)
    assert float(found.parts["support"]) == pytest.approx(10_000)
    assert float(found.parts["space"]) == pytest.approx(12 * 20 * 150)
    assert float(found.parts["energy"]) == pytest.approx(8760 * 20 * (0.4 + 0.6 * load) * 1.5 * 0.1)
    assert float(found.parts["people"]) == pytest.approx((2 / 4) ** 0.661 * 200_000, rel=1e-3)
    assert float(found.parts["rented"]) == pytest.approx(8760 * 0.25 * 4 * 2.69)
    assert float(found.owned_hours) == pytest.approx(covered)


def test_machines_are_bought_again_when_their_life_is_over() -> None:
    level = Use((8.0,), (1.0,))
    for life, times in ((10.0, 1), (5.0, 2), (2.5, 4)):
        found = owning.cost(NOTHING | {"life_years": life}, level, 1, Terms(10, 8))
        assert float(found.parts["machines"]) == pytest.approx(times * 285_000)


def test_a_lease_pays_the_price_with_interest() -> None:
    values = NOTHING | {"life_years": 3.0, "lease_rate": 0.10}
    found = owning.cost(values, Use((8.0,), (1.0,)), 1, Terms(3, 8, lease=True))
    assert float(found.parts["machines"]) == pytest.approx(285_000 * 36 * 0.0322672, rel=1e-4)
    assert float(found.parts["residual"]) == 0


def test_the_residuals_and_people_are_those_of_the_facts() -> None:
    table = facts.table("own")
    for age, share in owning.RESIDUALS[1:-1]:
        fact = table.one(category="residual", item=f"accelerator server, {age:g} years old")
        assert fact.number("typical") == share
    assert owning.people(4) == pytest.approx(1.0)
    assert owning.people(16) == pytest.approx(2.5)


@given(
    levels=st.lists(st.floats(0.1, 200), min_size=1, max_size=6),
    rent=st.floats(0.5, 12),
    years=st.integers(1, 10),
    trend=st.floats(-0.3, 0.2),
)
@settings(max_examples=30, deadline=None)
def test_the_hybrid_is_never_dearer_than_its_neighbours(
    levels: list[float], rent: float, years: int, trend: float
) -> None:
    level = use.of_hours(levels)
    found = own.answer(
        asked(level, years, inputs=fixed(rent_usd_hour=rent, rent_trend=trend, discount=0.05))
    )
    hybrid = next(o for o in found.options if o.name == "hybrid")
    assert all(hybrid.total <= total + 1e-6 for n, total in found.curve if n)
    assert found.best.total == min(o.total for o in found.options)
    zero = next(total for n, total in found.curve if n == 0)
    assert zero == pytest.approx(next(o.total for o in found.options if o.name == "rent"))


def test_at_the_break_even_share_both_cost_the_same() -> None:
    values = NOTHING | {"colo_usd_kw_month": 180.0, "usd_per_kwh": 0.1, "availability": 0.97}
    share = owning.break_even_share(values, 2, Terms(3, 8))
    assert share is not None
    level = Use((share * 16,), (1.0,))
    rent = owning.cost(values, level, 0, Terms(3, 8)).total
    assert float(owning.cost(values, level, 2, Terms(3, 8)).total) == pytest.approx(float(rent))
    assert owning.break_even_share(values | {"rent_usd_hour": 0.1}, 2, Terms(3, 8)) is None


def test_the_draws_are_the_same_for_a_seed_and_an_input_without_range_moves_nothing() -> None:
    ranged = fixed() | {"rent_usd_hour": inputs.Input("rent_usd_hour", "", "", 1, 2, 6, "test")}
    first, again = (own.answer(asked(inputs=ranged)) for _ in range(2))
    assert (first.chance, first.spread) == (again.chance, again.spread)
    assert 0 < first.chance < 1
    other = own.answer(asked(inputs=ranged, seed=2))
    assert other.spread != first.spread
    assert other.chance == pytest.approx(first.chance, abs=0.05)
    assert [s.name for s in first.swings] == ["rent_usd_hour"]
    assert first.deciding == ("rent_usd_hour",)
    still = own.answer(asked())
    assert still.swings == ()
    assert still.spread[0] == pytest.approx(still.spread[2])


def test_an_input_decides_where_its_range_turns_the_answer() -> None:
    found = own.answer(
        asked(
            inputs=fixed(colo_usd_kw_month=180.0)
            | {
                "rent_usd_hour": inputs.Input("rent_usd_hour", "", "", 1, 2, 6, "test"),
                "pue": inputs.Input("pue", "", "", 1.0, 1.1, 1.2, "test"),
            }
        )
    )
    swing = next(s for s in found.swings if s.name == "rent_usd_hour")
    assert swing.decides
    assert (swing.at_low > 0) != (swing.at_high > 0)


def test_reserved_and_spot_compete_where_they_are_wanted() -> None:
    priced = fixed(rent_usd_hour=3.0, spot_usd_hour=1.0, reserved_1y_usd_hour=1.8)
    wanted = asked(inputs=priced)
    names = [o.name for o in own.answer(wanted).options]
    assert set(names) == {"spot", "reserve-1y", "rent", "hybrid", "own"}
    only = own.answer(replace(wanted, markets=("on_demand",)))
    assert {o.name for o in only.options} == {"rent", "hybrid", "own"}
    reserved = next(o for o in own.answer(wanted).options if o.name == "reserve-1y")
    assert reserved.total == pytest.approx(
        min(n * 8 * 8760 * 3 * 1.8 + max(20_000 * 36 - n * 8 * 8760 * 3, 0) * 3.0
            for n in range(6)), rel=1e-3,
    )  # fmt: skip


# -- inputs --------------------------------------------------------------------------------------


def test_every_input_of_a_known_server_has_a_source() -> None:
    for accelerator, (each, _, _) in own_figures.SERVERS.items():
        settings_ = ["rent_usd_hour=5"]
        found = own_figures.inputs_for(load(), accelerator, each, settings=settings_)
        for one in found.values():
            assert one.source, one
            assert one.low <= one.typical <= one.high
            assert one.as_of or one.doubt or one.source == "yours", one


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("server_usd=-5", "cannot be -5"),
        ("server_usd=€200000", "not in US dollars"),
        ("server_usd=200000 EUR", "not in US dollars"),
        ("server_usd=cheap", "not a number"),
        ("server_usd=1:2", "neither one figure nor three"),
        ("server_usd=3:2:1", "do not ascend"),
        ("sever_usd=1", "there is no input"),
        ("availability=2", "cannot be 2"),
        ("pue=nan", "cannot be nan"),
    ],
)
def test_impossible_settings_name_the_field(setting: str, words: str) -> None:
    with pytest.raises(InvalidValue, match="(?i)" + words.replace("(", r"\(")):
        inputs.overridden(fixed(), [setting])


def test_prices_that_nobody_knows_are_asked_for() -> None:
    catalog = load()
    with pytest.raises(NotFound, match="electricity") as place:
        own_figures.inputs_for(catalog, "H100-SXM", 8, place="XYZ")
    assert "DEU" in (place.value.hint or "")
    assert own_figures.inputs_for(catalog, "H100-SXM", 8, place="XYZ", settings=["usd_per_kwh=0.2"])
    with pytest.raises(NotFound, match="on-demand price"):
        own_figures.inputs_for(catalog, "H100-SXM", 8, region="nowhere-*")
    with pytest.raises(NotFound, match="server"):
        own_figures.inputs_for(catalog, "T4", 8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"terms": Terms(0, 8)}, "0 years"),
        ({"terms": Terms(11, 8)}, "11 years"),
        ({"terms": Terms(3, 8, growth=9.0)}, "growth"),
        ({"machines": 0}, "0 machines"),
        ({"machines": 1, "use": use.of_jobs([Job("large", 16, 1, 1)], 1, 1)}, "wants 16"),
        ({"use": use.of_pattern(9e8, "steady")}, "more than 5,000"),
    ],
)
def test_impossible_questions_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        own.answer(asked(**change))  # type: ignore[arg-type]
