"""What must hold of every estimate, whatever the constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.base.errors import InvalidValue
from tradewind.estimate.cases import STACKS, Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import memory_use, possible
from tradewind.estimate.time import step_time

LLAMA: dict[str, Any] = {
    "layers": 32, "d_model": 4096, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
    "d_ff": 14336, "gated": 1, "vocab": 128_256, "sequence": 4096,
    "peak": 989e12, "peak16": 989e12, "bandwidth": 3.35e12, "link": 450e9, "network": 50e9,
    "memory_gb": 80, "generation": "hopper", "accumulation": 8,
}  # fmt: skip
MIXTRAL = LLAMA | {"d_ff": 0, "experts": 8, "experts_per_token": 2, "d_ff_expert": 14336}
K = fitted()

cases_strategy = st.fixed_dictionaries(
    {
        "dp": st.sampled_from([1, 2, 8, 64]),
        "tp": st.sampled_from([1, 2, 4, 8]),
        "pp": st.sampled_from([1, 2, 4]),
        "cp": st.sampled_from([1, 2]),
        "zero": st.sampled_from([0, 1, 2, 3]),
        "micro_batch": st.sampled_from([1, 2, 8]),
        "accumulation": st.sampled_from([1, 4, 64]),
        "recompute": st.sampled_from([0, 1, 2]),
        "flash": st.sampled_from([0, 1]),
        "fused": st.sampled_from([0, 1]),
        "stack": st.sampled_from(STACKS),
        "sequence": st.sampled_from([512, 4096, 131_072]),
        "fp8": st.sampled_from([0, 1]),
        "generation": st.sampled_from(
            ["volta", "ampere", "hopper", "blackwell", "tpu-v5e", "rdna"]
        ),
    }
)


def of(chosen: dict[str, Any], model: dict[str, Any] = LLAMA) -> Cases:
    merged = model | chosen
    return Cases.of(merged | {"shard": merged.get("shard", merged.get("dp", 1))})


def tokens_per_s(chosen: dict[str, Any], model: dict[str, Any] = LLAMA) -> float:
    return float(step_time(of(chosen, model), K).tokens_per_s[0])


def peak(chosen: dict[str, Any], model: dict[str, Any] = LLAMA) -> float:
    return float(memory_use(of(chosen, model), K).peak[0])


@given(cases_strategy, st.sampled_from([LLAMA, MIXTRAL]))
def test_nothing_negative_nan_or_infinite_ever_comes_out(
    chosen: dict[str, Any], model: dict[str, Any]
) -> None:
    for found in (step_time(of(chosen, model), K), memory_use(of(chosen, model), K)):
        for name in found.__slots__:
            value = float(getattr(found, name)[0])
            assert np.isfinite(value), name
            assert value >= -1e-9, name


@given(cases_strategy, st.sampled_from(["tp", "pp"]))
def test_more_devices_never_need_more_memory_each(chosen: dict[str, Any], axis: str) -> None:
    # In-flight micro-batches keep a pipeline's activations level, so the state decides there.
    chosen = chosen | {"accumulation": 1}
    assert peak(chosen | {axis: 2 * chosen[axis]}) <= peak(chosen) * 1.001 + 1e9


@given(cases_strategy)
def test_sharding_further_never_needs_more(chosen: dict[str, Any]) -> None:
    more = chosen | {"dp": 2 * chosen["dp"]}
    assert peak(more) <= peak(chosen) * 1.001 + 1e9


@given(cases_strategy)
def test_longer_sequences_never_run_faster_per_token(chosen: dict[str, Any]) -> None:
    # At the same tokens in a micro-batch, so that nothing else saturates better.
    short = chosen | {"sequence": 4096, "micro_batch": 8, "cp": 1}
    long = chosen | {"sequence": 32_768, "micro_batch": 1, "cp": 1}
    assert tokens_per_s(long) <= tokens_per_s(short) * 1.001


@given(cases_strategy)
def test_recompute_trades_speed_for_memory(chosen: dict[str, Any]) -> None:
    none, full = chosen | {"recompute": 0}, chosen | {"recompute": 2}
    assert tokens_per_s(full) <= tokens_per_s(none)
    assert peak(full) <= peak(none) * 1.06  # one layer is whole while it is recomputed


@given(cases_strategy, st.sampled_from(["peak16", "bandwidth", "link", "network"]))
def test_faster_hardware_is_never_slower(chosen: dict[str, Any], name: str) -> None:
    better = {name: 2 * LLAMA[name]}
    if name == "peak16":
        better["peak"] = 2 * LLAMA["peak"]
    # Relative to its peak a faster chip needs larger work, but never more time for the same.
    assert tokens_per_s(chosen | better) >= tokens_per_s(chosen) * 0.999


def test_terms_add_up_to_about_the_step() -> None:
    found = step_time(of({"dp": 8, "tp": 2, "pp": 2, "zero": 1}), K)
    parts = sum(
        float(getattr(found, name)[0])
        for name in found.__slots__
        if name not in ("step", "tokens_per_s")
    )
    assert parts == pytest.approx(float(found.step[0]), rel=0.1)


def test_a_known_point_is_plausible() -> None:
    """Llama-3-8B on eight H100 with Megatron: published around 10,000 tokens/s each."""
    chosen = {"dp": 4, "cp": 2, "zero": 1, "sequence": 8192, "accumulation": 32}
    assert 9_000 < tokens_per_s(chosen) < 12_500


def attention(**chosen: Any) -> float:
    return float(step_time(of({"accumulation": 1, "sequence": 65_536} | chosen), K).attention[0])


@pytest.mark.parametrize(
    ("chosen", "better"),
    [
        ({"stack": "fsdp-eager"}, True),
        ({"stack": "fsdp-compile", "generation": "blackwell"}, True),
        ({"stack": "fsdp-eager", "generation": "ampere"}, False),  # its kernels fit it already
        ({"stack": "nanotron"}, False),  # brings its own
        ({"stack": "megatron"}, False),  # had them before
    ],
)
def test_pytorch_2_11_brought_hopper_attention_kernels_of_its_own(
    chosen: dict[str, Any], better: bool
) -> None:
    before, since = (attention(**chosen, year=year) for year in (2026.1, 2026.2))
    assert (since < 0.7 * before) == better
    # What has no date is what one installs now.
    assert attention(**chosen) == pytest.approx(since, rel=0.05)


def test_attention_needs_longer_sequences_to_fill_a_faster_chip() -> None:
    def gain(peak: float) -> float:
        chip = {"peak": peak, "peak16": peak}
        short = attention(sequence=1024, micro_batch=64, **chip)
        return attention(sequence=65_536, micro_batch=1, **chip) / short

    assert gain(989e12) < 0.9 * gain(312e12)  # of the 64 times that a sequence of 64 times costs
    assert gain(312e12) < 64


def test_nanotron_waits_for_its_sharded_gradients_and_the_longer_the_more_ranks() -> None:
    """What the last micro-batch hides elsewhere, nanotron begins when all gradients are there."""

    def data(stack: str, dp: int, zero: int) -> float:
        chosen = {"stack": stack, "dp": dp, "tp": 8, "zero": zero, "network": 50e9}
        return float(step_time(of(chosen), K).data[0])

    sent = 32 * 218e6 / 8 * 6 / (0.9 * 50e9)  # of the layers alone, at the network's best
    few, many = data("nanotron", 8, 1), data("nanotron", 64, 1)
    assert few > 0.8 * sent
    assert data("megatron", 8, 1) < few / 2
    # Fifty-six more ranks, each a hop a layer; reduced, the number hardly matters.
    assert many - few == pytest.approx(56 * 32 * K["hop_of_ring"], rel=0.3)
    assert data("nanotron", 64, 0) - data("nanotron", 8, 0) < (many - few) / 2


def test_memory_items_add_up() -> None:
    use = memory_use(of({"dp": 8, "zero": 1}), K)
    names = [n for n in use.__slots__ if n != "peak"]
    assert sum(float(getattr(use, n)[0]) for n in names) == pytest.approx(float(use.peak[0]))
    # Weights in 16 bits, and an optimizer of 12 bytes shared by eight.
    parameters = float(use.weights[0]) / 2
    assert parameters == pytest.approx(8.03e9, rel=0.01)
    assert float(use.optimizer[0]) == pytest.approx(12 * parameters / 8)


def test_spreading_experts_shards_nothing_twice() -> None:
    """All state is somewhere: on 64 devices no less than a 64th of it is on each."""
    for zero in (1, 3):
        spread = {"dp": 64, "zero": zero}
        one, eight = (memory_use(of(spread | {"ep": ep}, MIXTRAL), K) for ep in (1, 8))
        assert float(eight.optimizer[0]) == pytest.approx(float(one.optimizer[0]))
    assert float(eight.weights[0]) == pytest.approx(float(one.weights[0]))


def test_impossible_pipelines() -> None:
    assert possible(of({"pp": 32}))[0]
    assert not possible(of({"pp": 64}))[0]


def test_cases_say_what_is_missing() -> None:
    with pytest.raises(InvalidValue, match="cases need 'layers'"):
        Cases.of({"d_model": 1})
    with pytest.raises(InvalidValue, match="cases have no 'colour'"):
        Cases.of(LLAMA | {"colour": 1})
