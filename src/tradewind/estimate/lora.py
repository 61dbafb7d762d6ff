"""Low-rank adapters: how much of a model they train. Pure."""

from __future__ import annotations

from tradewind.estimate.shapes import parameters
from tradewind.model.shape import Shape

QUANTISED_BYTES = 0.55  # a weight in 4 bits, with its scales


def trained_share(shape: Shape, rank: int) -> float:
    """Weights of adapters of that rank on every linear layer, against the model's own."""
    d = shape.d_model
    feed = 3 if shape.gated else 2
    layers = shape.layers + shape.decoder_layers
    sparse = layers - shape.dense_layers if shape.experts else 0
    wide = shape.d_ff_expert or shape.d_ff
    inner = feed * (layers - sparse) * (d + shape.d_ff)
    inner += feed * sparse * shape.experts * (d + wide)
    if shape.d_ff_shared:
        inner += feed * sparse * (d + shape.d_ff_shared)
    attending = (shape.attention_layers or shape.layers) + 2 * shape.decoder_layers
    return rank * (inner + attending * _attention(shape)) / parameters(shape)


def _attention(shape: Shape) -> int:
    """Sum of both sides of an attention's matrices."""
    d, heads = shape.d_model, shape.n_heads
    if not shape.latent:
        q, kv = heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        return 2 * (d + q) + 2 * (d + kv)
    each_q = heads * (shape.qk_nope_head_dim + shape.qk_rope_head_dim)
    waist = shape.q_lora_rank
    q = (d + waist) + (waist + each_q) if waist else d + each_q
    down = d + shape.kv_lora_rank + shape.qk_rope_head_dim
    up = shape.kv_lora_rank + heads * (shape.qk_nope_head_dim + shape.v_head_dim)
    return q + down + up + heads * shape.v_head_dim + d
