"""What a model looks like to an estimate: transformers by their numbers, the rest by their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ShapeKind = Literal["decoder", "encoder", "encoder-decoder", "vision"]
Positions = Literal["rotary", "learned", "alibi", "relative", "none"]
Norm = Literal["layernorm", "rmsnorm"]
WorkKind = Literal["conv", "unet", "dit", "profile"]
Sample = Literal["image", "sample", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A transformer-like model. A number that a model does not use is nought.

    The fields describe what makes the work: matrices. Small things that differ from family to
    family (a bias on q, k and v alone, a norm more, a pooler) are one sum, `extra_params`, so that
    the count is exact without a field for each. It may be negative (norms without weights).
    """

    name: str
    kind: ShapeKind
    layers: int  # of the encoder, where there is a decoder too
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int  # of the layers without experts
    gated: bool  # three matrices in a feed-forward (SwiGLU, GeGLU) instead of two
    vocab: int
    tied: bool  # the output head is the token table, or there is none
    positions: Positions
    max_positions: int
    bias: bool  # on every matrix, and on the norms if they are layer norms
    norm: Norm

    experts: int = 0
    experts_per_token: int = 0
    d_ff_expert: int = 0  # nought: as wide as d_ff
    d_ff_shared: int = 0  # experts that every token visits, taken together
    dense_layers: int = 0  # layers without experts; nearly always the first

    # Multi-head latent attention (DeepSeek): q and kv go through a narrow waist.
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0

    sliding_window: int = 0
    full_attention_layers: int = 0  # layers that look beyond the window
    attention_layers: int = 0  # nought: every layer attends; hybrids attend in a few
    mixer_params: int = 0  # matrices that mix tokens without attention (Mamba), in all layers

    decoder_layers: int = 0
    patch: int = 0
    image: int = 0
    classes: int = 0
    parallel_block: bool = False  # attention and feed-forward side by side, under one norm
    qk_norm: bool = False  # a norm of head_dim on q and one on k
    extra_params: int = 0
    note: str = ""  # where this is not exactly the published model

    @property
    def latent(self) -> bool:
        return self.kv_lora_rank > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A model that is no plain transformer, by what one sample costs.

    Multiplications and additions both count as FLOPs. Bytes are those of bf16: `activation` is what
    a training step keeps for the backward pass without recompute, `moved` what one forward pass
    reads and writes. One sample is what `input` says.
    """

    name: str
    kind: WorkKind
    params: int
    forward_flops_per_sample: float
    activation_bytes_per_sample: float
    moved_bytes_per_sample: float
    sample: Sample
    input: str
    note: str = ""
