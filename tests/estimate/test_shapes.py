from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.estimate import registry
from tradewind.estimate.huggingface import from_numbers
from tradewind.estimate.shapes import (
    active_parameters,
    attention_matrices,
    embedding_parameters,
    expert_parameters,
    forward_flops_per_token,
    head_parameters,
    kv_bytes_per_token,
    parameters,
    tokens_per_image,
)
from tradewind.model.shape import Shape, Work


def small(**changes: object) -> Shape:
    base = {"layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 16, "vocab": 10, "gated": False}
    return from_numbers({**base, **changes})


def shape_of(name: str) -> Shape:
    found = registry.find(name)
    assert isinstance(found, Shape)
    return found


def test_a_small_model_by_hand() -> None:
    # Two layers of q, k, v, o (4·64), up and down (2·128) and two norms; a norm; table and head.
    assert parameters(small()) == 2 * (256 + 256 + 16) + 8 + 2 * 80
    assert parameters(small(tied=True)) == parameters(small()) - 80
    assert parameters(small(gated=True)) == parameters(small()) + 2 * 128
    assert parameters(small(n_kv_heads=1)) == parameters(small()) - 2 * 2 * 8 * 4
    assert parameters(small(positions="learned", max_positions=5)) == parameters(small()) + 40
    assert parameters(small(parallel_block=True)) == parameters(small()) - 2 * 8
    assert parameters(small(qk_norm=True)) == parameters(small()) + 2 * 2 * 4
    assert parameters(small(extra_params=-3)) == parameters(small()) - 3
    # Biases: q, k, v, o (4·8), up and down (16 + 8) in each layer; RMS norms have none.
    assert parameters(small(bias=True)) == parameters(small()) + 2 * (32 + 24)
    assert parameters(small(bias=True, norm="layernorm")) == parameters(small(bias=True)) + 5 * 8


def test_experts_by_hand() -> None:
    model = small(experts=4, experts_per_token=1, d_ff_expert=4, d_ff_shared=2, dense_layers=1)
    one_expert = 2 * 8 * 4
    sparse_layer = 8 * 4 + 4 * one_expert + 2 * 8 * 2  # router, experts, shared
    assert parameters(model) == parameters(small()) - 256 + sparse_layer
    assert active_parameters(model) == parameters(model) - 3 * one_expert
    assert expert_parameters(model) == 4 * one_expert
    assert expert_parameters(small()) == 0
    assert active_parameters(small()) == parameters(small())


def test_flops_by_hand() -> None:
    matmul, attention, logits = forward_flops_per_token(small(), 5)
    assert matmul == 2 * 2 * (256 + 256)
    assert logits == 2 * 80
    # Causal: a token sees (1 + 2 + 3 + 4 + 5) / 5 = 3 positions; q·k and the sum, two heads of 4.
    assert attention == 2 * 3 * (2 * 2 * 2 * 4)
    everywhere = forward_flops_per_token(small(kind="encoder"), 5)
    assert everywhere.attention == 2 * 5 * (2 * 2 * 2 * 4)
    assert everywhere.total == sum(everywhere)


def test_a_window_bounds_what_a_token_sees() -> None:
    # With a window of 2 the five tokens see 1, 2, 2, 2, 2.
    windowed = forward_flops_per_token(small(sliding_window=2), 5).attention
    assert windowed == pytest.approx(2 * (9 / 5) * 32)
    half = forward_flops_per_token(small(sliding_window=2, full_attention_layers=1), 5).attention
    assert half == pytest.approx((9 / 5 + 3) * 32)
    assert forward_flops_per_token(small(sliding_window=9), 5) == forward_flops_per_token(
        small(), 5
    )


def test_a_router_costs_what_it_scores_and_sleeping_experts_nothing() -> None:
    model = small(experts=4, experts_per_token=2)
    assert forward_flops_per_token(model, 5).matmul == 2 * 2 * (256 + 8 * 4 + 2 * 256)


def test_six_n_d_where_it_should_hold() -> None:
    # Matrix work of a forward pass is two FLOPs a weight, but for tables and norms.
    model = shape_of("llama-3.1-70b")
    flops = forward_flops_per_token(model, 8192)
    assert flops.matmul + flops.logits == pytest.approx(2 * parameters(model), rel=0.02)
    # PaLM's 12·L·H·Q·T for a whole training step is 3 × 4·L·H·Q·T without the causal half.
    assert flops.attention == pytest.approx(4 * 80 * 64 * 128 * 8192 / 2, rel=0.001)


def test_vision_flops_agree_with_the_published() -> None:
    # torchvision counts 17.56 G multiply-adds for an image, without those of attention's products.
    model = shape_of("vit-b-16")
    seq = tokens_per_image(model)
    assert seq == 197
    flops = forward_flops_per_token(model, seq)
    assert (flops.total) * seq / 2 == pytest.approx(17.56e9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("mixtral-8x7b", 12.9), ("mixtral-8x22b", 39), ("qwen3-30b-a3b", 3.3),
        ("qwen3-235b-a22b", 22), ("deepseek-v3", 37), ("deepseek-v2", 21),
        ("deepseek-moe-16b", 2.8), ("dbrx-132b", 36), ("qwen2-57b-a14b", 14),
        ("llama-4-scout-17b-16e", 17), ("llama-4-maverick-17b-128e", 17),
        ("nemotron-3-nano-30b-a3b", 3.6), ("qwen1.5-moe-a2.7b", 2.7), ("kimi-k2", 32),
    ],
)  # fmt: skip
def test_active_parameters_agree_with_the_published(name: str, billions: float) -> None:
    # Published to two digits, so 3 %.
    assert active_parameters(shape_of(name)) == pytest.approx(billions * 1e9, rel=0.03)


