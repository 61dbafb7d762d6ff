"""What memory is made of, whether it suffices, and how published outcomes are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estimate.test_time_and_memory import LLAMA, MIXTRAL, K, cases_strategy, of, peak
from tradewind.bench.measured import finders
from tradewind.estimate import calibrate_memory, outcomes
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import MEMORY_PRIORS, Constants
from tradewind.estimate.memory import (
    GIB,
    MemoryUse,
    fit_probability,
    fits,
    memory_use,
    possible,
    usable,
)

ITEMS = (
    "weights", "copies", "gradients", "optimizer", "activations", "logits", "gathered", "buffers",
    "context", "fragmentation",
)  # fmt: skip
NANOTRON_1B = LLAMA | {
    "layers": 16, "d_model": 2048, "head_dim": 64, "n_kv_heads": 32, "d_ff": 8192,
    "vocab": 131_072, "tied": 1, "stack": "nanotron", "fused": 0, "accumulation": 256,
}  # fmt: skip
NANOTRON_8B = NANOTRON_1B | {"layers": 32, "d_model": 4096, "head_dim": 128, "d_ff": 14336}


def use(chosen: dict[str, Any], model: dict[str, Any] = LLAMA, **how: bool) -> MemoryUse:
    return memory_use(of(chosen, model), K, **how)


def item(name: str, chosen: dict[str, Any], model: dict[str, Any] = LLAMA) -> float:
    return float(getattr(use(chosen, model), name)[0])


odd = st.fixed_dictionaries(
    {
        "ep": st.sampled_from([1, 8]),
        "vp": st.sampled_from([1, 4]),
        "trained": st.sampled_from([1, 0.004]),
        "weight_bytes": st.sampled_from([0.6, 2, 4]),
        "optimizer_bytes": st.sampled_from([0.25, 4, 8, 12]),
        "mixed": st.sampled_from([0, 1]),
    }
)
models = st.sampled_from([LLAMA, MIXTRAL])


@given(cases_strategy, odd, models)
def test_the_items_are_sound_and_add_up(
    chosen: dict[str, Any], more: dict[str, Any], model: dict[str, Any]
) -> None:
    found = use(chosen | more, model)
    values = [float(getattr(found, name)[0]) for name in ITEMS]
    assert all(np.isfinite(value) and value >= 0 for value in values)
    assert sum(values) == pytest.approx(float(found.peak[0]))


@given(cases_strategy, odd, models)
def test_longer_sequences_and_larger_micro_batches_never_need_less(
    chosen: dict[str, Any], more: dict[str, Any], model: dict[str, Any]
) -> None:
    chosen = chosen | more
    for name in ("sequence", "micro_batch"):
        assert peak(chosen | {name: 2 * chosen[name]}, model) >= peak(chosen, model)


@given(cases_strategy, odd, models, st.sampled_from(["dp", "cp", "tp", "ep"]))
def test_more_devices_never_need_more_each(
    chosen: dict[str, Any], more: dict[str, Any], model: dict[str, Any], axis: str
) -> None:
    chosen = chosen | more | {"dp": 2 * chosen["dp"]}  # collectives have buffers from two on
    twice = {axis: 2 * chosen[axis]}
    assert peak(chosen | twice, model) <= peak(chosen, model) * (1 + 1e-9)


@given(cases_strategy, odd, models)
def test_the_first_stage_never_needs_more_than_the_fullest(
    chosen: dict[str, Any], more: dict[str, Any], model: dict[str, Any]
) -> None:
    first = use(chosen | more, model, first_stage=True)
    assert float(first.peak[0]) <= float(use(chosen | more, model).peak[0]) * (1 + 1e-9)


@given(cases_strategy, odd)
def test_fits_is_a_probability_of_more_than_half(
    chosen: dict[str, Any], more: dict[str, Any]
) -> None:
    cases = of(chosen | more)
    found = memory_use(cases, K)
    likely = fit_probability(cases, found, K)
    assert 0 <= likely[0] <= 1
    assert bool(fits(cases, found, K)[0]) == bool(likely[0] >= 0.5)


def test_the_probability_falls_with_what_is_needed() -> None:
    cases = Cases.of(LLAMA | {"dp": 8, "zero": 3, "shard": 8, "micro_batch": [1, 2, 4, 8, 64]})
    likely = fit_probability(cases, memory_use(cases, K), K)
    assert (np.diff(likely) < 0).all()
    assert likely[0] > 0.9
    assert likely[-1] < 0.01


def test_an_accelerators_gigabytes_are_binary() -> None:
    assert usable(of({}), K)[0] == 80 * GIB * K["usable_memory"]


def test_an_unfused_loss_holds_its_logits_several_times() -> None:
    tokens = LLAMA["sequence"] * LLAMA["vocab"]
    eager = item("logits", {"fused": 0, "accumulation": 1}) / tokens
    assert 12 <= eager <= 16
    assert item("logits", {"fused": 1}) / tokens < eager / 2
    # The last micro-batch's are still there when the next are made.
    assert item("logits", {"fused": 0, "accumulation": 2}) / tokens > eager + 3


def test_logits_and_a_layer_computed_again_are_not_there_at_once() -> None:
    small = use({"recompute": 2}, LLAMA | {"vocab": 1000})
    assert small.logits[0] == 0
    large = use({"recompute": 2, "fused": 0})
    kept = 2 * LLAMA["d_model"] * LLAMA["sequence"] * LLAMA["layers"]
    assert large.activations[0] == pytest.approx(kept)


def test_sharding_spreads_over_context_parallel_devices() -> None:
    whole = item("optimizer", {"dp": 4, "zero": 1})
    assert item("optimizer", {"dp": 4, "cp": 2, "zero": 1}) == pytest.approx(whole / 2)


def test_experts_that_lie_apart_are_shared_by_fewer() -> None:
    """Each of 64 devices keeps a 64th of the optimizer's states, however experts are spread."""
    together = item("optimizer", {"dp": 64, "zero": 1}, MIXTRAL)
    apart = item("optimizer", {"dp": 64, "zero": 1, "ep": 8}, MIXTRAL)
    assert apart == pytest.approx(together)
    less = item("weights", {"dp": 64, "ep": 8}, MIXTRAL)
    assert less < item("weights", {"dp": 64}, MIXTRAL) / 4


