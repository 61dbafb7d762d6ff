from __future__ import annotations

import numpy as np
import pytest

from tests.estimate.serving.questions import cases
from tradewind.estimate.serving import memory

BATCHES = np.array([1.0, 2, 8, 64, 512])


def test_weights_are_parameters_times_bytes_over_the_ranks() -> None:
    whole = memory.weight_bytes(cases())[0]
    assert whole == pytest.approx(2 * 8.03e9, rel=0.01)
    assert memory.weight_bytes(cases(group=4))[0] == pytest.approx(whole / 4)
    assert memory.weight_bytes(cases(stages=2))[0] == pytest.approx(whole / 2)
    assert memory.weight_bytes(cases(weights="fp8"))[0] == pytest.approx(whole / 2)


def test_the_cache_of_a_token_counts_heads_layers_and_precision() -> None:
    # 32 layers, 8 heads of 128 for keys and for values, in 16 bits.
    assert memory.held(cases()).cache_per_token[0] == 2 * 32 * 8 * 128 * 2
    assert memory.held(cases(kv_bytes=1.0)).cache_per_token[0] == 2 * 32 * 8 * 128


def test_heads_that_are_fewer_than_ranks_are_held_by_several() -> None:
    eight = memory.held(cases(group=8)).cache_per_token[0]
    assert memory.held(cases(group=16)).cache_per_token[0] == eight


def test_latent_attention_is_not_divided_unless_each_rank_has_its_own_sequences() -> None:
    one = memory.held(cases("deepseek-r1", "H200", "fp8", group=1)).cache_per_token[0]
    assert one == 61 * 576 * 2
    assert memory.held(cases("deepseek-r1", "H200", "fp8", group=8)).cache_per_token[0] == one
    spread = cases("deepseek-r1", "H200", "fp8", group=8, spread_attention=1)
    assert memory.held(spread).cache_per_token[0] == one / 8
    assert memory.weight_bytes(spread) > memory.weight_bytes(
        cases("deepseek-r1", "H200", "fp8", group=8)
    )


def test_a_window_bounds_what_its_layers_keep() -> None:
    length = np.array([4000.0])
    assert memory.positions(cases(windowed=0.5, window=1000), length)[0] == 2500
    assert memory.positions(cases(), length)[0] == 4000


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-r1"])
def test_a_larger_batch_or_length_never_needs_less(model: str) -> None:
    asked = cases(model, group=8, batch=BATCHES)
    held = memory.held(asked)
    peaks = memory.peak(asked, held, BATCHES, np.full(5, 3000.0))
    assert (np.diff(peaks) > 0).all()
    assert (memory.peak(asked, held, BATCHES, np.full(5, 6000.0)) >= peaks).all()


def test_more_fit_beside_smaller_weights_and_none_beside_too_large_ones() -> None:
    length = np.array([2000.0])

    def fit(weights: str) -> float:
        asked = cases("llama-3.1-70b", "H100-SXM", weights)
        return float(memory.sequences(asked, memory.held(asked), length)[0])

    assert fit("bf16") == 0
    assert 0 < fit("fp8") < fit("int4")