@pytest.mark.parametrize(("name", "billions"), [("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)])
def test_some_publish_active_parameters_without_the_input_table(name: str, billions: float) -> None:
    model = shape_of(name)
    active = active_parameters(model) - head_parameters(model)
    assert active == pytest.approx(billions * 1e9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "kilobytes"),
    [
        ("llama-3.1-8b", 131.072), ("llama-2-7b", 524.288), ("llama-3.1-70b", 327.68),
        ("deepseek-v3", 70.272), ("gemma-2b", 18.432), ("nemotron-3-nano-30b-a3b", 6.144),
        ("bert-base", 0), ("resnet-50", 0), ("vit-b-16", 0), ("t5-small", 2 * 512 * 6 * 2 / 1e3),
    ],
)  # fmt: skip
def test_kv_bytes(name: str, kilobytes: float) -> None:
    assert kv_bytes_per_token(registry.find(name)) == pytest.approx(kilobytes * 1e3)


def test_kv_bytes_follow_their_precision() -> None:
    model = shape_of("llama-3.1-8b")
    assert kv_bytes_per_token(model, 1.0) == kv_bytes_per_token(model) / 2


def test_the_latent_attention_of_deepseek_by_its_five_matrices() -> None:
    model = shape_of("deepseek-v3")
    q = 7168 * 1536 + 1536 * 128 * 192
    kv = 7168 * (512 + 64) + 512 * 128 * (128 + 128)
    assert attention_matrices(model) == q + kv + 128 * 128 * 7168
    without_waist = replace(model, q_lora_rank=0)
    assert attention_matrices(without_waist) == 7168 * 128 * 192 + kv + 128 * 128 * 7168


def test_the_nemotron_hybrid_attends_in_six_blocks_only() -> None:
    model = shape_of("nemotron-3-nano-30b-a3b")
    assert model.attention_layers == 6
    assert "scan" in model.note
    everywhere = replace(model, attention_layers=0)
    ratio = (
        forward_flops_per_token(model, 4096).attention
        / forward_flops_per_token(everywhere, 4096).attention
    )
    assert ratio == pytest.approx(6 / 23)


def test_an_encoder_decoder_has_cross_attention() -> None:
    both = small(kind="encoder-decoder", decoder_layers=1)
    encoder = small(kind="encoder", tied=True)
    # A layer more, with two attentions and three norms, and a norm at its end.
    assert parameters(both) == parameters(encoder) + 2 * 256 + 256 + 4 * 8
    attention = forward_flops_per_token(both, 5).attention
    assert attention == (2 * 5 + 5 + 3) * 32  # two layers of encoder; across; its own past


def test_work_is_taken_at_its_word() -> None:
    work = Work(
        name="mine", kind="profile", params=7, forward_flops_per_sample=11.0,
        activation_bytes_per_sample=13.0, moved_bytes_per_sample=17.0, sample="sample", input="x",
    )  # fmt: skip
    assert parameters(work) == active_parameters(work) == 7
    assert embedding_parameters(work) == 0
    assert forward_flops_per_token(work, 99) == (11.0, 0.0, 0.0)


@given(
    layers=st.integers(1, 100),
    heads=st.integers(1, 64),
    head_dim=st.integers(1, 128),
    seq=st.integers(1, 200_000),
    window=st.integers(0, 10_000),
)
def test_nothing_is_negative_and_a_token_never_sees_more_than_there_is(
    layers: int, heads: int, head_dim: int, seq: int, window: int
) -> None:
    shape = from_numbers(
        {"layers": layers, "d_model": heads * head_dim, "n_heads": heads, "sliding_window": window}
    )
    flops = forward_flops_per_token(shape, seq)
    a_position = 4 * heads * head_dim * layers
    assert 0 < flops.attention <= a_position * (seq + 1) / 2
    assert flops.attention <= forward_flops_per_token(shape, seq + 1).attention
    if window:
        assert flops.attention <= a_position * window
    assert 0 < active_parameters(shape) <= parameters(shape)
    assert embedding_parameters(shape) < parameters(shape)
