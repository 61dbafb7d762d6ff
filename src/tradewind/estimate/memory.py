"""How much memory training takes on the fullest device, by item. Pure, and vectorised over cases.

    weights, gradients, optimizer   bytes a parameter, divided by what is sharded
    activations                     bytes a token and layer, times the micro-batches in flight
    logits                          bytes a token and word of the vocabulary
    gathered                        sharded weights, whole while they are used
    buffers                         of collectives
    context                         the driver's context and libraries
    fragmentation                   what the allocator holds and cannot use

With pipeline parallelism two stages compete: the first holds the most micro-batches, the last the
logits. The items are those of the stage that needs more, and `peak` is their sum.
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
GIB = 2.0**30  # what makers of accelerators call a GB of memory


@dataclass(slots=True)
class MemoryUse:
    """Bytes on the fullest device."""

    peak: Column
    weights: Column
    gradients: Column
    optimizer: Column
    activations: Column
    logits: Column
    gathered: Column
    buffers: Column
    context: Column
    fragmentation: Column

    def allocated(self) -> Column:
        """What a framework's allocator reports: tensors only."""
        return self.peak - self.context - self.fragmentation - self.buffers


def memory_use(cases: Cases, constants: Constants, *, first_stage: bool = False) -> MemoryUse:
    """Of the fullest device; or of the first, whose log is the one that is read."""
    import numpy as np

    c, k = cases, constants
    fused, moe, piped = c.fused > 0, c.experts > 0, c.pp > 1
    tokens = c.micro_batch * c.sequence / c.cp

    # -- bytes a parameter. Sharding also spreads over context-parallel devices.
    spread = np.where(c.zero >= 1, np.maximum(c.shard, 1) * c.cp, 1)
    whole, sharded = c.zero < 3, c.zero >= 3
    # Sharded weights are their own 32-bit copy: the 16-bit one exists only while a layer runs.
    own = sharded & (c.weight_bytes == 2) & (c.trained == 1) & (c.optimizer_bytes >= 12)
    weight = np.where(own, 4, c.weight_bytes + np.where(c.fp8 > 0, k["fp8_copy_bytes"], 0) * whole)
    each = np.where(fused, k["fused_gradient_bytes"], k["eager_gradient_bytes"])
    each = np.where(sharded, k["sharded_gradient_bytes"], each)
    # Where nothing is kept in 32 bits, gradients are not either; the leanest keep none.
    lean = (c.weight_bytes <= 2) & (c.optimizer_bytes < 12)
    each = np.where(lean, np.minimum(c.optimizer_bytes, 2), each)
    share = np.where(c.trained > 0, c.trained, 1)
    gradient = each * share
    states = np.maximum(c.optimizer_bytes - np.where(own, 4, 0), 0) * share
    by_weight, by_gradient = np.where(sharded, spread, 1), np.where(c.zero >= 2, spread, 1)
    parts = Weights(c)
    layer, embedding = parts.layer / c.tp, parts.embedding / c.tp
    # Experts already lie on different devices, so fewer of them share each.
    apart = np.where(moe & (c.ep > 1), _expert_share(c, parts), 0)
    again = 1 + apart * (np.minimum(c.ep, spread) - 1)
    state = (
        weight / np.where(sharded, spread / again, 1)
        + gradient / np.where(c.zero >= 2, spread / again, 1)
        + states * again / spread
    )

    # -- what a token leaves behind in a layer
    width = np.where(fused, k["fused_width_bytes"], k["eager_width_bytes"]) * c.d_model
    # Without sequence parallelism norms and residuals are whole on every device.
    old = (c.stack == "megatron-preFA") & (c.tp > 1)
    unsplit = np.where(fused, 0, k["eager_whole_bytes"]) * c.d_model
    heads = 2 * (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim
    gated = np.where(fused, k["fused_gated_bytes"], k["eager_gated_bytes"])
    inner = np.where(c.gated > 0, gated, k["plain_bytes"]) * (
        c.d_ff + c.d_ff_expert * c.experts_per_token + c.d_ff_shared
    )
    # Each expert gets a copy of its tokens, and returns one.
    sent = np.where(moe, 4 * c.experts_per_token * c.d_model, 0)
    scores = np.where(c.flash > 0, 0, k["score_bytes"] * c.n_heads * c.sequence)
    outside = np.where(old, 1, c.tp)
    full = width / outside + unsplit + (heads + inner + sent + scores) / c.tp
    quantised = c.weight_bytes < 1
    full = np.where(quantised, k["quantised_factor"], 1) * full
    light = np.where(c.flash > 0, k["selective_share"] * full, full - scores / c.tp)
    kept = np.select([c.recompute == 2, c.recompute == 1], [2 * c.d_model / outside, light], full)

    # -- the stages that compete
    head = np.where(_balanced(c), _head(c), 0)
    most = (c.layers + head) / c.pp
    first_layers = np.minimum(most, c.layers)
    last_layers = np.where(piped, np.maximum(most - head, 0), c.layers)
    flight = np.minimum(c.accumulation, c.pp * (1 + (c.pp - 1) / (c.pp * c.vp) * (c.vp > 1)))
    layer_tokens = kept * tokens
    unfused = k["eager_logit_bytes"] + np.where(c.accumulation > 1, k["kept_logit_bytes"], 0)
    logits = np.where(fused, k["fused_logit_bytes"], unfused) * tokens * c.vocab / c.tp
    once = full * tokens  # a layer, whole, while it is recomputed or goes back
    loss = np.maximum(logits, once)
    waiting = np.where(piped & ~fused, k["waiting_layers"], 0)
    at_first = layer_tokens * flight * (first_layers + waiting)
    first = layer * state * first_layers + at_first + once
    last = (layer * state + layer_tokens) * last_layers + loss
    late = ~piped if first_stage else ~piped | (last > first)
    layers = np.where(late, last_layers, first_layers)
    by_loss = late & (logits > once)
    activations = np.where(late, layer_tokens * layers, at_first) + np.where(by_loss, 0, once)
    logits = np.where(by_loss, logits, 0)
    tables = np.where(piped | (c.tied > 0), 1, 2) * embedding

    # -- the model's state, and the rest
    held = layer * layers * again + tables
    full_held = layer * layers + tables
    weights = weight * np.where(sharded, held, full_held) / by_weight
    weights = weights + np.where(quantised, 2 - weight, 0) * tables / by_weight  # not the tables
    gradients = gradient * np.where(c.zero >= 2, held, full_held) / by_gradient
    optimizer = states * held / spread
    gathered = np.where(sharded, 2 * (3 * layer + tables), 0)
    buffers = np.where(c.devices > 1, k["buffer_gb"] * GB, 0)
    context = np.full(len(c), k["context_gb"] * GB)
    fragmentation = (k["fragmentation"] - 1) * (activations + logits + gathered)
    peak = weights + gradients + optimizer + activations + logits
    peak = peak + gathered + buffers + context + fragmentation
    return MemoryUse(
        peak=peak,
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        logits=logits,
        gathered=gathered,
        buffers=buffers,
        context=context,
        fragmentation=fragmentation,
    )


def fit_probability(cases: Cases, use: MemoryUse, constants: Constants) -> Column:
    """How likely it runs: by how far the peak lies from what can be filled, on a log scale."""
    import numpy as np

    # A logistic curve with the standard deviation `peak_spread`.
    scale = constants["peak_spread"] * np.sqrt(3) / np.pi
    off = np.log(use.peak / usable(cases, constants)) / scale
    found: Column = np.where(possible(cases), 1 / (1 + np.exp(np.clip(off, -50, 50))), 0)
    return found


def fits(cases: Cases, use: MemoryUse, constants: Constants) -> Flags:
    """Whether it more likely runs than not: the memory suffices, and it can be laid out."""
    found: Flags = (use.peak <= usable(cases, constants)) & possible(cases)
    return found


def usable(cases: Cases, constants: Constants) -> Column:
    """Bytes that can be filled before training fails."""
    found: Column = cases.memory_gb * (GIB * constants["usable_memory"])
    return found


def possible(cases: Cases) -> Flags:
    """Whether every pipeline stage gets a layer, and the pipeline can be filled.

    Where stages are balanced by work and the vocabulary weighs as much as several layers, it takes
    the place of those layers, and so many stages stay empty. One is harmless. Such a pipeline also
    refuses to start with fewer micro-batches than there are stages after the first.
    """
    c = cases
    head = _head(c)
    crowded = (c.pp * head > 2.5 * (c.layers + head)) | (c.accumulation < c.pp - 1)
    found: Flags = (c.pp <= c.layers) & ~(_balanced(c) & crowded)
    return found


def _expert_share(c: Cases, parts: Weights) -> Column:
    """Of a layer's weights on a device, those of experts that are spread over devices."""
    import numpy as np

    matrices = np.where(c.gated > 0, 3, 2)
    held = c.d_model * c.d_ff_expert * matrices * c.experts / c.ep
    found: Column = held / np.maximum(parts.layer, 1)
    return found


def _balanced(c: Cases) -> Flags:
    """Whether the stages of a pipeline are cut by work; Megatron cuts them by layers."""
    found: Flags = (c.stack == "nanotron") & (c.pp > 1)
    return found


def _head(c: Cases) -> Column:
    """The work of the vocabulary, in layers."""
    import numpy as np

    layer = c.d_model * (4 * c.d_model + np.where(c.gated > 0, 3, 2) * c.d_ff)
    found: Column = c.vocab * c.d_model / np.maximum(layer, 1)
    return found
