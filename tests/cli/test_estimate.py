from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.estimate.test_calibrate import row


def test_a_layout_that_is_given(cli: Cli) -> None:
    found = cli(
        "estimate", "--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--nodes", "2",
        "--seq", "8192", "--micro-batch", "1", "--global-batch", "512", "--precision", "bf16",
        "--sharding", "zero3", "--tp", "1", "--pp", "1", "--activation-checkpointing", "full",
        "--stack", "fsdp-compiled", "--json",
    ).json  # fmt: skip
    assert found["layout"]["dp"] == 16
    assert found["layout"]["accumulation"] == 32
    assert found["considered"] == 1
    assert found["fits"] is True
    assert found["low_tokens_per_s"] < found["tokens_per_s"] < found["high_tokens_per_s"]
    assert 60_000 < found["tokens_per_s"] < 200_000
    assert found["tokens_per_s"] == pytest.approx(512 * 8192 / found["step_s"])
    assert 0.2 < found["utilisation"] < 0.7


def test_a_layout_that_is_left_open_is_chosen(cli: Cli) -> None:
    arguments = ("estimate", "--model", "llama-2-70b", "--on", "8xH100-SXM", "--nodes", "8")
    chosen = cli(*arguments, "--json").json
    assert chosen["considered"] > 50
    assert chosen["fits"]
    for tp in ("1", "8"):
        assert cli(*arguments, "--tp", tp, "--json").json["tokens_per_s"] <= chosen["tokens_per_s"]
    out = cli(*arguments).out
    assert "the best of" in out
    assert "of 80 GB" in out
    assert "bound by" in out


def test_what_does_not_fit_says_so(cli: Cli) -> None:
    ran = cli("estimate", "--model", "llama-2-70b", "--on", "1xT4", "--global-batch", "1")
    assert ran.code == 0
    assert "does not fit" in ran.out


def test_ones_own_points(cli: Cli, tmp_path: Path) -> None:
    arguments = ("estimate", "--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--stack",
                 "fsdp-compile", "--sharding", "zero3", "--micro-batch", "2", "--json")  # fmt: skip
    before = cli(*arguments).json["tokens_per_s"]
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        for micro in (1, 2, 4):
            writer.writerow(row(micro_batch=micro, tokens_per_s_per_gpu=5_000))
    after = cli(*arguments, "--measured", str(path)).json["tokens_per_s"]
    assert after < 0.8 * before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--model", "lama-3.1-8b", "--on", "8xH100-SXM"], 3, "llama-3.1-8b"),
        (["--model", "llama-3.1-8b", "--on", "8xH100"], 3, "ambiguous"),
        (["--model", "llama-3.1-8b", "--on", "8xH1000"], 3, "no accelerator"),
        (["--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--tp", "3"], 2, "attention heads"),
        (["--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--pp", "5"], 2, "32 layers"),
        (["--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--cp", "3"], 2, "cp is 3"),
        (["--model", "llama-3.1-8b", "--on", "8xH100-SXM", "--global-batch", "7", "--tp", "1",
          "--pp", "1"], 2, "cannot be divided"),
        (["--model", "llama-3.1-8b", "--on", "0.5xA10"], 2, "whole accelerators"),
        (["--model", "resnet-50", "--on", "A10"], 2, "no transformer"),
        (["--model", "none.json", "--on", "A10"], 5, "none.json"),
        (["--model", "llama-3.1-8b", "--on", "A10", "--seq", "long"], 2, "not a number"),
        (["--model", "llama-3.1-8b", "--on", "A10", "--measured", "none.csv"], 5, "none.csv"),
        (["--on", "A10"], 2, "--model"),
    ],
)  # fmt: skip
def test_bad_input(cli: Cli, arguments: list[str], code: int, words: str) -> None:
    ran = cli("estimate", *arguments)
    assert words in ran.err
    assert ran.code == code


def test_benches(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        writer.writerow(row())
        writer.writerow(row(accelerator="Z99"))
    found = cli("bench", "estimate", "--data", str(path), "--json").json
    assert (found["rows"], found["scored"], found["unsupported"]) == (2, 1, 1)
    assert set(found) >= {"median_ape", "p90_ape", "macro_median_ape", "band80_coverage"}
    assert found["by_source"]["mine"]["n"] == 1
    memory = tmp_path / "memory.csv"
    fields = [*row(), "outcome", "peak_mem_gb"]
    with memory.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fields)
        writer.writeheader()
        writer.writerow(row() | {"outcome": "ok", "peak_mem_gb": "50"})
        writer.writerow(row(dp=1, sharding="none") | {"outcome": "oom", "peak_mem_gb": ""})
    found = cli("bench", "memory", "--data", str(memory), "--json").json
    assert found["rows"] == 2
    assert found["fit_accuracy"] == found["oom_caught"] == found["ok_kept"] == 100
    assert cli("bench", "estimate", "--speed", "--json").json["per_second"] > 0
    assert cli("bench", "estimate").code == 2
    assert cli("bench", "memory", "--data", str(path)).code == 4
    assert cli("bench", "estimate", "--data", "none.csv").code == 5


def test_calibrate(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "mine.csv", tmp_path / "calibration.json"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        for n in range(6):
            writer.writerow(row(source=f"s{n % 2}", micro_batch=1 + n))
    ran = cli("calibrate", "--data", str(path), "--out", str(out))
    assert ran.code == 0, ran.err
    assert "6 rows of 2 sources" in ran.out
    assert '"constants"' in out.read_text()
