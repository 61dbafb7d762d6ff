"""A profile by its figures alone, without torch."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.catalog.small import REAL
from tradewind.estimate.answer import answer
from tradewind.estimate.question import Question
from tradewind.model.profile import Layer, Profile

PROFILE = Profile(
    name="net:make",
    input="float32[1,3,224,224]",
    batch=1,
    dtype="float32",
    forward_only=False,
    torch_version="2.9",
    parameters=25_000_000,
    trainable_parameters=25_000_000,
    parameter_bytes=100_000_000,
    buffers_bytes=0,
    forward_flops_per_sample=8_000_000_000,
    backward_flops_per_sample=16_000_000_000,
    matmul_flops_per_sample=0,
    attention_flops_per_sample=0,
    convolution_flops_per_sample=24_000_000_000,
    flops_fixed=0,
    moved_bytes_per_sample=800_000_000,
    moved_bytes_fixed=300_000_000,
    saved_bytes_per_sample=90_000_000,
    saved_bytes_fixed=0,
    peak_bytes_per_sample=90_000_000,
    peak_bytes_fixed=200_000_000,
    layers=(
        Layer(
            name="body", kind="Sequential", parameters=25_000_000,
            forward_flops=8_000_000_000, saved_bytes=90_000_000,
        ),
    ),
)  # fmt: skip


def test_what_is_frozen_costs_no_optimizer() -> None:
    chip = REAL.accelerators["A10G"]
    whole = answer(Question(model=PROFILE, accelerator=chip, recompute="none", micro_batch=32))
    frozen = replace(PROFILE, trainable_parameters=1_000_000)
    part = answer(Question(model=frozen, accelerator=chip, recompute="none", micro_batch=32))
    # Weights that are not trained are held in 16 bits; those that are have a copy in 32.
    assert part.memory_gb["optimizer"] / 12 == pytest.approx(whole.memory_gb["optimizer"] / 8 / 25)
    assert (whole.sample, whole.tokens_per_s, whole.sequence) == ("sample", None, None)


def test_recompute_trades_time_for_memory() -> None:
    chip = REAL.accelerators["A10G"]
    found = [
        answer(Question(model=PROFILE, accelerator=chip, recompute=how, micro_batch=32))
        for how in ("none", "selective", "full")
    ]
    speeds = [f.samples_per_s for f in found]
    peaks = [f.memory_gb["peak"] for f in found]
    assert speeds == sorted(speeds, reverse=True)
    assert peaks == sorted(peaks, reverse=True)


def test_a_profile_in_half_precision_counts_its_bytes_as_they_are() -> None:
    chip = REAL.accelerators["A10G"]
    half = replace(
        PROFILE, dtype="bfloat16", moved_bytes_per_sample=400_000_000,
        saved_bytes_per_sample=45_000_000,
        peak_bytes_per_sample=PROFILE.peak_bytes_per_sample // 2,
    )  # fmt: skip
    one, two = (answer(Question(model=p, accelerator=chip)) for p in (PROFILE, half))
    assert one.step_s == pytest.approx(two.step_s)
    assert one.memory_gb == pytest.approx(two.memory_gb)


def test_a_profile_of_nothing_is_no_trouble() -> None:
    figures: dict[str, Any] = {f.name: 0 for f in fields(Profile) if f.type == "int"}
    nothing = replace(PROFILE, **figures, layers=())
    found = answer(Question(model=nothing, accelerator=REAL.accelerators["A10G"], per_node=4))
    numbers = [found.step_s, found.samples_per_s, found.utilisation, *found.memory_gb.values()]
    assert all(math.isfinite(number) and number >= 0 for number in numbers)
