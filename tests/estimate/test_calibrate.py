from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.catalog.small import REAL
from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate import calibrate, left_out, measurements, registry
from tradewind.estimate.band import Evidence, Kind, half_width, reason
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import PRIORS, Constants, calibration, fitted
from tradewind.estimate.left_out import LeftOut
from tradewind.estimate.measurements import Measurements
from tradewind.estimate.time import step_time
from tradewind.model import Accelerator


def accelerator(name: str, memory_gb: float | None) -> Accelerator:
    return REAL.accelerators[REAL.names.canonical(name, memory_gb) or REAL.names.one(name)]


def row(**fields: Any) -> dict[str, str]:
    known: dict[str, Any] = {
        "source": "mine", "stack": "fsdp-compile", "task": "pretrain", "quality": "ok",
        "model": "llama", "layers": 32, "d_model": 4096, "n_heads": 32, "n_kv_heads": 8,
        "head_dim": 128, "d_ff": 14336, "gated": 1, "vocab": 128256, "seq_len": 4096,
        "accelerator": "H100-SXM-80", "accelerator_mem_gb": 80, "n_gpus": 8, "gpus_per_node": 8,
        "interconnect": "nvlink; ib 400Gb/s/gpu", "precision": "bf16", "dp": 8, "tp": 1, "pp": 1,
        "sharding": "zero3", "micro_batch": 2, "grad_accum": 4, "activation_ckpt": "none",
        "tokens_per_s_per_gpu": 10_000,
    }  # fmt: skip
    return {name: str(value) for name, value in (known | fields).items()}


def read(*rows: dict[str, str]) -> Measurements:
    return measurements.read(rows, accelerator, lambda name: None)


def test_rows_become_cases() -> None:
    found = read(row(tp=2, dp=4, precision="fp8", activation_ckpt="full", sharding="hsdp"))
    case = found.cases
    assert (case.tp[0], case.dp[0], case.zero[0], case.recompute[0]) == (2, 4, 3, 2)
    assert case.fp8[0] == 1
    assert case.peak[0] == pytest.approx(1978.9e12)
    assert case.network[0] == 50e9
    assert case.generation[0] == "hopper"
    network = read(row(interconnect="ib 8x200Gb/s/node")).cases.network[0]
    assert network == pytest.approx(25e9)


def test_rows_that_cannot_be_taken_are_counted_with_the_reason() -> None:
    found = read(
        row(),
        row(quality="q:odd"),
        row(task="lora"),
        row(accelerator="Z99"),
        row(layers="", model="unheard-of"),
        row(dp="many"),
        row(tokens_per_s_per_gpu=""),
    )
    assert (found.rows, len(found.cases)) == (5, 1)
    assert sum(found.unsupported.values()) == 4
    assert "the shape of 'unheard-of' is not known" in found.unsupported
    with pytest.raises(BadFile, match="no row can be used"):
        read(row(accelerator="Z99"))


