"""`tradewind commit`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.docs.blocks import ROOT

HOURS = str(ROOT / "examples" / "team" / "hours.csv")
HEAD = "hour,provider,region,instance_type,machines\n"
ROW = "{},gcp,us-central1,g2-standard-4,{}\n"


def test_it_says_what_to_buy_and_what_less_use_costs(cli: Cli) -> None:
    shown = cli("commit", HOURS)
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Commit: ")
    assert "lose money" in shown.out
    found = cli("commit", HOURS, "--json").json
    assert found["usd_year"] < found["on_demand_usd_year"]
    assert all(one["term"] == "1y" for one in found["considered"])
    long = cli("commit", HOURS, "--term", "3y", "--json").json
    assert long["usd_year"] <= found["usd_year"]
    plans = [one for one in found["considered"] if one["plan"]]
    assert plans, "the family's flexible commitment is among the rates"


def test_offers_of_one_s_own_compete(cli: Cli) -> None:
    mine = cli("commit", HOURS, "--plan", "a3-*,g2-*=1y:30%", "--json").json
    assert [one["name"] for one in mine["buy"]] == ["plan a3-*,g2-*"]
    price = cli("commit", HOURS, "--reserve", "a3-*=1y:$1", "--json").json
    assert any(one["usd_hour"] / one["amount"] == 1 for one in price["buy"])


def test_being_careful_commits_to_less(cli: Cli) -> None:
    bold = cli("commit", HOURS, "--json").json
    careful = cli("commit", HOURS, "--less", "60%", "--chance", "60%", "--json").json
    assert sum(b["usd_hour"] for b in careful["buy"]) < sum(b["usd_hour"] for b in bold["buy"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD, "no rows"),
        ("hour,machines\n1,2\n", "no column"),
        (HEAD + ROW.format(0, -1), "line 2"),
        (HEAD + ROW.format(0.5, 1), "line 2"),
        (HEAD + ROW.format(0, 1) + ROW.format(0, 2), "twice"),
        (HEAD + ROW.format(0, "many"), "not a number"),
        (HEAD + ROW.format(0, 0), "nothing is used"),
        (HEAD + ROW.format(0, 1).replace("us-central1", "mars"), "no on-demand price"),
    ],
)
def test_a_bad_file_is_told(cli: Cli, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "hours.csv").write_text(text)
    ran = cli("commit", str(tmp_path / "hours.csv"))
    assert ran.code in (2, 3, 4)
    assert words in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one place"),
        ((HOURS, "--less", "40%"), "go together"),
        ((HOURS, "--less", "140%", "--chance", "20%"), "less cannot be"),
        ((HOURS, "--reserve", "a3-*=2y:50%"), "--reserve"),
        ((HOURS, "--plan", "a3-*=1y:$50"), "--plan"),
        ((HOURS, "--plan", "p9*=1y:50%"), "none of the types"),
        ((HOURS, "--reserve", "a3-*=3y:50%"), "longer than"),
        ((HOURS, "--reserve", "a3-*=1y:0%"), "cannot be"),
    ],
)
def test_bad_input_is_told(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    ran = cli("commit", *arguments)
    assert ran.code in (2, 3)
    assert words in ran.err


def test_a_teams_file_tells_the_hours_of_one_machine(cli: Cli) -> None:
    team = str(Path(__file__).parents[2] / "examples" / "team" / "team.yaml")
    told = cli("commit", team, "--at", "gcp/us-central1/a3-highgpu-8g", "--json").json
    assert told["hours"] == 8760
    assert 0 < told["usd_year"] < told["on_demand_usd_year"]
    assert "go together" in cli("commit", team).err
    assert "no such machine" in cli("commit", team, "--at", "gcp/us-central1/none").err
    assert "go together" in cli("commit", "hours.csv", "--at", "a/b/c").err
