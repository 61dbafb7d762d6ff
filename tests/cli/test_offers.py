from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, days_ago, fresh, install, on_a_terminal
from tradewind.catalog import files


@pytest.fixture
def stocked(home: Path) -> Path:
    install(
        home,
        fresh("aws", zone="use1-az1", instance_type="p5.48xlarge", on_demand=55.04, spot=19.97),
        fresh("gcp", region="europe-west4", zone="europe-west4-b", on_demand=88.49),
        fresh("lambda", "A100-80GB", 8, region="us-west-1", on_demand=22.32),
        fresh("azure", "A100-80GB", 8, region="eastus", on_demand=27.2, as_of=days_ago(400)),
        fresh("peer", "A100-80GB", 8, region="x", on_demand=0.08),
        fresh("aws", "", instance_type="m5.large", on_demand=0.096),
    )
    return home


def test_the_table_says_what_was_left_out(cli: Cli, stocked: Path) -> None:
    ran = cli("offers")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["aws", "lambda", "gcp", "aws"]
    assert "us-east-1 use1-az1" in lines[1]
    assert "europe-west4-b" in lines[3]
    assert "4 offers shown" in ran.out
    assert "Left out: 1 stale (over 180 days old), 1 absurdly cheap." in ran.out
    assert "Of 2 of 5 providers nothing else is known: azure, peer." in ran.out
    assert "\x1b" not in ran.out
    assert ran.err == ""


def test_stale_offers_can_be_shown(cli: Cli, stocked: Path) -> None:
    ran = cli("offers", "--stale", "-p", "azure")
    assert "400d" in ran.out
    assert "absurdly" in cli("offers", "--stale").out, "what is in doubt is still left out"


def test_json_is_exact_and_complete(cli: Cli, stocked: Path) -> None:
    document = cli("offers", "h100:8", "--json", "--market", "spot").json
    assert document["matched"] == 1
    assert document["left_out"] == {}
    offer = document["offers"][0]
    expected = {
        "provider": "aws",
        "region": "us-east-1",
        "zone": "use1-az1",
        "instance_type": "p5.48xlarge",
        "accelerator": "H100-SXM",
        "accelerator_count": 8,
        "accelerator_memory_gb": 80,
        "on_demand_usd_per_hour": 55.04,
        "spot_usd_per_hour": 19.97,
        "market": "spot",
        "price_usd_per_hour": 19.97,
        "usd_per_accelerator_hour": 2.49625,
        "as_of": days_ago(3),
        "age_days": 3,
        "source": "test",
        "marks": [],
        "own": False,
        "in_stock": None,
    }
    assert {key: offer[key] for key in expected} == expected
    assert offer["usd_per_pflop_hour"] == pytest.approx(19.97 / (8 * 0.9894), rel=1e-4)
    assert offer["usd_per_gb_hour"] == pytest.approx(19.97 / 640, abs=1e-6)


def test_all_shows_what_is_in_doubt_and_why(cli: Cli, stocked: Path) -> None:
    offers = cli("offers", "--all", "--json").json["offers"]
    assert len(offers) == 6
    peer = next(o for o in offers if o["provider"] == "peer")
    assert peer["marks"][0].startswith("on_demand: low: ")


def test_csv_is_clean(cli: Cli, stocked: Path) -> None:
    ran = cli("offers", "--csv", "--all")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert len(rows) == 6
    assert rows[-1]["accelerator"] == ""
    assert cli("offers", "--csv").err.startswith("Left out: ")