def test_what_a_row_leaves_out_is_usual() -> None:
    bert = {"layers": 12, "d_model": 768, "n_heads": 12, "n_kv_heads": 12, "head_dim": 64,
            "d_ff": 3072, "gated": 0, "vocab": 30_522, "tied": 1, "experts": 0,
            "experts_per_token": 0, "d_ff_expert": 0, "d_ff_shared": 0, "hybrid": 0, "mixing": 0,
            "attending": 1, "window": 0, "windowed": 0, "causal": 0}  # fmt: skip
    rows = [
        row(layers="", model="bert"),
        row(n_gpus=16, tp=2, dp="", grad_accum="", precision="FP8"),
    ]
    rows[1] |= {"global_batch": "64"}
    found = measurements.read(rows, accelerator, lambda name: bert if name == "bert" else None)
    assert found.cases.causal.tolist() == [0, 1]
    assert read(row(accelerator="B200", precision="nvfp4")).cases.fp8[0] == 2
    assert (found.cases.dp[1], found.cases.accumulation[1], found.cases.fp8[1]) == (8, 4, 1)
    partly = read(row(n_kv_heads="", head_dim="", d_ff="", vocab="")).cases
    assert (partly.n_kv_heads[0], partly.head_dim[0], partly.d_ff[0]) == (32, 128, 16_384)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NoAccess):
        measurements.rows_of(tmp_path / "none.csv")
    (tmp_path / "x.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(BadFile, match="damaged"):
        measurements.rows_of(tmp_path / "x.csv.gz")
    with (tmp_path / "x.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row()))
        writer.writeheader()
        writer.writerow(row())
    assert len(measurements.rows_of(tmp_path / "x.csv")) == 1


def world(constants: Constants, number: int = 40) -> Measurements:
    """Measurements from a world in which `constants` are true."""
    rows = [
        row(
            micro_batch=2 ** (n % 4),
            d_model=1024 * 2 ** (n % 3),
            d_ff=4096 * 2 ** (n % 3),
            layers=8 * (1 + n % 4),
            grad_accum=1 + n % 5,
            source=f"s{n % 4}",
        )
        for n in range(number)
    ]
    found = read(*rows)
    found.tokens_per_s = step_time(found.cases, constants).tokens_per_s
    return found


def error(measured: Measurements, constants: Constants) -> float:
    return float(np.median(np.abs(calibrate.residuals(measured, constants))))


def test_a_fit_finds_the_world_it_was_measured_in() -> None:
    true = Constants({"matrix.fsdp-compile": 0.75, "launch.fsdp-compile": 4e-4, "fixed": 0.02})
    measured = world(true)
    assert error(measured, Constants({})) > 0.15
    assert error(measured, calibrate.fit(measured)) < 0.02


def test_three_points_of_ones_own_help_visibly() -> None:
    slower = fitted().values | {"matrix.fsdp-compile": 0.7 * fitted()["matrix.fsdp-compile"]}
    everything = world(Constants(slower))
    three = everything.take(np.arange(len(everything.cases)) % 14 == 1)
    assert len(three.cases) == 3
    before, after = fitted(), calibrate.sharpen(three, fitted())
    assert error(everything, after) < 0.4 * error(everything, before)
    # What was not measured stays as it was.
    assert after["matrix.megatron"] == before["matrix.megatron"]
    assert after["efficiency16.hopper"] == before["efficiency16.hopper"]


def test_leaving_a_source_out_scores_rows_that_were_not_fitted() -> None:
    measured = world(Constants({"matrix.fsdp-compile": 0.8}))
    found = left_out.by_source(measured)
    assert len(found.residuals) == len(found.familiarity) == len(measured.cases)
    assert np.median(np.abs(found.residuals)) < 0.05
    # One model, one chip: without them nothing is left but the priors.
    assert set(left_out.by_chip(measured).familiarity) == {"new"}


def test_bands_hold_four_fifths_and_widen_with_ignorance() -> None:
    measured = world(Constants({}))
    rows = len(measured.cases)
    off = np.linspace(0, 1, rows)
    known = LeftOut(np.arange(rows), 0.1 * off, ["measured"] * rows)
    strange = LeftOut(np.arange(rows), off, ["kin"] * rows)
    bands = left_out.bands(measured, [known, strange])
    held = left_out.HELD
    assert 0.8 <= held < 0.9
    assert bands["measured"] == pytest.approx(0.1 * held, abs=0.004)
    assert bands["scarce"] == bands["measured"] < bands["kin"] == pytest.approx(held, abs=0.04)
    assert bands["new"] > bands["kin"]
    assert bands["kinds"]["fsdp-compile hopper H100-SXM"] == pytest.approx(0.1 * held, abs=0.004)


def test_evidence_tells_how_familiar_something_is() -> None:
    kind = Kind("megatron", "hopper", "H100-SXM")
    evidence = Evidence.of([kind] * 40 + [kind._replace(chip="H200")], ["one"] * 41)
    assert evidence.familiarity(kind) == "measured"
    assert evidence.familiarity(kind._replace(chip="H200")) == "scarce"
    assert evidence.familiarity(kind._replace(chip="H20")) == "scarce"
    assert evidence.familiarity(Kind("megatron", "rdna", "W7900")) == "kin"
    assert evidence.familiarity(Kind("other", "rdna", "W7900")) == "new"
    several = Evidence.of([kind] * 3, ["a", "b", "c"])
    assert several.familiarity(kind) == "measured"


def test_what_is_less_known_is_never_more_certain() -> None:
    bands = calibration()["bands"]
    assert 0 < bands["measured"] <= bands["scarce"] <= bands["kin"] < bands["new"]
    common = {
        "layers": 2, "d_model": 64, "n_heads": 1, "n_kv_heads": 1, "head_dim": 64, "d_ff": 64,
        "vocab": 10, "sequence": 8, "peak": 1, "peak16": 312e12, "bandwidth": 1, "link": 1,
        "network": 1, "memory_gb": 1,
    }  # fmt: skip
    kinds = [
        Kind("fsdp-eager", "ampere", "A100-80GB"),
        Kind("fsdp-eager", "ampere", "A100-40GB"),
        Kind("fsdp-compile", "rdna", "W7900"),
    ]
    widths = [half_width(Cases.of(common | kind._asdict()))[0] for kind in kinds]
    assert widths == sorted(widths)
    assert widths[0] < bands["scarce"] <= widths[1]
    for kind in kinds:
        assert kind.stack in reason(kind)
    another_make = half_width(Cases.of(common | kinds[1]._asdict() | {"peak16": 70e12}))[0]
    assert another_make == widths[2] > widths[1]
    assert reason(Kind("xla-tpu", "tpu-v6e", "TPU-v6e")).endswith(
        "hardly measured: 7 rows of 1 source"
    )
    assert "but on others of ampere" in reason(kinds[1])


def test_the_calibration_has_its_provenance() -> None:
    shipped = calibration()
    assert sum(shipped["sources"].values()) == shipped["rows"]
    assert set(shipped["constants"]) == set(PRIORS)
    assert all(value > 0 for value in shipped["constants"].values())
    assert all(prior.meaning for prior in PRIORS.values())


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("megatron", "megatron"), ("NeMo 25.02", "megatron"), ("fsdp-compiled", "fsdp-compile"),
        ("torchtitan", "fsdp-compile"), ("MaxText", "xla-tpu"), ("ddp", "fsdp-eager"),
        ("something new", "fsdp-eager"),
    ],
)  # fmt: skip
def test_stacks_have_kin(name: str, ours: str) -> None:
    assert measurements.stack_of(name) == ours


