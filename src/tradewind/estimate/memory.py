"""How much memory training takes on the fullest device, by item. Pure, and vectorised over cases.

    weights, gradients, optimizer   bytes a parameter, divided by what is sharded
    copies                          16-bit copies of 32-bit weights, until they have gone back
    activations                     bytes a token and layer, times the micro-batches in flight
    logits                          bytes a token and word of the vocabulary
    gathered                        sharded weights, whole while they are used
    buffers                         of collectives
    context                         the driver's context and libraries
    fragmentation                   what the allocator holds and cannot use

A step of PyTorch itself is fullest at one of three moments: at the loss, in the last layer going
back, or in the first, when all gradients are there. Its bytes are counted and not fitted
(`native.py`); other software's are constants, and its gradients lie ready from the start. The items
are those of the fullest moment, and `peak` is their sum.

With pipeline parallelism two stages compete: the first holds the most micro-batches, the last the
logits. The items are those of the stage that needs more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.estimate import native
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants
from tradewind.estimate.weights import Weights

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column, Flags

GB = 1e9  # what is printed
GIB = 2.0**30  # what a maker of accelerators means by a gigabyte, and most tools that report peaks


@dataclass(slots=True)
class MemoryUse:
    """Bytes on the fullest device."""

    peak: Column
    weights: Column
    copies: Column
    gradients: Column
    optimizer: Column
    activations: Column
    logits: Column
    gathered: Column
    buffers: Column
    context: Column
    fragmentation: Column

    def allocated(self) -> Column:
        """What a framework's allocator reports as allocated: tensors only."""
        return self.peak - self.context - self.fragmentation - self.buffers

    def reserved(self) -> Column:
        """What the allocator took from the driver: tensors, and what lies unused between them."""
        return self.allocated() + self.fragmentation


def memory_use(cases: Cases, constants: Constants, *, first_stage: bool = False) -> MemoryUse:
    """Of the fullest device; or of the first, whose log is the one that is read."""
    import numpy as np

    c, k = cases, constants
    fused, piped = c.fused > 0, c.pp > 1
    # Sharding also spreads over context-parallel devices; over one device it does nothing.
    spread = np.where(c.zero >= 1, np.maximum(c.shard, 1) * c.cp, 1)
    sharded = (c.zero >= 3) & (spread > 1)
    old = c.stack == "megatron-preFA"
    xla = (c.stack == "xla-tpu") | (c.stack == "xla-gpu")
    torch = native.is_native(c)
    tokens = c.micro_batch * c.sequence / c.cp
    parts = Weights(c)
    layer, embedding = parts.layer / c.tp, parts.embedding / c.tp
    weight, gradient, states, own = _bytes_a_weight(c, k, fused, sharded, torch)
    cast = own & ~sharded & torch  # matrices in 16 bits are copies, and the residuals in 32
    alike = layer * _apart(c, parts, spread)  # as if experts were sharded as the rest
    by_two = np.where(c.zero >= 2, spread, 1)
    by_three = np.where(sharded, spread, 1)
    of_weights, of_gradients = weight / by_three, gradient / by_two
    of_optimizer = states / spread

    # -- the stages that compete: the first has the most micro-batches, the last the logits
    full, kept = _bytes_a_token(c, k, fused, old, torch, cast)
    tokens_bytes = tokens * c.value_bytes / 2
    kept, once = kept * tokens_bytes, full * tokens_bytes  # whole while it is computed again
    whole_logits = _bytes_a_logit(c, k, fused & ~old, torch) * tokens * c.vocab / c.tp
    work = _of_work(c) * c.value_bytes / 2
    first_layers, last_layers, waiting = _stages(c, k, fused, piped)
    flight = np.minimum(c.accumulation, c.pp + np.where(c.vp > 1, (c.pp - 1) / c.vp, 0))
    at_first = kept * flight * (first_layers + waiting)
    at_last = kept * last_layers
    if first_stage:
        late = ~piped
    else:
        each = alike * (of_weights + of_gradients + of_optimizer)
        more = at_last - at_first + np.maximum(whole_logits - once, 0)
        late = ~piped | (more > each * (first_layers - last_layers))
    layers = np.where(late, last_layers, first_layers)
    by_loss = late & (whole_logits > once)
    activations = np.where(late, at_last, at_first) + np.where(by_loss, 0, once) + work
    logits = np.where(by_loss, whole_logits, 0)

    # -- the model's state
    tables = np.where(piped | (c.tied > 0), 1, 2) * embedding
    tables = tables + c.work_params
    held, held_alike = layer * layers + tables, alike * layers + tables
    weights = of_weights * np.where(sharded, held_alike, held)
    quantised = c.weight_bytes < 1
    if quantised.any():  # but not the tables
        weights = weights + np.where(quantised, 2 - weight, 0) * tables / by_three
    gradients = of_gradients * np.where(c.zero >= 2, held_alike, held)
    optimizer = of_optimizer * held_alike
    copies = np.where(cast, native.COPY, 0) * held
    if (at_once := torch & ~piped).any():
        found = native.fullest(
            c, cast=cast, sharded=sharded, layer=np.where(c.zero >= 2, alike, layer),
            embedding=embedding, tokens=tokens, gradient=of_gradients, kept=kept, once=once,
            logits=whole_logits, work=work,
        )  # fmt: skip
        gradients = np.where(at_once, found.gradients, gradients)
        copies = np.where(at_once, found.copies, copies)
        activations = np.where(at_once, found.activations, activations)
        logits = np.where(at_once, found.logits, logits)

    # -- the rest
    # Two layers in 16 bits and the gradient of one; XLA gathers one at a time.
    pieces = np.where(xla, layer + embedding, 3 * layer + tables - c.work_params)
    # A model without a shape is sharded in some ten pieces.
    gathered = np.where(sharded, pieces + 2 * c.work_params / 10, 0) * c.value_bytes
    buffers = np.where(xla | (c.devices <= 1), 0, k["buffer_gb"] * GIB)
    context = np.where(xla, k["xla_context_gb"] * GIB, k["context_gb"] * GIB)
    moving = copies + activations + logits + gathered
    fragmentation = (k["fragmentation"] - 1) * moving
    return MemoryUse(
        peak=weights + gradients + optimizer + moving + buffers + context + fragmentation,
        weights=weights,
        copies=copies,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        logits=logits,
        gathered=gathered,
        buffers=buffers,
        context=context,
        fragmentation=fragmentation,
    )


