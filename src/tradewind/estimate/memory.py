"""How much memory training takes on the fullest device, by item. Pure, and vectorised over cases.

    weights, gradients, optimizer   bytes a parameter, divided by what is sharded
    activations                     bytes a token and layer, times the micro-batches in flight
    logits                          bytes a token and word of the vocabulary
    workspace                       gathered weights, buffers of collectives, the largest layer
    overhead                        the driver's context and libraries

With pipeline parallelism two stages compete: the first holds the most micro-batches, the last the
logits. `peak` is the larger, times the allocator's fragmentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants
from tradewind.estimate.weights import Weights

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column, Flags

GB = 1e9


@dataclass(slots=True)
class MemoryUse:
    """Bytes on the fullest device."""

    peak: Column
    weights: Column
    gradients: Column
    optimizer: Column
    activations: Column
    logits: Column
    workspace: Column
    overhead: Column


def memory_use(cases: Cases, constants: Constants) -> MemoryUse:
    import numpy as np

    c, k = cases, constants
    tokens = c.micro_batch * c.sequence / c.cp
    moe = c.experts > 0

    # -- the model's state
    parts = Weights(c)
    layer, embedding = parts.layer / c.tp, parts.embedding / c.tp
    held = layer * c.layers / c.pp
    tables = np.where(c.pp > 1, 1, np.where(c.tied > 0, 1, 2)) * embedding
    held = held + tables + c.work_params
    trained = np.where(c.trained > 0, c.trained, 1) * held
    # Experts are sharded only among those devices that hold the same ones.
    expert = parts.experts_held / c.tp * c.layers / c.pp
    share = (held - expert) / c.shard + expert / np.maximum(c.shard / c.ep, 1)
    share = share / np.maximum(held, 1)
    # Sharded weights are their own 32-bit copy: the 16-bit one exists only while a layer runs.
    own = (c.zero >= 3) & (c.weight_bytes == 2) & (c.trained == 1)
    weights = held * np.where(own, 4, c.weight_bytes) * np.where(c.zero >= 3, share, 1)
    each = np.where(c.fused > 0, k["fused_gradient_bytes"], k["eager_gradient_bytes"])
    each = np.where(c.zero >= 3, k["sharded_gradient_bytes"], each)
    each = np.where(c.value_bytes > 2, 4, each)
    gradients = trained * each * np.where(c.zero >= 2, share, 1)
    optimizer = trained * np.maximum(c.optimizer_bytes - np.where(own, 4, 0), 0)
    optimizer = optimizer * np.where(c.zero >= 1, share, 1)

    # -- what a token leaves behind in a layer
    fused = c.fused > 0
    # Eager gated blocks keep casts of their inputs that plain ones do not.
    lean = fused | (c.gated == 0)
    width = np.where(lean, k["fused_width_bytes"], k["eager_width_bytes"]) * c.d_model
    heads = 2 * (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim
    inner = np.where(moe, c.d_ff_expert * c.experts_per_token + c.d_ff_shared, c.d_ff) * np.where(
        c.gated > 0,
        np.where(fused, k["fused_gated_bytes"], k["eager_gated_bytes"]),
        k["plain_bytes"],
    )
    scores = np.where(c.flash > 0, 0, k["score_bytes"] * c.n_heads * c.sequence)
    # Without sequence parallelism the norms and residuals are held whole on every device.
    outside = np.where((c.tp > 1) & (c.stack == "megatron-preFA"), 1, c.tp)
    full = width / outside + (heads + inner + scores) / c.tp
    light = np.where(c.flash > 0, k["selective_share"] * full, full - scores / c.tp)
    kept = np.select([c.recompute == 2, c.recompute == 1], [2 * c.d_model / outside, light], full)
    stage = c.layers / c.pp
    flight = np.minimum(c.accumulation, c.pp * (1 + (c.pp - 1) / (c.pp * c.vp) * (c.vp > 1)))
    once = np.where(c.recompute == 2, full * tokens, 0)
    first = kept * tokens * stage * flight
    last = kept * tokens * stage
    logits = k["logit_bytes"] * tokens * c.vocab / c.tp
    late = np.where(c.pp > 1, last + logits > first, True)
    part = np.select([c.recompute == 2, c.recompute == 1], [0.15, 0.5], 1.0)
    activations = np.where(late, last, first) + once + c.micro_batch * part * c.work_kept
    activations = activations * c.value_bytes / 2
    logits = np.where(late, logits, 0)

    # -- the rest
    # A model without a shape is sharded in some ten pieces.
    gathered = 2 * 2 * layer + 2 * embedding + 2 * 2 * c.work_params / 10
    gathered = np.where(c.zero >= 3, gathered, 0)
    buffers = np.where(c.devices > 1, k["buffer_gb"] * GB, 0)
    workspace = gathered + buffers
    overhead = np.full(len(c), k["context_gb"] * GB)
    total = weights + gradients + optimizer + activations + logits + workspace
    return MemoryUse(
        peak=total * k["fragmentation"] + overhead,
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        logits=logits,
        workspace=workspace,
        overhead=overhead + total * (k["fragmentation"] - 1),
    )


def fits(cases: Cases, use: MemoryUse, constants: Constants) -> Flags:
    """Whether it runs: the memory suffices, and the layout can be laid out."""
    found: Flags = (use.peak <= cases.memory_gb * GB * constants["usable_memory"]) & possible(cases)
    return found


def possible(cases: Cases) -> Flags:
    """Whether every pipeline stage gets a layer.

    Stages are balanced by work. Where the vocabulary weighs as much as several layers, its stages
    take their share, and as many stages as layers leave some of them empty.
    """
    import numpy as np

    c = cases
    layer = c.d_model * (4 * c.d_model + np.where(c.gated > 0, 3, 2) * c.d_ff)
    heavy = c.vocab * c.d_model > 3 * np.maximum(layer, 1)
    found: Flags = (c.pp <= np.maximum(c.layers, 1)) & ~((2 * c.pp > c.layers) & (c.pp > 1) & heavy)
    return found