def test_what_is_quantised_and_what_is_not() -> None:
    tables = 2 * LLAMA["vocab"] * LLAMA["d_model"]
    lora = {"trained": 0.004, "recompute": 2}
    full = item("weights", lora)
    quantised = item("weights", lora | {"weight_bytes": 0.5})
    assert quantised == pytest.approx(0.25 * (full - 2 * tables) + 2 * tables)


def test_training_at_one_precision_has_one_gradient() -> None:
    weights = item("weights", {"weight_bytes": 4, "optimizer_bytes": 8})
    assert item("gradients", {"weight_bytes": 4, "optimizer_bytes": 8}) == weights
    assert item("gradients", {"optimizer_bytes": 4, "mixed": 0}) == item("weights", {})
    assert item("gradients", {"optimizer_bytes": 0, "mixed": 0}) == 0


def test_only_sharded_weights_are_gathered() -> None:
    assert item("gathered", {"dp": 8, "zero": 1}) == 0
    torch = item("gathered", {"dp": 8, "zero": 3, "stack": "fsdp-eager"})
    assert 0 < item("gathered", {"dp": 8, "zero": 3, "stack": "xla-tpu"}) < torch


def test_interleaving_keeps_more_micro_batches() -> None:
    plain = item("activations", {"pp": 4})
    assert plain < item("activations", {"pp": 4, "vp": 4}) < 2 * plain


def test_stages_that_are_cut_by_work() -> None:
    """The vocabulary takes the place of layers: four of 1b's, two of 8b's."""
    assert possible(of({"pp": 8}, NANOTRON_1B))[0]
    assert not possible(of({"pp": 16}, NANOTRON_1B))[0]
    assert possible(of({"pp": 32}, NANOTRON_8B))[0]
    assert possible(of({"pp": 16}, NANOTRON_1B | {"stack": "megatron"}))[0]
    # And they do not start with fewer micro-batches than stages after the first.
    assert possible(of({"pp": 8, "accumulation": 7}, NANOTRON_8B))[0]
    assert not possible(of({"pp": 8, "accumulation": 6}, NANOTRON_8B))[0]


def test_known_peaks() -> None:
    """GB of tensors on the first device, as nanotron's runs on H100 reported them."""
    for model, chosen, told in (
        (NANOTRON_1B, {"dp": 64, "zero": 1}, 23.8),
        (NANOTRON_8B, {"dp": 8, "tp": 4, "zero": 1}, 31.7),
        (NANOTRON_8B, {"dp": 4, "pp": 8, "zero": 1}, 54.2),
        (NANOTRON_8B, {"dp": 2, "pp": 4, "tp": 4, "zero": 1, "micro_batch": 8}, 76.2),
    ):
        found = use(chosen, model, first_stage=True).allocated()
        assert float(found[0]) / GIB == pytest.approx(told, rel=0.2)


