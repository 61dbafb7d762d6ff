from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Ran
from tests.estimate.test_calibrate import row

LLAMA = ("--model", "llama-3.1-8b", "--on", "8xH100-SXM")
MIXTRAL = ("--model", "mixtral-8x7b", "--on", "8xH100-SXM")
RESNET = ("--model", "resnet-50", "--on", "8xL4")


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
    assert "of 85.9 GB" in out  # 80 GiB
    assert "bound by" in out


def test_what_does_not_fit_says_by_how_much_and_what_would(cli: Cli) -> None:
    ran = cli("estimate", "--model", "llama-2-70b", "--on", "1xT4", "--global-batch", "1")
    assert ran.code == 0
    assert "does not fit: 1" in ran.out
    assert "take larger accelerators" in ran.out
    near = ("estimate", "--model", "llama-3.1-8b", "--on", "8xA100-40GB", "--sharding", "ddp",
            "--tp", "1", "--pp", "1")  # fmt: skip
    ran = cli(*near)
    assert "GB too much" in ran.out
    assert "with zero3 sharding it would fit" in ran.out
    found = cli(*near, "--json").json
    assert found["advice"][0]["fits"] is True
    assert found["advice"][0]["peak_gb"] < found["usable_gb"] < found["memory_gb"]["peak"]


def test_advice_is_about_this_case(cli: Cli) -> None:
    slow = ("--stack", "fsdp-eager", "--micro-batch", "1", "--activation-checkpointing", "full",
            "--no-flash-attention")  # fmt: skip
    out = cli("estimate", *LLAMA, *slow).out
    assert "flash attention would be" in out
    assert "fp8 would be" in out
    assert "bound by compute" in out
    # What two changes would lead to is said once, by the smaller.
    fixed = ("--micro-batch", "1", "--sharding", "zero3", "--tp", "1", "--pp", "1")
    found = cli("estimate", *LLAMA, *fixed, "--seq", "8192", "--activation-checkpointing", "full")
    assert "no recompute would be" in found.out
    assert "another layout" not in found.out
    assert "megatron" not in cli("estimate", "--model", "gpt2", "--on", "Radeon-Pro-V620").out


def test_models_that_are_no_transformers(cli: Cli) -> None:
    seen, unseen = (
        cli("estimate", "--model", "resnet-50", "--on", on, "--json").json
        for on in ("RTX3090", "MI300X")
    )
    assert seen["high_samples_per_s"] < 2 * seen["low_samples_per_s"]
    gnmt = cli("estimate", "--model", "gnmt", "--on", "8xA100-80GB", "--json").json
    assert (gnmt["sample"], gnmt["global_batch"]) == ("token", 65_536)
    assert unseen["high_samples_per_s"] > 2 * unseen["low_samples_per_s"]
    out = cli("estimate", "--model", "resnet-50", "--on", "8xA100-80GB").out
    assert "images/s" in out
    assert "tokens" not in out
    found = cli("estimate", "--model", "stable-diffusion-xl", "--on", "8xH100-SXM", "--json").json
    assert found["tokens_per_s"] is None
    assert found["samples_per_s"] > 0
    out = cli("estimate", "--model", "vit-b-16", "--on", "A10").out
    assert "images/s (" in out
    assert "tokens/s" in out


def test_a_shape_in_a_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("layers: 24\nd_model: 2048\nn_heads: 16\n")
    out = cli("estimate", "--model", str(path), "--on", "8xA100-80GB").out
    assert "mine (1.36B) on 8× A100-80GB" in out
    path.write_text("layers: 24\nd_model: wide\nheads: 16\n")
    ran = cli("estimate", "--model", str(path), "--on", "8xA100-80GB")
    assert ran.code == 4
    assert f"{path} line 2: d_model: 'wide'" in ran.err
    assert f"{path} line 3: heads: there is no such field; did you mean 'n_heads'?" in ran.err


