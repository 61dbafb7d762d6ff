from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.estimate.serving.test_rows import row

LLAMA = ("estimate", "--serve", "--model", "llama-3.1-8b", "--on", "H100-SXM")


def test_serving_is_answered_with_memory_speed_and_a_band(cli: Cli) -> None:
    load = ("--input", "1000", "--output", "200", "--concurrency", "32")
    found = cli(*LLAMA, *load, "--json").json
    assert found["fits"]
    assert (found["tp"], found["replicas"]) == (1, 1)
    assert found["memory_gb"]["weights"] == pytest.approx(16.06, rel=0.01)
    for name in ("output_tokens_per_s", "ttft_ms", "tpot_ms"):
        assert found["low"][name] < found[name] < found["high"][name]
    assert found["total_tokens_per_s"] == pytest.approx(6 * found["output_tokens_per_s"])
    assert 1000 < found["output_tokens_per_s"] < 6000
    assert 3 < found["tpot_ms"] < 30
    text = cli(*LLAMA, *load).out
    assert "first token" in text
    assert "in 4 of 5 cases" in text


def test_replicas_share_the_clients(cli: Cli) -> None:
    load = ("--concurrency", "64", "--json")
    one = cli(*LLAMA, *load).json
    eight = cli("estimate", "--serve", "--model", "llama-3.1-8b", "--on", "8xH100-SXM", *load).json
    assert (eight["tp"], eight["replicas"]) == (1, 8)
    assert eight["tpot_ms"] < one["tpot_ms"]
    assert eight["output_tokens_per_s"] > one["output_tokens_per_s"]


def test_what_does_not_fit_says_so(cli: Cli) -> None:
    big = ("estimate", "--serve", "--model", "llama-3.1-70b", "--on", "H100-SXM")
    assert cli(*big, "--json").json["fits"] is False
    assert "does not fit" in cli(*big).out
    assert cli(*big, "--weights", "int4", "--json").json["fits"] is True


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--engine", "foo"), "sglang"),
        (("--weights", "fp3"), "mxfp4"),
        (("--weights", "fp4"), "fp8"),
        (("--cache", "fp3"), "fp8"),
        (("--input", "200000"), "131,072"),
        (("--tp", "3"), "tp may be 1"),
        (("--pp", "40"), "32 layers"),
        (("--global-batch", "8"), "about training"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(
    cli: Cli, more: tuple[str, ...], says: str
) -> None:
    failed = cli(*LLAMA, *more)
    assert failed.code != 0
    assert says in failed.err


def test_options_of_serving_need_it(cli: Cli) -> None:
    failed = cli("estimate", "--model", "llama-3.1-8b", "--on", "H100-SXM", "--input", "9")
    assert "--serve" in failed.err
    failed = cli("estimate", "--model", "llama-3.1-8b", "--on", "H100-SXM", "--adapters", "9")
    assert "--serve" in failed.err


def test_models_that_do_not_generate_are_answered_in_requests(cli: Cli) -> None:
    resnet = ("estimate", "--serve", "--model", "resnet-50", "--on", "2xA10G")
    found = cli(*resnet, "--concurrency", "64", "--json").json
    assert found["batch"] == 32
    low, value, high = (each["requests_per_s"] for each in (found["low"], found, found["high"]))
    assert low < value < high
    assert "requests" in cli(*resnet).out
    assert "overloaded" in cli(*resnet, "--rate", "900000").out
    text = cli("estimate", "--serve", "--model", "bert-base", "--on", "T4", "--rate", "20").out
    assert "p99" in text
    assert "does not fit" in cli("estimate", "--serve", "--model", "t5-11b", "--on", "T4").out


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        ("bert-base", ("--tp", "2"), "--tp is about models that generate text"),
        ("bert-base", ("--dp-attention",), "--dp-attention"),
        ("bert-base", ("--input", "many"), "--input"),
        ("bert-base", ("--rate", "1", "--concurrency", "2"), "--concurrency and --rate"),
        ("llama-3.1-8b", ("--steps", "3"), "diffusion"),
        ("llama-3.1-8b", ("--lora", "8"), "--adapters"),
        ("llama-3.1-8b", ("--accept", "60%"), "--speculate"),
        ("llama-3.1-8b", ("--speculate", "3", "--accept", "160%"), "35%"),
        ("llama-3.1-8b", ("--speculate", "3", "--draft", "bert-base"), "does not generate"),
        ("llama-3.1-8b", ("--speculate", "3", "--rate", "1"), "--rate"),
        ("llama-3.1-8b", ("--prefix-cached", "100%"), "below 100"),
    ],
)
def test_options_that_mean_nothing_there_are_refused(
    cli: Cli, model: str, more: tuple[str, ...], says: str
) -> None:
    failed = cli("estimate", "--serve", "--model", model, "--on", "L40S", *more)
    assert failed.code != 0
    assert says in failed.err


def test_adapters_guesses_and_cached_prefixes_are_counted(cli: Cli) -> None:
    plain = cli(*LLAMA, "--concurrency", "16", "--json").json
    adapted = cli(*LLAMA, "--concurrency", "16", "--adapters", "20", "--json").json
    assert adapted["memory_gb"]["adapters"] == pytest.approx(1.68, rel=0.01)  # rank 16
    assert adapted["tpot_ms"] > plain["tpot_ms"]
    guessed = cli(*LLAMA, "--concurrency", "16", "--speculate", "3", "--json").json
    assert guessed["tpot_ms"] < plain["tpot_ms"]
    cached = cli(*LLAMA, "--concurrency", "16", "--prefix-cached", "60%", "--json").json
    assert cached["ttft_ms"] < plain["ttft_ms"]
    assert "by arithmetic" in cli(*LLAMA, "--adapters", "4", "--lora", "8").out


def written(path: Path, rows: list[dict[str, str]]) -> str:
    names = sorted({name for each in rows for name in each})
    with path.open("w", newline="") as stream:
        table = csv.DictWriter(stream, names)
        table.writeheader()
        table.writerows(rows)
    return str(path)


def test_bench_inference_answers_in_its_contract(cli: Cli, tmp_path: Path) -> None:
    rows = [
        row(), row(concurrency="64", output_tokens_per_s="8000"), row(quality="oom"),
        row(model="mine", source="t"), row(model="nobody's"),
        row(task="other", model="bert", mode="offline", requests_per_s="9000"),
    ]  # fmt: skip
    data = written(tmp_path / "data.csv", rows)
    shape = {"model": "mine", "params_b": "7", "layers": "32", "d_model": "4096", "n_heads": "32"}
    models = written(tmp_path / "models.csv", [shape])
    found = cli("bench", "inference", "--data", data, "--models", models, "--json").json
    assert (found["rows"], found["scored"], found["unsupported"]) == (5, 4, 1)
    for name, count in (("throughput", 4), ("tpot", 3), ("ttft", 3)):
        assert set(found[name]) == {
            "n", "median_ape", "p90_ape", "macro_median_ape", "band80_coverage",
        }  # fmt: skip
        assert found[name]["n"] == count
    assert set(found["by_source"]) == {"s", "t"}
    text = cli("bench", "inference", "--data", data).out
    assert "unsupported" in text
    assert "mine" in text


def test_bench_inference_refuses_what_is_no_such_file(cli: Cli, tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.csv", [{"a": "1"}])
    assert "quality" in cli("bench", "inference", "--data", empty).err
    assert "--data" in cli("bench", "inference").err
    data = written(tmp_path / "data.csv", [row()])
    bad = written(tmp_path / "models.csv", [{"model": "x"}])
    assert "params_b" in cli("bench", "inference", "--data", data, "--models", bad).err
