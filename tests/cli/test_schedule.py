from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.cli.conftest import Cli
from tests.lifecycle.builders import AT, SPOT, a_machine, a_request, submitted, up
from tradewind.economics.hours import Hour, by_day, by_hour, choices, gathered, of_journals
from tradewind.model.event import Commit, Event, LaunchRefused, LegOver, LegRequested, MachinesFound


def utc(moment_s: int) -> int:
    return 0


def series(days: int, cheap: float, noise: float, seed: int = 1) -> dict[int, Hour]:
    """From 2 to 6 o'clock cheaper by that share; each day is dearer or cheaper as a whole."""
    rng = Random(seed)
    found = {}
    for day in range(days):
        level = rng.uniform(0.5, 2.0)
        for hour in range(24):
            price = level * (1 - cheap * (2 <= hour < 6)) * (1 + rng.uniform(-noise, noise))
            found[day * 24 + hour] = Hour(1.0, price)
    return found


def test_cheaper_hours_are_found_through_days_that_differ_more() -> None:
    best = choices(series(20, 0.3, 0.05), 4, utc)[0]
    assert (best.start, best.end) == (2, 6)
    assert best.sure
    assert best.saved == pytest.approx(1 - 0.7 / 0.95, abs=0.02)
    assert best.low is not None
    assert best.low < (best.saved or 0) < (best.high or 0)


def test_of_noise_one_window_is_the_best_and_not_more_than_chance() -> None:
    wrong = sum(choices(series(20, 0.0, 0.3, seed), 4, utc)[0].sure for seed in range(60))
    assert wrong <= 9  # of overlapping windows a tenth at the most, and three more


def test_too_few_days_say_nothing() -> None:
    best = choices(series(4, 0.3, 0.0), 4, utc)[0]
    assert not best.sure
    assert best.low is None


def test_the_window_is_of_the_clock_there() -> None:
    best = choices(series(20, 0.3, 0.01), 4, lambda moment_s: -5 * 3600)[0]
    assert (best.start, best.end) == (21, 1)


def test_hours_in_which_nothing_was_to_be_had_have_no_weight_in_a_price() -> None:
    hours = gathered([(0, 1.0, 2.0), (1800, 0.0, 9.0), (86_400, 1.0, 4.0)])
    assert hours[0] == Hour(0.5, 5.5)
    cell = by_hour(hours, utc)[0]
    assert cell.up == 0.75
    assert cell.price == pytest.approx((5.5 * 0.5 + 4.0) / 1.5)
    assert set(by_day(hours, utc)) == {3, 4}  # a Thursday, and the day after


def test_without_prices_it_is_how_often_machines_were_there() -> None:
    hours = {n: Hour(0.9 if 8 <= n % 24 < 16 else 0.2, None) for n in range(240)}
    best = choices(hours, 8, utc)[0]
    assert (best.start, best.saved) == (8, None)
    assert best.up == pytest.approx(0.9)


def test_what_runs_met_with() -> None:
    asked = [LegRequested(request=a_request(leg, SPOT), reason="r") for leg in (1, 2)]
    events: list[Event] = [
        submitted(),
        asked[0],
        MachinesFound(machines=(a_machine(),), reason="r"),
        up(),
        LegOver(leg=1, cause="interrupted", reason="r"),
        asked[1],
        LaunchRefused(leg=2, kind="no_capacity", reason="r"),
    ]
    commits = [Commit(2, n, "w", AT, (event,)) for n, event in enumerate(events, 1)]
    at = AT.timestamp()
    looks = of_journals([commits], lambda name: True)
    assert looks == [(at, 1.0, SPOT.price / 1e6), (at, 0.0, None), (at, 0.0, None)]
    assert of_journals([commits], lambda name: False) == []


def test_a_tariff_is_exact_and_the_command_line_says_the_same(cli: Cli) -> None:
    ran = cli("schedule", "--power", "0.2", "--tariff", "22:00-06:00=0.1", "--kw", "10", "--json")
    best = ran.json["best"]
    assert best["window"] == "22:00-06:00"
    assert best["usd_hour"] == pytest.approx(1.0)
    assert best["saved_share"] == pytest.approx(1 - 1 / ((8 + 2 * 16) / 24))
    assert best["more_than_chance"]
    there = ["--power", "0.2", "--tariff", "22:00-06:00 Europe/Berlin=0.1"]
    assert cli("schedule", *there, "--zone", "Europe/Berlin", "--json").json["best"]["window"] == (
        "22:00-06:00 Europe/Berlin"
    )
    flat = cli("schedule", "--power", "0.2")
    assert "nothing is saved by waiting" in flat.out
    assert "--window" not in flat.out


def test_a_measured_series_from_a_file(tmp_path: Path, cli: Cli) -> None:
    day = " ".join(["1.0000x8", "0.6000x8", "1.0000x8"])
    trace, prices = tmp_path / "t.csv", tmp_path / "p.csv"
    trace.write_text(
        "trace_id,kind,provider,zone,accelerator,accel_count,nodes,start_utc,gap_seconds,rle\n"
        f"a,availability,aws,z1,v100,1,1,2026-10-01T00:00:00Z,3600,{' '.join(['1x24'] * 10)}\n"
    )
    prices.write_text(f"trace_id,gap_seconds,on_demand,rle\na,3600,3.06,{' '.join([day] * 10)}\n")
    told = cli("schedule", "--trace", str(trace), "--prices", str(prices), "--within", "2d",
               "--json").json  # fmt: skip
    assert told["best"]["window"] == "08:00-16:00"
    assert told["best"]["saved_share"] == pytest.approx(1 - 0.6 / (2.6 / 3))
    assert [one["from"][:13] for one in told["next"]] == ["2026-11-15T12", "2026-11-16T08"]
    assert "z9" in cli("schedule", "--trace", str(trace), "--series", "z9").err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "one of --trace, --store and --power"),
        (("--power", "€0.2"), "is not in US dollars"),
        (("--power", "-1"), "a kWh costs 0 to 10 dollars"),
        (("--power", "0.2", "--kw", "0"), "machines need some power"),
        (("--power", "0.2", "--hours", "30h"), "a window of the day has 1 to 23 hours"),
        (("--power", "0.2", "--tariff", "22:00-06:00"), "has no price"),
        (("--place", "XYZ"), "no price of electricity is known in 'XYZ'"),
        (("--tariff", "22:00-06:00=1"), "add --power or --place"),
        (("--power", "0.2", "--zone", "Mars"), "no time zone is called"),
    ],
)
def test_what_is_wrong_is_told(cli: Cli, arguments: tuple[str, ...], complaint: str) -> None:
    ran = cli("schedule", *arguments)
    assert ran.code != 0
    assert complaint in ran.err