def test_adapters(cli: Cli) -> None:
    full, lora, qlora = (
        cli("estimate", *LLAMA, *more, "--sharding", "none", "--micro-batch", "1", "--tp", "1",
            "--pp", "1", "--activation-checkpointing", "full", "--json").json
        for more in ([], ["--lora", "16"], ["--qlora", "16"])
    )  # fmt: skip
    peaks = [found["memory_gb"]["peak"] for found in (full, lora, qlora)]
    assert peaks == sorted(peaks, reverse=True)
    assert lora["trained_parameters"] < 0.01 * lora["parameters"]
    assert lora["step_s"] < full["step_s"]
    assert "41.9M trained" in cli("estimate", *LLAMA, "--lora", "16").out


def test_stacks_of_other_names_are_taken_as_kin(cli: Cli) -> None:
    out = cli("estimate", *LLAMA, "--stack", "torchtitan").out
    assert "the stack torchtitan is taken as fsdp-compile" in out
    assert "taken to be fsdp-compile" in cli("estimate", *LLAMA).out
    assert "torchtitan was not measured" in out
    assert "groups of 8" in cli("estimate", *LLAMA, "--nodes", "2", "--sharding", "hsdp").out


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
        writer.writerow(row(accelerator="Z99"))
    after = cli(*arguments, "--measured", str(path)).json["tokens_per_s"]
    assert after < 0.8 * before
    ran = cli("estimate", *LLAMA, "--stack", "torchtitan", "--measured", str(path))
    assert f"1 row of {path} left out: no accelerator is called 'Z99'" in ran.err
    assert "you measured" not in ran.out  # the published ones tell as much
    ran = cli("estimate", *LLAMA, "--stack", "nanotron", "--measured", str(path))
    assert "none of your measurements is of nanotron" in ran.out
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        for micro in (1, 2, 4):
            writer.writerow(row(accelerator="L4", accelerator_mem_gb=24, micro_batch=micro))
    gpt2 = ("estimate", "--model", "gpt2", "--on", "8xL4", "--json")
    before, after = cli(*gpt2).json, cli(*gpt2, "--measured", str(path)).json
    assert "you measured fsdp-compile on L4: 3 rows" in after["band"]
    width = [found["high_tokens_per_s"] / found["low_tokens_per_s"] for found in (before, after)]
    assert width[1] < 0.7 * width[0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--model", "lama-3.1-8b", "--on", "8xH100-SXM"], 3, "llama-3.1-8b"),
        (["--model", "llama", "--on", "8xH100-SXM"], 3, "ambiguous"),
        (["--model", "none.json", "--on", "A10"], 5, "none.json"),
        (["--model", "/dev/null", "--on", "A10"], 4, "not a plain file"),
        (["--on", "A10"], 2, "--model"),
        # -- hardware
        (["--model", "gpt2", "--on", "8xH100"], 3, "ambiguous"),
        (["--model", "gpt2", "--on", "8xH1000"], 3, "no accelerator"),
        (["--model", "gpt2", "--on", "0.5xA10"], 2, "whole accelerators"),
        (["--model", "gpt2", "--on", "cpu"], 2, "accelerators only"),
        (["--model", "gpt2", "--on", "3000xH100-SXM"], 2, "--on 8xH100-SXM --nodes 375"),
        (["--model", "gpt2", "--on", "17xP40"], 2, "the largest has 16"),
        (["--model", "gpt2", "--on", "v5e-512"], 2, "the largest has 256"),
        (["--model", "gpt2", "--on", "inf2"], 2, "not for training"),
        (["--model", "gpt2", "--on", "FPGA-VU9P"], 2, "not for training"),
        ([*LLAMA, "--nodes", "0"], 2, "--nodes"),
        ([*LLAMA, "--nodes", "1000000"], 2, "from 1 to 125,000"),
        ([*LLAMA, "--network", "0Gbps"], 2, "cannot be"),
        ([*LLAMA, "--network", "400"], 2, "--network: '400' has no unit"),
        ([*LLAMA, "--network", ""], 2, "--network"),
        # -- precision and software
        (["--model", "gpt2", "--on", "A100-80GB", "--precision", "fp8"], 2, "bf16, fp16, fp32"),
        (["--model", "gpt2", "--on", "V100-16GB", "--precision", "bf16"], 2, "may be fp16"),
        (["--model", "gpt2", "--on", "v5e-8", "--precision", "fp16"], 2, "may be bf16"),
        ([*LLAMA, "--precision", "mxfp8"], 2, "no mxfp8"),
        ([*LLAMA, "--precision", "int8"], 2, "--precision"),
        ([*LLAMA, "--stack", "foo"], 2, "fsdp-compile"),
        ([*LLAMA, "--stack", ""], 2, "fsdp-compile"),
        (["--model", "gpt2", "--on", "v5e-8", "--stack", "megatron"], 2, "through XLA"),
        # -- the layout
        ([*LLAMA, "--tp", "3"], 2, "32 attention heads\nhint: tp may be 1, 2, 4, 8\n"),
        ([*LLAMA, "--tp", "16"], 2, "there are 8 accelerators"),
        (["--model", "falcon-40b", "--on", "8xH100-SXM", "--tp", "3"], 2, "attention heads"),
        ([*LLAMA, "--pp", "5"], 2, "32 layers"),
        ([*LLAMA, "--tp", "8", "--pp", "2"], 2, "tp 8 × pp 2 does not divide 8"),
        ([*LLAMA, "--cp", "3"], 2, "cp is 3"),
        ([*LLAMA, "--ep", "2"], 2, "no experts"),
        ([*LLAMA, "--vp", "2"], 2, "pp is not given"),
        ([*LLAMA, "--pp", "4", "--vp", "3"], 2, "8 layers on each stage"),
        ([*MIXTRAL, "--ep", "3"], 2, "8 experts"),
        ([*MIXTRAL, "--ep", "8", "--tp", "8"], 2, "dp may be 1"),
        ([*LLAMA, "--sharding", "zero4"], 2, "--sharding"),
        ([*LLAMA, "--lora", "100000"], 2, "from 1 to 4,096"),
        ([*LLAMA, "--lora", "8", "--qlora", "8"], 2, "both given"),
        ([*LLAMA, "--optimizer", "adam"], 2, "adamw"),
        # -- batch and sequence
        ([*LLAMA, "--global-batch", "7", "--tp", "1", "--pp", "1"], 2, "8, 16"),
        ([*LLAMA, "--global-batch", "7.5"], 2, "--global-batch: '7.5' is not a whole number"),
        ([*LLAMA, "--global-batch", "0"], 2, "global batch"),
        ([*LLAMA, "--global-batch", "8", "--micro-batch", "16"], 2, "larger than the global"),
        ([*LLAMA, "--micro-batch", "3"], 2, "in micro-batches of 3"),
        ([*LLAMA, "--seq", "0"], 2, "from 1 to 100,000,000"),
        ([*LLAMA, "--seq", "-4"], 2, "--seq: '-4' is negative"),
        ([*LLAMA, "--seq", "200M"], 2, "from 1 to 100,000,000"),
        ([*LLAMA, "--seq", "long"], 2, "not a number"),
        ([*LLAMA, "--seq", ""], 2, "not a number"),
        (["--model", "vit-b-16", "--on", "A10", "--seq", "300"], 2, "197 tokens"),
        # -- models without a shape
        ([*RESNET, "--tp", "2"], 2, "cannot be split"),
        ([*RESNET, "--seq", "224"], 2, "leave --seq out"),
        ([*RESNET, "--lora", "8"], 2, "LoRA is"),
        ([*RESNET, "--precision", "fp8"], 2, "fp8 is"),
        ([*LLAMA, "--measured", "none.csv"], 5, "none.csv"),
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


def test_benches_take_files_that_are_not_quite_right(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"

    def bench(name: str, *lines: str) -> Ran:
        path.write_text("\n".join(lines) + "\n")
        return cli("bench", name, "--data", str(path), "--json")

    header = "model,outcome,accelerator,throughput_per_gpu,tokens_per_s_per_gpu,n_gpus"
    for name in ("estimate", "memory", "other-models"):
        assert "has no rows" in bench(name, header).err
        assert "has no column" in bench(name, "model,n_gpus", "gpt2,1").err
        # No accelerator: no column, an empty cell, or a row that ends too soon.
        ran = bench(name, header.replace("accelerator", "notes"), "resnet-50,ok,A100,9,9,1")
        assert ran.code == 4
        assert "is not the name of an accelerator" in ran.err
    found = bench("memory", header, "gpt2,OK,T4", "gpt2,maybe,T4,,,1", "gpt2,ok,,", "gpt2").json
    assert (found["scored"], found["unsupported"]) == (1, 3)
    judged = cli("bench", "memory", "--data", str(path), "--leave-blocks-out", "--json").json
    assert (judged["scored"], judged["fit_accuracy"], judged["peaks"]) == (1, 100, 0)
    found = bench("other-models", header, "resnet50,,V100,400,,1,,", ",,V100,400,,1").json
    assert (found["scored"], found["unsupported"]) == (1, 1)
    # Who is left out is judged by the others: a tenfold claim is a tenfold error.
    named = "source,model,accelerator,throughput_per_gpu,n_gpus,precision,batch_per_gpu"
    claims = (f"{who},resnet50,A100-80,{speed},1,fp16,32" for who, speed in
              (("a", 400), ("a", 410), ("b", 4000)))  # fmt: skip
    bench("other-models", named, *claims)
    judged = cli("bench", "other-models", "--data", str(path), "--leave-one-source-out", "--json")
    assert 89 < judged.json["by_source"]["b"]["median_ape"] < 91
    judged = cli("bench", "other-models", "--data", str(path), "--leave-accelerators-out", "--json")
    assert judged.json["scored"] == 3  # nobody else measured it: from the registry
    both = cli(
        "bench", "memory", "--data", str(path), "--leave-one-source-out", "--leave-blocks-out"
    )
    assert (both.code, "not both" in both.err) == (2, True)
    # The first row decides nothing about the others.
    shaped = f"{header},layers,d_model,n_heads"
    known, given = "gpt2,,T4,,9,1,,,", "mine,,T4,,9,1,12,768,12"
    assert bench("estimate", shaped, known, given).json["scored"] == 2
    assert bench("estimate", shaped, given, known).json["scored"] == 2
    blocks = cli("bench", "estimate", "--data", str(path), "--leave-blocks-out", "--json").json
    assert (blocks["scored"], list(blocks["by_judge"])) == (2, ["generations"])


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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "nothing to fit to"),
        (("--outlook", "--data", "x.csv"), "--outlook is worked out alone"),
        (("--outlook", "--spot", "x.csv"), "--spot is fitted alone"),
    ],
)
def test_calibrate_does_one_thing_at_a_time(
    cli: Cli, tmp_path: Path, given: tuple[str, ...], words: str
) -> None:
    ran = cli("calibrate", *given, "--out", str(tmp_path / "out.json"))
    assert ran.code != 0
    assert words in ran.err


def test_pure_bf16_and_what_is_told_of_memory(cli: Cli) -> None:
    arguments = (
        "estimate", "--model", "llama-3.1-8b", "--on", "H200", "--seq", "4096", "--global-batch",
        "1", "--stack", "fsdp-eager", "--activation-checkpointing", "none", "--json",
    )  # fmt: skip
    mixed = cli(*arguments).json
    pure = cli(*arguments, "--precision", "pure-bf16").json
    assert pure["fits"]
    assert pure["precision"] == "pure-bf16"
    told, before = pure["memory_gb"], mixed["memory_gb"]
    assert told["weights"] + told["optimizer"] == pytest.approx(6 * pure["parameters"] / 1e9, 0.01)
    assert before["weights"] + before["optimizer"] == pytest.approx(12 * 8.03, 0.01)
    beside = told["context"] + told["buffers"]
    assert told["allocated"] < told["reserved"] == pytest.approx(told["total"] - beside)
    assert told["total"] == told["peak"] < pure["usable_gb"] < pure["capacity_gb"]
    # Nothing to shard over.
    assert cli(*arguments, "--sharding", "fsdp").json["memory_gb"] == before