def test_every_row_of_the_packaged_catalog_comes_out_as_it_went_in(cli: Cli) -> None:
    offers = cli("offers", "--all", "--json").json["offers"]
    packaged = files.load(account=False).table
    assert len(offers) == len(packaged)
    by_place = {
        (o["provider"], o["region"], o["zone"] or "", o["instance_type"], o["accelerator"] or ""): o
        for o in offers
    }
    for number in range(len(packaged)):
        offer = packaged.offer(number)
        shown = by_place[
            offer.provider, offer.region, offer.zone, offer.instance_type, offer.accelerator
        ]
        for market in ("on_demand", "spot"):
            price = offer.price(market)
            said = shown[f"{market}_usd_per_hour"]
            assert said == (None if price is None else price.micros_hour / 1e6)
        assert shown["accelerator_count"] == offer.accelerator_count
        assert shown["vcpus"] == offer.vcpus


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_the_table_fits(cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = cli("offers", "--all", "--limit", "200")
    table = ran.out.split("\n\n")[0].splitlines()
    assert len(table) == 201
    assert max(map(len, table)) <= width
    assert table[0].startswith("PROVIDER")


def test_limits(cli: Cli, stocked: Path) -> None:
    ran = cli("offers", "--limit", "1")
    assert "1 offer shown, dollars per hour; --limit 0 shows all 4." in ran.out
    assert len(cli("offers", "--json", "--limit", "2").json["offers"]) == 2
    assert len(cli("offers", "--json").json["offers"]) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["h1000"], 3, "no accelerator is called 'h1000'"),
        (["6000"], 3, "ambiguous"),
        (["h100", "-p", "awz"], 3, "did you mean aws"),
        (["h100", "-r", "mars-*"], 3, "without --region there are 2"),
        (["a100", "-p", "azure"], 3, "1 offer of azure, with prices that are 400 days old"),
        (["a100", "-p", "azure"], 3, "--stale shows them"),
        (["--stale", "--fresh-within", "30d"], 2, "exclude each other"),
        (["h100", "--max-price", "1"], 3, "without --max-price there are 2"),
        (["h100", "--in-stock"], 3, "leave out --in-stock"),
        (["h100:8", "-n", "4"], 2, "the count says 4"),
        (["h100", "-n", "some"], 2, "not a number of accelerators"),
        (["h100", "-m", "80"], 2, "has no unit"),
        (["h100", "--max-price", "cheap"], 2, "not an amount of money"),
        (["h100", "--fresh-within", "soon"], 2, "not a length of time"),
        (["h100", "--market", "futures"], 2, "no market is called 'futures'"),
        (["--json", "--csv"], 2, "exclude each other"),
        (["--sort", "beauty"], 2, "'beauty' is not one of"),
        (["--limit", "-1"], 2, "-1 is not in the range"),
        (["--bogus"], 2, "No such option"),
        (["h100", "--plot", "x.gif"], 2, "png"),
    ],
)
def test_bad_input(cli: Cli, stocked: Path, arguments: list[str], code: int, words: str) -> None:
    ran = cli("offers", *arguments)
    assert words in ran.err
    assert ran.code == code
    assert ran.out == ""


def test_json_stays_json_when_nothing_matches(cli: Cli, stocked: Path) -> None:
    ran = cli("offers", "h100", "-r", "mars", "--json")
    assert ran.code == 3
    assert ran.json["offers"] == []
    assert "no offer matches" in ran.err


def test_a_corrupt_catalog_and_a_bad_account_file(cli: Cli, stocked: Path) -> None:
    (stocked / "account.yaml").write_text("offers:\n  - {name: x, on_demand: ten}\n")
    ran = cli("offers")
    assert ran.code == 4
    assert "account.yaml line 2: offers[1].on_demand: 'ten' is not an amount" in ran.err
    (stocked / "account.yaml").unlink()
    (stocked / "catalog.json.gz").write_bytes(b"junk")
    ran = cli("offers")
    assert ran.code == 4
    assert "is damaged" in ran.err
    assert "tradewind catalog reset" in ran.err
    assert cli("catalog", "reset").code == 0
    assert cli("offers", "--all").code == 0


def test_colour_only_on_a_terminal(stocked: Path) -> None:
    shown = on_a_terminal(stocked, "offers")
    assert "\x1b[1m" in shown
    assert "p5.48xlarge" in shown
    plain = on_a_terminal(stocked, "offers", NO_COLOR="1")
    assert "\x1b[3" not in plain  # no colours; bold is not one


def test_stock_that_was_observed_is_shown(cli: Cli, stocked: Path) -> None:
    assert cli("catalog", "observe", "aws", "us-east-1", "p5.48xlarge", "--zone", "use1-az1",
               "--market", "spot", "--available").code == 0  # fmt: skip
    offers = cli("offers", "--in-stock", "--json").json["offers"]
    assert [o["instance_type"] for o in offers] == ["p5.48xlarge"]
    assert offers[0]["in_stock"] is True
    cli("catalog", "observe", "aws", "us-east-1", "p5.48xlarge", "--zone", "use1-az1",
        "--market", "spot", "--no-capacity", "--for", "2h")  # fmt: skip
    assert cli("offers", "--in-stock").code == 3
