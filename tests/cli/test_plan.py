"""`tradewind plan`: the answer in words, its files, and what it says to bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, on_a_terminal
from tests.terminals import without_spinners
from tradewind.planning import document

EXAMPLES = Path(__file__).parents[2] / "examples"
PRETRAIN = str(EXAMPLES / "pretrain-1.3b" / "work.yaml")
LORA = str(EXAMPLES / "lora-8b-overnight" / "work.yaml")
WORK = ("--model", "llama-3.1-8b", "--tokens", "1B", "--seq", "8192", "--global-batch", "512")
MEASURED = ("--hours", "12", "--on", "1xA100-80GB")


def test_the_answer_in_words_and_tables(cli: Cli) -> None:
    ran = cli("plan", LORA)
    assert ran.code == 0
    old, first, *rest = ran.out.splitlines()
    assert old.startswith("Prices are old: ")
    assert old.endswith("`tradewind catalog refresh` renews them.")
    assert first.startswith("Rent ")
    assert "$" in first
    assert "% sure, " in first
    assert "% within the budget; " in first
    assert first.endswith("% likely to be available.")
    text = "\n".join(rest)
    for words in ("limits: done in 10h", "how: ", "money: ", "capacity: ", "WHERE", "SURE", "HAD"):
        assert words in text
    assert "Why others lost:" in text
    assert "other types lost: " in text
    assert "prices of 20" in text


def test_what_costs_less_than_a_cent_is_paid_for_all_the_same(cli: Cli) -> None:
    found = cli("plan", str(EXAMPLES / "tiny-gpt" / "work.yaml"))
    money = r"^money: spot \$0\.00\d\d, requests \$0\.00\d\d; a machine-hour"
    assert re.search(money, found.out, re.M), found.out
    assert re.search(r"  \$0\.00[1-9]\d 0\.00\d\d–0\.0", found.out), found.out  # in the table


def test_it_fits_a_hundred_columns(home: Path) -> None:
    shown = on_a_terminal(home, "plan", PRETRAIN, NO_COLOR="1", TRADEWIND_NOW="2026-11-15T12:00")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", without_spinners(shown))
    lines = [line.strip("\r").rstrip() for line in plain.split("\n")]
    assert max(map(len, lines)) <= 100
    head = next(line for line in lines if line.startswith("WHERE"))
    for title in (
        "WHERE",
        "TYPE",
        "ACCELERATOR",
        "MARKET",
        "TIME",
        "COST",
        "EXPECTED",
        "SURE",
        "HAD",
    ):
        assert title in head


def test_options_stand_over_the_file(cli: Cli) -> None:
    found = cli("plan", PRETRAIN, "--deadline", "5d", "--provider", "aws,gcp", "--json").json
    limits = found["workload"]["limits"]
    assert limits["within_s"] == 5 * 86_400
    assert limits["providers"] == ["aws", "gcp"]
    assert limits["max_nodes"] == 4  # of the file
    assert found["best"]["provider"] in ("aws", "gcp")
    # Another way to say how much takes the place of the file's.
    found = cli("plan", PRETRAIN, "--steps", "100", "--json").json
    assert found["workload"]["train"]["steps"] == 100
    assert "tokens" not in found["workload"]["train"]


def test_by_options_alone(cli: Cli) -> None:
    found = cli("plan", *WORK, "--region", "eu-*", "--region", "europe-*", "--json").json
    assert found["workload"]["train"]["global_batch"] == 512
    assert all(plan["region"].startswith("eu") for plan in found["plans"])
    found = cli("plan", *WORK[:-2], "--global-batch", "4M-tokens", "--json").json
    assert found["workload"]["train"]["global_batch_tokens"] == 4_000_000
    ran = cli("plan", *MEASURED, "--deadline", "24h")
    assert ran.code == 0
    assert "12h on 1xA100-80GB" in ran.out


def test_the_json_document(cli: Cli) -> None:
    found = cli("plan", LORA, "--json").json
    assert list(found) == [
        "format", "made_at", "workload", "deadline_hours", "store", "best", "plans", "front",
        "later", "surer", "losers", "relaxations", "weighed", "prices", "notes",
    ]  # fmt: skip
    best = found["best"]
    assert best == found["plans"][0]
    assert 0 < best["cost_usd_low"] <= best["cost_usd"] <= best["cost_usd_high"]
    assert best["cost_usd"] == pytest.approx(sum(best["costs_usd"].values()), abs=1e-5)
    assert {"kind", "why", "cost_usd"} <= set(found["losers"][0])


def test_a_saved_plan_reads_back(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    ran = cli("plan", LORA, "--out", str(out), "--json")
    saved = document.read(out.read_text(), str(out))
    assert document.plan_json(saved.plan) == ran.json["best"]
    assert saved.workload.name == "lora-8b-overnight"
    assert saved.made_at.isoformat() == "2026-11-15T12:00:00+00:00"
    assert cli("plan", LORA, "--out", str(tmp_path)).code == 5


def test_a_shape_in_a_file_travels_with_the_plan(cli: Cli, tmp_path: Path) -> None:
    shape = {"layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 3072, "vocab": 50257}
    (tmp_path / "shape.yaml").write_text(json.dumps(shape))
    out = tmp_path / "plan.json"
    amount = ("--tokens", "1B", "--seq", "1024", "--global-batch", "512")
    assert (
        cli("plan", "--model", str(tmp_path / "shape.yaml"), *amount, "--out", str(out)).code == 0
    )
    (tmp_path / "shape.yaml").unlink()
    train = document.read(out.read_text(), "plan").workload.train
    assert train is not None
    assert not isinstance(train.model, str)


def test_why_the_winner_won_and_a_loser_lost(cli: Cli) -> None:
    best = cli("plan", LORA, "--json").json["best"]
    ran = cli("plan", LORA, "--why", f"{best['provider']}/{best['instance_type']}".upper())
    assert ran.code == 0
    assert "won." in ran.out
    assert "It is the cheapest that keeps every limit" in ran.out
    ran = cli("plan", LORA, "--why", "p4d.24xlarge")
    assert "p4d.24xlarge of aws (8× A100-40GB) lost: more accelerators than you allow." in ran.out
    found = cli("plan", LORA, "--why", "g6e.xlarge", "--json").json
    assert found["won"] is False
    assert {plan["instance_type"] for plan in found["ways"]} == {"g6e.xlarge"}
    assert found["lost"][0]["why"]


def test_every_loser(cli: Cli) -> None:
    ran = cli("plan", LORA, "--all-losers")
    assert ran.code == 0
    assert len(ran.out.splitlines()) > 500
    assert "p4d.24xlarge" in ran.out


def test_nothing_keeps_every_limit(cli: Cli) -> None:
    ran = cli("plan", PRETRAIN, "--deadline", "1h")
    assert ran.code == 3
    assert "Nothing keeps every limit" in ran.out
    assert "error: no plan keeps every limit" in ran.err
    assert "hint: " in ran.err
    ran = cli("plan", PRETRAIN, "--budget", "$20", "--json")
    assert ran.code == 3
    assert ran.json["best"] is None
    budget = [r for r in ran.json["relaxations"] if r["limit"] == "budget"]
    assert budget
    assert budget[0]["plan"]["cost_usd"] > 20
    out = EXAMPLES / "never-written.json"
    assert cli("plan", PRETRAIN, "--budget", "$20", "--out", str(out)).code == 3
    assert not out.exists()


def test_both_limits_must_give_way(cli: Cli) -> None:
    ran = cli("plan", PRETRAIN, "--deadline", "1h", "--budget", "$20")
    assert ran.code == 3
    assert "together: $" in ran.out


def test_your_own_machines(cli: Cli, home: Path) -> None:
    home.mkdir()
    account = (EXAMPLES / "own-4090s" / "account.yaml").read_text()
    (home / "account.yaml").write_text(account)
    work = str(EXAMPLES / "own-4090s" / "work.yaml")
    text = cli("plan", work).out
    assert "renting " in text or "of your own" in text
    text = cli("plan", work, "--provider", "own").out
    assert text.startswith("Use desk (4× RTX4090) of your own")
    assert " own " in text.splitlines()[-1] or "own home" in text


def test_pictures_and_pages(cli: Cli, tmp_path: Path) -> None:
    page, picture = tmp_path / "plan.html", tmp_path / "plan.svg"
    ran = cli("plan", LORA, "--html", str(page), "--plot", str(picture))
    assert ran.code == 0
    assert "lora-8b-overnight" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 1_000_000
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert f"drawn: {picture}" in ran.err
    assert cli("plan", LORA, "--plot", "plan.gif").code == 2


def test_instead_of_a_type(cli: Cli) -> None:
    asked = ("plan", PRETRAIN, "--instead-of", "P4D.24xlarge", "--nodes", "2")
    ran = cli(*asked)
    assert ran.code == 0
    assert "Instead of " in ran.out
    assert "less, about $" in ran.out
    found = cli(*asked, "--json").json
    named = found["named"]
    assert (named["instance_type"], named["nodes"]) == ("p4d.24xlarge", 2)
    for better in found["instead"]:
        assert better["cost_usd"] < named["cost_usd"]
        assert better["hours"] <= 1.01 * named["hours"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "what is to be done"),
        (("--deadline", "48h"), "--model with --tokens"),
        (("--model", "llama-3.1-8b"), "--global-batch"),
        ((*WORK, "--deadline", "48"), "--deadline: '48' has no unit of time (write 48h"),
        ((*WORK, "--deadline", "0h"), "--deadline"),
        ((*WORK, "--deadline", "-3h"), "--deadline: '-3h' is negative"),
        ((*WORK, "--deadline", "2020-01-01T00:00Z"), "--deadline: 2020-01-01T00:00Z is past"),
        ((*WORK, "--deadline", "2030-01-01"), "--deadline: '2030-01-01' has no time and zone"),
        ((*WORK, "--budget", "0"), "--budget"),
        ((*WORK, "--budget", "-5"), "--budget: '-5' is negative"),
        ((*WORK, "--budget", "lots"), "--budget: 'lots' is not an amount of money"),
        ((*WORK, "--confidence", "90"), "--confidence: '90' is not a share (for example 90%)"),
        ((*WORK, "--confidence", "100%"), "--confidence"),
        ((*WORK, "--tokens", "0"), "--tokens"),
        ((*WORK, "--max-nodes", "0"), "--max-nodes"),
        ((*WORK, "--max-nodes", "two"), "--max-nodes"),
        ((*WORK, "--provider", "awz"), "--provider: no provider is called 'awz' (did you mean aws"),
        ((*WORK, "--provider", "aws,"), "--provider"),
        ((*WORK, "--region", "eu-wst-1"), "did you mean eu-west-1"),
        ((*WORK, "--region", "mars-*"), "--region: no region fits 'mars-*'"),
        ((*WORK, "--market", "futures"), "--market: 'futures' is not among the choices"),
        ((*WORK, "--accelerator", "H1000"), "--accelerator: no accelerator is called 'H1000'"),
        ((*WORK, "--provider", "aws", "--exclude", "aws"), "every provider that is allowed"),
        ((*WORK, "--provider", "gcp", "--region", "westus"), "leave no region anywhere"),
        ((*WORK, "--lora", "8", "--qlora", "8"), "lora"),
        ((*WORK, "--samples", "5"), "leave one of them out"),
        ((*WORK, "--precision", "int1"), "--precision"),
        ((*WORK, "--data-uri", "s3://b/x", "--data-size", "40"), "--data-size: '40' has no unit"),
        ((*WORK, "--data-size", "40GB"), "--data-uri"),
        ((*WORK, *MEASURED), "there is train too"),
        (("--hours", "12"), "--on"),
        (("--hours", "-1", "--on", "1xA100-80GB"), "--hours: -1 is negative"),
        (("--hours", "12", "--on", "3xUnobtainium"), "--on"),
        ((*WORK[2:], "--model", "lama-3.1-8b"), "did you mean"),
        ((*WORK, "--nodes", "2"), "--instead-of"),
        ((*WORK, "--why", "x", "--all-losers"), "exclude each other"),
        ((*WORK, "--top", "0"), "--top"),
        ((*WORK, "--no-such-option"), "--no-such-option"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, tuple) else "",
)
def test_bad_input(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    ran = cli("plan", *arguments)
    assert ran.code == 2, ran.err
    assert words in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a\n- list\n", "found a list"),
        ("", "is missing"),
        ("just words", "found a value"),
        ("{", "not YAML"),
        ("train: 7\n", "line 1: train"),
        ("train: {model: llama-3.1-8b, tokens: 1B, sequence: 8192, global_batch: 0}\n", "line 1"),
        ("train: {modle: x}\n", "did you mean 'model'?"),
        ("\0\0\0\0", ""),
    ],
)
def test_bad_files(cli: Cli, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "work.yaml"
    file.write_text(content)
    ran = cli("plan", str(file))
    assert ran.code == 2, ran.err
    assert "work.yaml" in ran.err
    assert words in ran.err


def test_a_file_of_a_hundred_megabytes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    with file.open("wb") as stream:
        stream.truncate(100_000_000)
    ran = cli("plan", str(file))
    assert ran.code == 2
    assert "is it the right file?" in ran.err
    assert cli("plan", str(tmp_path / "absent.yaml")).code == 5


def test_names_of_types(cli: Cli) -> None:
    ran = cli("plan", LORA, "--why", "p4d.24xlrge")
    assert ran.code == 3
    assert "did you mean p4d.24xlarge" in ran.err
    assert cli("plan", LORA, "--instead-of", "toaster").code == 3


def test_why_tells_of_the_network_between_machines(cli: Cli) -> None:
    ran = cli("plan", PRETRAIN, "--why", "runpod/8x_A100-80GB-PCIe_COMMUNITY")
    assert "were not considered: pods reach each other at 100 Mbit/s" in " ".join(ran.out.split())
    found = cli("plan", PRETRAIN, "--why", "p4d.24xlarge", "--json").json
    (network,) = found["networks"]
    assert network["gbps"] == 400
    assert {way["nodes"] for way in found["ways"]} >= {1, 2, 4}


def test_capacity_can_be_assumed_and_commitments_asked_for(cli: Cli) -> None:
    found = cli("plan", PRETRAIN, "--assume-capacity", "100%", "--json").json
    assert {one["had"] for one in found["plans"]} == {1.0}
    assert found["best"]["had_by"] == "assumed by you"
    some = cli("plan", PRETRAIN, "--assume-capacity", "40%,gcp=90%", "--json").json
    assert {one["had"] for one in some["plans"]} <= {0.4, 0.9}
    wrong = cli("plan", PRETRAIN, "--assume-capacity", "often")
    assert wrong.code == 2
    assert "--assume-capacity" in wrong.err
    assert "Traceback" not in wrong.err
    asked = ("--commit", "3y", "--accelerator", "H100-SXM", "--provider", "gcp")
    best = cli("plan", PRETRAIN, *asked, "--market", "on_demand", "--json").json["best"]
    assert best["commit"] == "3y"
    shown = cli("plan", PRETRAIN, *asked, "--market", "on_demand").out
    assert "with a commitment of three years" in shown
    assert "commitment: three years of " in shown
