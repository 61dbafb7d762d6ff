"""A model's shape as the columns that the formulas take. Pure."""

from __future__ import annotations

from tradewind.errors import InvalidValue
from tradewind.estimate.shapes import attention_matrices
from tradewind.model.shape import Shape, Work


def of_shape(shape: Shape | Work) -> dict[str, float]:
    """layers, widths, heads, experts … of a transformer.

    An encoder-decoder counts as one stack of both its halves, with the attention across in those of
    the decoder.
    """
    if isinstance(shape, Work):
        raise InvalidValue(
            f"{shape.name} is no transformer, and only those can be estimated by shape"
        )
    sparse = shape.experts > 0
    layers = shape.layers + shape.decoder_layers
    dense_share = shape.dense_layers / layers if sparse else 1
    attending = shape.attention_layers or shape.layers
    attentions = attending + 2 * shape.decoder_layers
    windowed = shape.layers - shape.full_attention_layers if shape.sliding_window else 0
    latent = shape.qk_nope_head_dim + shape.qk_rope_head_dim + shape.v_head_dim
    return {
        "layers": layers,
        "d_model": shape.d_model,
        "n_heads": shape.n_heads,
        "n_kv_heads": shape.n_kv_heads,
        # Latent attention's keys are wider than its values.
        "head_dim": latent / 2 if shape.latent else shape.head_dim,
        # Layers without experts are spread over all of them.
        "d_ff": shape.d_ff * dense_share,
        "gated": float(shape.gated),
        "vocab": max(shape.vocab, shape.classes, 1),
        "tied": float(shape.tied),
        "causal": float(shape.kind == "decoder"),
        "experts": shape.experts,
        "experts_per_token": shape.experts_per_token * (1 - dense_share) if sparse else 0,
        "d_ff_expert": (shape.d_ff_expert or shape.d_ff) if sparse else 0,
        "d_ff_shared": shape.d_ff_shared,
        "hybrid": float(shape.attention_layers > 0),
        "mixing": (attentions * attention_matrices(shape) + shape.mixer_params) / layers,
        "attending": attentions / layers,
        "window": shape.sliding_window,
        "windowed": min(windowed / layers, 1),
    }