def _bytes_a_weight(
    c: Cases, k: Constants, fused: Flags, sharded: Flags, torch: Flags
) -> tuple[Column, Column, Column, Flags]:
    """Of the weight, its gradient and its optimizer's states, before they are sharded; and whether
    the weight is its own 32-bit copy, the 16-bit one being there only while it is used: PyTorch's
    mixed precision, and sharded weights."""
    import numpy as np

    mixed = (c.weight_bytes == 2) & (c.mixed > 0)
    own = (sharded | torch) & mixed & (c.trained == 1)
    weight = np.where(own, 4, c.weight_bytes)
    eight = (c.fp8 > 0) & ~sharded
    if eight.any():
        weight = weight + np.where(eight, k["fp8_copy_bytes"], 0)
    gradient = np.where(fused, k["fused_gradient_bytes"], k["eager_gradient_bytes"])
    gradient = np.where(sharded, k["sharded_gradient_bytes"], gradient)
    gradient = np.where(torch, 4, gradient)
    if not mixed.all():
        # What is trained at one precision needs no second gradient; the leanest keep none.
        plain = np.maximum(c.weight_bytes, 2)
        plain = np.where(c.optimizer_bytes < 1, np.minimum(plain, c.optimizer_bytes), plain)
        gradient = np.where(mixed, gradient, plain)
    states = np.maximum(c.optimizer_bytes - 4 * own, 0)
    share = np.where(c.trained > 0, c.trained, 1)
    return weight, gradient * share, states * share, own