def test_other_models_are_reached_through_the_peaks() -> None:
    from tradewind.estimate import samples

    def measured(accelerator: str, batch: str, speed: float, devices: int = 1) -> dict[str, str]:
        return {
            "source": "x", "model": "ConvNets/ResNet-50", "accelerator": accelerator,
            "precision": "fp16", "batch_per_gpu": batch, "n_gpus": str(devices),
            "throughput_per_gpu": str(speed),
        }  # fmt: skip

    def speed(flops: float, gbps: float, batch: float) -> float:
        return 1 / (2.4e10 / flops + 3e8 / gbps + 0.01 / batch)

    rows = [
        measured(name, str(batch), speed(flops, bandwidth, batch))
        for name, flops, bandwidth in (
            ("A100-80GB", 312e12, 2039e9), ("V100-16GB", 125e12, 900e9), ("T4", 65e12, 320e9),
        )
        for batch in (32, 128, 512)
    ]  # fmt: skip
    found = samples.read(rows, accelerator)
    assert set(found.models) == {"resnet50"}
    coefficients = samples.fit(found)
    unseen = samples.read([measured("H100-SXM", "64 and 256", 1.0)], accelerator)
    predicted = samples.predict(unseen, coefficients)[0]
    assert predicted == pytest.approx(speed(989.4e12, 3350e9, 256), rel=0.1)
    odd = [measured("Z99", "1", 1.0), measured("T4", "8", 0)]
    found = samples.read([*odd, measured("T4", "8", 1.0)], accelerator)
    assert sum(found.unsupported.values()) == 2
    with pytest.raises(BadFile, match="no row can be used"):
        samples.read(odd, accelerator)
    # A known transformer that nobody measured is counted; Lambda found 57 on a V100.
    bert = measured("V100-16GB", "16", 57) | {"model": "bert-large", "seq_len": "384"}
    counted = samples.predict(
        samples.read([bert], accelerator),
        {},
        lambda name, length: samples.as_work(registry.find(name), length),  # type: ignore[arg-type]
    )
    assert counted[0] == pytest.approx(57, rel=0.3)
    nothing = samples.read([measured("T4", "8", 1.0) | {"model": "unheard-of"}], accelerator)
    assert np.isnan(samples.predict(nothing, coefficients)[0])
