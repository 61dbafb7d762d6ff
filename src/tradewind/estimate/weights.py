"""Weights of a transformer's layer, by part: what is used for a token, and what is held. Pure."""

from __future__ import annotations

from tradewind.estimate.cases import Cases


class Weights:
    """Numbers of weights, before tensor parallelism divides them."""

    def __init__(self, c: Cases) -> None:
        import numpy as np

        matrices = np.where(c.gated > 0, 3, 2)
        by_heads = c.d_model * c.head_dim * (2 * c.n_heads + 2 * c.n_kv_heads)
        self.attention = np.where(c.mixing > 0, c.mixing, by_heads)
        self.dense = c.d_model * c.d_ff * matrices
        expert = c.d_model * c.d_ff_expert * matrices
        shared = c.d_model * c.d_ff_shared * matrices
        self.experts_used = expert * c.experts_per_token + shared
        self.experts_held = expert * c.experts / c.ep
        self.layer = self.attention + self.dense + self.experts_held + shared
        self.embedding = c.vocab * c.d_model