def row(**changed: str) -> dict[str, str]:
    found = {
        "source": "mine", "model": "llama3-8b", "accelerator": "H100-SXM-80", "n_gpus": "8",
        "dp": "8", "micro_batch": "1", "seq_len": "4096", "outcome": "ok", "peak_mem_gb": "10",
        "sharding": "zero3",
    }  # fmt: skip
    return found | changed


def read(**changed: str) -> outcomes.Outcomes:
    return outcomes.read([row(**changed)], *finders())


@pytest.mark.parametrize(
    ("changed", "stack", "fused"),
    [
        ({}, "fsdp-eager", 0),
        ({"compile": "1"}, "fsdp-compile", 1),
        ({"source": "nemo-24.07", "compile": "0.0"}, "megatron", 1),
        ({"notes": "nanotron, 1F1B"}, "nanotron", 0),
        ({"source": "llm-foundry"}, "fsdp-eager", 1),
        ({"accelerator": "TPUv5e"}, "xla-tpu", 1),
        ({"source": "maxtext-a3"}, "xla-gpu", 1),
        ({"sharding": "zero1"}, "megatron", 1),
        ({"tp": "2", "dp": "4", "flash_attention": "0.0"}, "megatron-preFA", 1),
    ],
)
def test_the_stack_of_a_row_that_does_not_tell(
    changed: dict[str, str], stack: str, fused: int
) -> None:
    cases = read(**changed).cases
    assert (cases.stack[0], cases.fused[0]) == (stack, fused)


def test_units_of_published_peaks() -> None:
    assert read().peak_gb[0] == 10
    assert read(source="litgpt").peak_gb[0] == pytest.approx(10 * 1e9 / GIB)
    assert read(source="bigscience-v100").whole[0]
    tensors = read(stack="megatron").as_published(K)[0]
    assert tensors < read(stack="megatron", source="bigscience-v100").as_published(K)[0]


def test_what_tuning_leaves_untold() -> None:
    single = {"n_gpus": "1", "dp": "1", "task": "sft", "sharding": ""}
    assert read(**single).cases.optimizer_bytes[0] < 1
    assert read(**single, accelerator_mem_gb="800").cases.optimizer_bytes[0] == 4
    several = read(task="sft", sharding="").cases
    assert (several.zero[0], several.shard[0]) == (3, 8)
    assert read(task="qlora").cases.weight_bytes[0] < 1
    assert read(notes="8-bit Adam").cases.optimizer_bytes[0] < 1


def test_what_recipes_of_experts_leave_untold() -> None:
    cases = read(model="mixtral-8x7b").cases
    assert (cases.ep[0], cases.recompute[0]) == (8, 1)
    assert read(model="mixtral-8x7b", ep="2").cases.ep[0] == 2


def test_fitting_finds_what_made_the_peaks() -> None:
    truth = Constants({"eager_width_bytes": 24.0, "eager_gradient_bytes": 5.0})
    chosen = [
        {"dp": dp, "tp": tp, "micro_batch": micro, "zero": zero, "shard": dp}
        for dp in (1, 8)
        for tp in (1, 4)
        for micro in (1, 2, 8)
        for zero in (0, 1)
    ]
    columns = {name: [case[name] for case in chosen] for name in chosen[0]}
    cases = Cases.of(NANOTRON_8B | columns)
    made = memory_use(cases, truth)
    number = len(cases)
    rows = outcomes.Outcomes(
        cases=cases,
        ran=fits(cases, made, truth).astype(float),
        peak_gb=made.allocated() / GIB,
        whole=np.zeros(number, dtype=bool),
        sources=["a", "b"] * (number // 2),
        models=["nanotron-8b"] * number,
        unsupported=read().unsupported,
        rows=number,
    )
    found = calibrate_memory.fit_memory(rows)
    assert set(found) == set(MEMORY_PRIORS)
    fitted = memory_use(cases, Constants(found)).allocated()
    assert np.median(np.abs(fitted / made.allocated() - 1)) < 0.05
    assert found["peak_spread"] < MEMORY_PRIORS["peak_spread"].start