def _bytes_a_token(
    c: Cases, k: Constants, fused: Flags, old: Flags, torch: Flags, cast: Flags
) -> tuple[Column, Column]:
    """What a token leaves behind in a layer: all of it, and what is kept until it goes back."""
    import numpy as np

    # Eager attention repeats keys and values for the heads that share them.
    others = np.where(torch & ~fused, c.n_heads, c.n_kv_heads)
    heads = 4 * (c.n_heads + others) * c.head_dim
    gated = np.where(fused, k["fused_gated_bytes"], k["eager_gated_bytes"])
    each = np.where(c.gated > 0, gated, k["plain_bytes"])
    each = np.where(torch, native.inner_bytes(c.gated > 0, fused), each)
    inner = each * (c.d_ff + c.d_ff_expert * c.experts_per_token + c.d_ff_shared)
    # Each expert gets a copy of its tokens, and returns one.
    within = heads + inner + 4 * c.experts_per_token * c.d_model
    width = np.where(fused, k["fused_width_bytes"], k["eager_width_bytes"])
    width = np.where(torch, native.width_bytes(fused, cast), width) * c.d_model
    whole = np.where(fused | torch, 0, k["eager_whole_bytes"]) * c.d_model
    # Without sequence parallelism norms and residuals are whole on every device.
    outside = np.where(old, 1, c.tp)
    full = width / outside + whole + within / c.tp
    # Megatron computes norms and activations again; PyTorch all but the dearest products.
    share = np.where(_megatron(c), k["megatron_selective_share"], k["selective_share"])
    light = share * full
    if (c.weight_bytes < 1).any():
        full = np.where(c.weight_bytes < 1, k["quantised_factor"], 1) * full
    if not (c.flash > 0).all():
        scores = np.where(c.flash > 0, 0, k["score_bytes"] / c.tp * c.n_heads * c.sequence)
        light = np.where(c.flash > 0, light, full)
        full = full + scores
    kept = np.where(c.recompute == 2, np.where(cast, 4, 2) * c.d_model / outside, full)
    return full, np.where(c.recompute == 1, light, kept)


def _bytes_a_logit(c: Cases, k: Constants, fused: Flags, torch: Flags) -> Column:
    """An eager loss holds 16-bit logits, 32-bit ones, their softmax and their gradients, of which
    nanotron's overwrites some; and the last micro-batch's, until the next one's are made."""
    import numpy as np

    each = np.where(c.stack == "nanotron", k["sharded_logit_bytes"], k["eager_logit_bytes"])
    each = each + np.where(c.accumulation > 1, k["kept_logit_bytes"], 0) * (c.fused == 0)
    each = np.where(fused, k["fused_logit_bytes"], each)
    found: Column = np.where(torch, native.logit_bytes(fused), each)
    return found


def _of_work(c: Cases) -> Column:
    """What the samples of a model without a shape leave behind."""
    import numpy as np

    part = np.select([c.recompute == 2, c.recompute == 1], [0.15, 0.5], 1.0)
    found: Column = c.micro_batch * (part * c.work_kept + c.work_passing)
    return found


def _stages(
    c: Cases, k: Constants, fused: Flags, piped: Flags
) -> tuple[Column, Column, Column | float]:
    """Layers on the first and on the last stage; and what more, in layers, a micro-batch keeps."""
    import numpy as np

    even = c.layers / c.pp
    waiting = np.where(piped & ~fused, k["waiting_layers"], 0)
    balanced = _balanced(c)
    if not balanced.any():
        return even, even, waiting
    head = np.where(balanced, _head(c), 0)
    most = even + head / c.pp
    return np.minimum(most, c.layers), np.maximum(most - head, 0), waiting


def _apart(c: Cases, parts: Weights, spread: Column) -> Column | float:
    """How much more of a layer a device holds when it is sharded, since its experts already lie on
    different devices, and fewer of those share each."""
    import numpy as np

    if not (c.ep > 1).any():
        return 1.0
    share = parts.experts_held / np.maximum(parts.layer, 1)
    found: Column = 1 + share * (np.minimum(c.ep, spread) - 1)
    return found


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
    import numpy as np

    c = cases
    head = _head(c)
    crowded = (c.pp * head > 2.5 * (c.layers + head)) | (c.accumulation < c.pp - 1)
    found: Flags = (c.pp <= np.maximum(c.layers, 1)) & ~(_balanced(c) & crowded)
    return found


def _megatron(c: Cases) -> Flags:
    found: Flags = (c.stack == "megatron") | (c.stack == "nanotron")
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
