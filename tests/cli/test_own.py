"""`tradewind own`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.docs.blocks import ROOT

TEAM = str(ROOT / "examples" / "team" / "team.yaml")
STEADY = ("own", "--on", "8xH100-SXM", "--gpu-hours", "20000", "--pattern", "steady")


def test_a_team_is_told_what_to_do_and_what_decides_it(cli: Cli) -> None:
    ran = cli("own", TEAM, "--market", "on_demand")
    assert ran.code == 0
    assert "over 3 years" in ran.out.splitlines()[0]
    assert "decides it: rent_usd_hour" in ran.out
    assert "Break-even" in ran.out
    found = cli("own", TEAM, "--market", "on_demand", "--json").json
    assert {o["name"] for o in found["options"]} == {"rent", "hybrid", "own"}
    assert found["use"]["hours_month"] == pytest.approx(
        16 * 70 * 8 + 8 * 6 * 60 + 0.5 * 400, rel=0.01
    )
    assert found["options"][0]["total_usd"] == min(o["total_usd"] for o in found["options"])
    assert all(one["source"] for one in found["inputs"])
    waits = next(o for o in found["options"] if o["name"] == "own")
    assert waits["wait_hours"] <= 4


def test_inputs_are_shown_and_changed(cli: Cli) -> None:
    shown = cli(*STEADY, "--inputs", "--set", "server_usd=1:2:3")
    assert shown.code == 0
    assert "server_usd" in shown.out
    assert "yours" in shown.out
    cheap = cli(*STEADY, "--set", "server_usd=1000", "--json").json
    dear = cli(*STEADY, "--set", "server_usd=2000000", "--json").json
    assert cheap["break_even_share"] < 0.6
    assert dear["break_even_share"] is None


def test_a_workload_is_planned_where_the_file_says_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(
        "name: w\ntrain: {model: llama-3.1-8b, tokens: 100M, sequence: 4096, global_batch: 64}\n"
    )
    (tmp_path / "team.yaml").write_text(
        "on: 8xH100-SXM\nworkloads:\n  - {name: tune, plan: work.yaml, every: 1d}\n"
    )
    found = cli("own", str(tmp_path / "team.yaml"), "--json")
    assert found.code == 0, found.err
    assert found.json["use"]["hours_month"] > 10


def test_files_are_written(cli: Cli, tmp_path: Path) -> None:
    for name in ("--plot", "--html"):
        ending = "svg" if name == "--plot" else "html"
        ran = cli(*STEADY, name, str(tmp_path / f"own.{ending}"))
        assert ran.code == 0, ran.err
    assert "hybrid" not in (tmp_path / "own.svg").read_text()[:50]
    text = (tmp_path / "own.html").read_text()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["values"]["server_usd"] == 285_000


def test_the_ledger_s_use(cli: Cli) -> None:
    store = str(ROOT / "examples" / "store")
    ran = cli("own", "--on", "8xA100-80GB", "--store", store, "--json")
    assert ran.code == 0, ran.err
    assert "ledger" in ran.json["use"]["origin"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("own",), 2, "the use stands in one place"),
        (("own", "--gpu-hours", "10"), 2, "on which machine"),
        (("own", "--on", "8xH100-SXM", "--gpu-hours", "-5"), 2, "--gpu-hours"),
        (("own", "--on", "8xH100-SXM", "--gpu-hours", "0"), 2, "nothing is used"),
        (("own", "--on", "8xH199", "--gpu-hours", "10"), 3, "H199"),
        ((*STEADY, "--years", "0"), 2, "0 years"),
        ((*STEADY, "--growth", "much"), 2, "--growth"),
        ((*STEADY, "--place", "XYZ"), 3, "electricity"),
        ((*STEADY, "--region", "mars-*"), 3, "no on-demand price"),
        ((*STEADY, "--market", "black"), 2, "black"),
        ((*STEADY, "--set", "server_usd=£1"), 2, "US dollars"),
        ((*STEADY, "--job", "8x12h"), 2, "--job goes with"),
        ((*STEADY, "--plot", "x.gif"), 2, "FILE.png"),
        (("own", "no.yaml"), 5, "no.yaml"),
        (("own", "--on", "8xH100-SXM", "--gpu-hours", "9000", "--job", "16x5h", "--machines", "1"),
         2, "wants 16"),
    ],
)  # fmt: skip
def test_bad_input_is_told(cli: Cli, arguments: tuple[str, ...], code: int, words: str) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "hint" in ran.err or "Usage" in ran.err or code == 5


def test_all_that_is_wrong_with_a_team_s_file_is_told_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(
        "on: 8xH100-SXM\nworkloads:\n"
        "  - {name: a, accelerators: -8, hours: 3, per_month: 1}\n"
        "  - {name: b, accelerators: 8, hours: 3}\n"
        "  - {name: c, accelerators: 8, hours: 3, per_month: 1, wen: any}\n"
        "  - {name: d, accelerators: 8, hours: 3, per_month: 1, when: noon}\n"
    )
    ran = cli("own", str(tmp_path / "team.yaml"))
    assert ran.code == 4
    for words in ("line 3", "accelerators", "how often", "did you mean 'when'", "noon"):
        assert words in ran.err
