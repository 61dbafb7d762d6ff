"""Parameters and arithmetic of a model, counted from its shape. Pure.

    matrices    q, k, v, o (or the five of latent attention); two or three of a feed-forward; the
                router, every expert and the shared ones; Mamba's; cross-attention in a decoder
    vectors     norms; biases where `bias`; the norms on q and k, and on latent attention's waists
    embeddings  the token table, learned positions, the head if it is not tied; patches and class
                token of a vision model
    the rest    `extra_params`, as the family has it

    matmul      two FLOPs for each weight of the matrices that a token meets
    attention   q·kᵀ and the weighted sum of v, over the positions that a token really sees: half
                the sequence on average if causal, all of it in an encoder, less in a window
    logits      two FLOPs for each weight of the output head, tied or not

FLOPs are of the forward pass; backward costs twice that. Softmax, norms and activations are not
counted: they are bound by memory, not by arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.shape import Shape, Work


class Flops(NamedTuple):
    """Of one token's forward pass (of one sample's, for a `Work`)."""

    matmul: float
    attention: float
    logits: float

    @property
    def total(self) -> float:
        return self.matmul + self.attention + self.logits


def parameters(model: Shape | Work) -> int:
    """Every weight, each counted once."""
    if isinstance(model, Work):
        return model.params
    return (
        _matrices(model, model.experts)
        + _vectors(model, model.experts)
        + embedding_parameters(model)
        + model.extra_params
    )


def active_parameters(model: Shape | Work) -> int:
    """The weights that one token meets: of the experts, only those it is sent to."""
    if isinstance(model, Work):
        return model.params
    asleep = model.experts - model.experts_per_token
    a_layer = asleep * _feed_forward(model, _expert_width(model))
    if model.bias:
        a_layer += asleep * _feed_forward_bias(model, _expert_width(model))
    return parameters(model) - (model.layers - model.dense_layers) * a_layer


def embedding_parameters(model: Shape | Work) -> int:
    """Tables at either end of the stack: tokens, learned positions, untied head, patches."""
    if isinstance(model, Work):
        return 0
    if model.kind == "vision":
        patches = 3 * model.patch**2 * model.d_model + model.d_model
        places = (tokens_per_image(model) + 1) * model.d_model  # and the class token itself
        return patches + places + (model.d_model + 1) * model.classes
    learned = model.max_positions if model.positions == "learned" else 0
    return (model.vocab + learned) * model.d_model + head_parameters(model)


def head_parameters(model: Shape) -> int:
    """The output head, where it has weights of its own."""
    return 0 if model.tied else model.vocab * model.d_model


def expert_parameters(model: Shape) -> int:
    """The routed experts of all layers: what expert parallelism spreads."""
    if not model.experts:
        return 0
    one = _feed_forward(model, _expert_width(model))
    return (model.layers - model.dense_layers) * model.experts * one


def tokens_per_image(model: Shape) -> int:
    """Length of a vision model's sequence: its patches and the class token."""
    return (model.image // model.patch) ** 2 + 1 if model.patch else 0


def forward_flops_per_token(model: Shape | Work, seq: int) -> Flops:
    """FLOPs of one token in a sequence of `seq`.

    An encoder-decoder is counted for each token of an input with a target as long. A vision model's
    `seq` is `tokens_per_image`; its classifier is spread over them. For a `Work` this is the
    whole sample, and `seq` does not matter.
    """
    if isinstance(model, Work):
        return Flops(model.forward_flops_per_sample, 0.0, 0.0)
    matmul = 2.0 * _matrices(model, model.experts_per_token)
    if model.kind == "vision":
        patches = 2.0 * 3 * model.patch**2 * model.d_model
        return Flops(
            matmul + patches, _attention(model, seq), 2.0 * model.d_model * model.classes / seq
        )
    return Flops(matmul, _attention(model, seq), 2.0 * model.d_model * model.vocab)


def kv_bytes_per_token(model: Shape | Work, bytes_per_value: float = 2.0) -> float:
    """What serving keeps of one token of the context. Windows bound it later; here they do not.

    Latent attention keeps its narrow waist. An encoder-decoder keeps its decoder's own context; an
    encoder keeps nothing.
    """
    if isinstance(model, Work) or model.kind in ("encoder", "vision"):
        return 0.0
    if model.kind == "encoder-decoder":
        return 2 * model.n_kv_heads * model.head_dim * model.decoder_layers * bytes_per_value
    if model.latent:
        return (model.kv_lora_rank + model.qk_rope_head_dim) * model.layers * bytes_per_value
    return 2 * model.n_kv_heads * model.head_dim * _attending(model) * bytes_per_value


def attention_matrices(model: Shape) -> int:
    """The weights of one attention, without biases."""
    if not model.latent:
        across = model.n_heads * model.head_dim
        return 2 * model.d_model * (across + model.n_kv_heads * model.head_dim)
    each_q = model.qk_nope_head_dim + model.qk_rope_head_dim
    q_in = model.q_lora_rank or model.d_model
    q = q_in * model.n_heads * each_q + model.d_model * model.q_lora_rank
    kv_down = model.d_model * (model.kv_lora_rank + model.qk_rope_head_dim)
    kv_up = model.kv_lora_rank * model.n_heads * (model.qk_nope_head_dim + model.v_head_dim)
    return q + kv_down + kv_up + model.n_heads * model.v_head_dim * model.d_model


def _attending(model: Shape) -> int:
    return model.attention_layers or model.layers


def _attentions(model: Shape) -> int:
    """How many there are: a decoder behind an encoder has two a layer, to itself and across."""
    return _attending(model) + 2 * model.decoder_layers


def _expert_width(model: Shape) -> int:
    return model.d_ff_expert or model.d_ff


def _feed_forward(model: Shape, width: int) -> int:
    return (3 if model.gated else 2) * model.d_model * width


def _feed_forward_bias(model: Shape, width: int) -> int:
    return (2 if model.gated else 1) * width + model.d_model


def _sparse_layers(model: Shape) -> int:
    return model.layers - model.dense_layers if model.experts else 0


def _matrices(model: Shape, experts: int) -> int:
    """All matrices between the embeddings, with `experts` of each sparse layer's."""
    sparse = _sparse_layers(model)
    dense = model.layers - sparse + model.decoder_layers
    routed = (
        model.d_model * model.experts  # the router scores every expert, whichever it takes
        + experts * _feed_forward(model, _expert_width(model))
        + _feed_forward(model, model.d_ff_shared)
    )
    return (
        _attentions(model) * attention_matrices(model)
        + model.mixer_params
        + dense * _feed_forward(model, model.d_ff)
        + (sparse * routed if sparse else 0)
    )


def _vectors(model: Shape, experts: int) -> int:
    norm = model.d_model * (2 if model.norm == "layernorm" and model.bias else 1)
    norms = (1 if model.parallel_block else 2) * model.layers + 1
    if model.decoder_layers:
        norms += 3 * model.decoder_layers + 1
    attentions = _attentions(model)
    count = norms * norm
    if model.qk_norm:
        count += attentions * 2 * model.head_dim
    if model.latent:
        count += attentions * (model.q_lora_rank + model.kv_lora_rank)
    if model.bias:
        sparse = _sparse_layers(model)
        qkv = (model.n_heads + 2 * model.n_kv_heads) * model.head_dim
        count += attentions * (qkv + model.d_model)
        dense = model.layers - sparse + model.decoder_layers
        count += dense * _feed_forward_bias(model, model.d_ff)
        count += sparse * experts * _feed_forward_bias(model, _expert_width(model))
    return count


def _attention(model: Shape, seq: int) -> float:
    if model.latent:
        width = model.qk_nope_head_dim + model.qk_rope_head_dim + model.v_head_dim
    else:
        width = 2 * model.head_dim
    a_position = 2.0 * model.n_heads * width
    layers = _attending(model)
    if model.kind == "encoder-decoder":
        # The encoder sees all; so does the decoder across; its own past is half on average.
        seen = layers * seq + model.decoder_layers * (seq + _causal(seq, 0))
        return a_position * seen
    if not model.sliding_window:
        return a_position * layers * (_causal(seq, 0) if model.kind == "decoder" else seq)
    full = min(model.full_attention_layers, layers)
    if model.kind == "decoder":
        narrow, wide = _causal(seq, model.sliding_window), _causal(seq, 0)
    else:
        narrow, wide = float(min(seq, model.sliding_window)), float(seq)
    return a_position * (full * wide + (layers - full) * narrow)


def _causal(seq: int, window: int) -> float:
    """Positions that a token sees on average, itself among them."""
    if not window or seq <= window:
        return (seq + 1) / 2
    return (window * (window + 1) / 2 + (seq - window) * window) / seq
