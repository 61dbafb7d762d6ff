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
from typing import TYPE_CHECKING, NamedTuple

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


class _How(NamedTuple):
    """How it is trained, as far as bytes depend on it."""

    fused: Flags
    piped: Flags
    old: Flags
    """Megatron before FlashAttention: without sequence parallelism, and its loss is not fused."""
    xla: Flags
    torch: Flags
    """PyTorch itself, whose bytes are counted (`native.py`)."""
    spread: Column
    """Over how many devices the optimizer's states are sharded."""
    sharded: Flags
    """Weights too."""
    mixed: Flags
    own: Flags
    """The weight is its own 32-bit copy, the 16-bit one being there only while it is used:
    PyTorch's mixed precision, and sharded weights."""
    cast: Flags
    """Matrices in 16 bits are copies, and the residuals in 32."""


class _Model(NamedTuple):
    """Numbers of weights on a device before they are sharded, and bytes of each."""

    layer: Column
    alike: Column
    """A layer as if experts were sharded as the rest."""
    embedding: Column
    tables: Column
    weight: Column
    """Its bytes before it is sharded; those below are what is left."""
    weights: Column
    gradients: Column
    optimizer: Column


class _Stage(NamedTuple):
    """The one of those that compete which needs more."""

    layers: Column
    activations: Column
    logits: Column
    tokens: Column
    """Of a micro-batch."""
    kept: Column
    """Bytes of a layer until it goes back."""
    once: Column
    """And while it does."""
    whole_logits: Column
    work: Column


def memory_use(cases: Cases, constants: Constants, *, first_stage: bool = False) -> MemoryUse:
    """Of the fullest device; or of the first, whose log is the one that is read."""
    import numpy as np

    c, k = cases, constants
    how = _how(c)
    model = _model(c, k, how)
    stage = _stage(c, k, how, model, first_stage)
    weights, gradients, optimizer, copies = _state(c, how, model, stage.layers)
    activations, logits = stage.activations, stage.logits
    if (at_once := how.torch & ~how.piped).any():
        found = native.fullest(
            c, cast=how.cast, sharded=how.sharded,
            layer=np.where(c.zero >= 2, model.alike, model.layer), embedding=model.embedding,
            tokens=stage.tokens, gradient=model.gradients, kept=stage.kept, once=stage.once,
            logits=stage.whole_logits, work=stage.work,
        )  # fmt: skip
        gradients = np.where(at_once, found.gradients, gradients)
        copies = np.where(at_once, found.copies, copies)
        activations = np.where(at_once, found.activations, activations)
        logits = np.where(at_once, found.logits, logits)
    gathered = _gathered(c, how, model)
    buffers = np.where(how.xla | (c.devices <= 1), 0, k["buffer_gb"] * GIB)
    context = np.where(how.xla, k["xla_context_gb"] * GIB, k["context_gb"] * GIB)
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


def _how(c: Cases) -> _How:
    import numpy as np

    # Sharding also spreads over context-parallel devices; over one device it does nothing.
    spread = np.where(c.zero >= 1, np.maximum(c.shard, 1) * c.cp, 1)
    sharded = (c.zero >= 3) & (spread > 1)
    torch = native.is_native(c)
    mixed = (c.weight_bytes == 2) & (c.mixed > 0)
    own = (sharded | torch) & mixed & (c.trained == 1)
    return _How(
        fused=c.fused > 0,
        piped=c.pp > 1,
        old=c.stack == "megatron-preFA",
        xla=(c.stack == "xla-tpu") | (c.stack == "xla-gpu"),
        torch=torch,
        spread=spread,
        sharded=sharded,
        mixed=mixed,
        own=own,
        cast=own & ~sharded & torch,
    )


def _model(c: Cases, k: Constants, how: _How) -> _Model:
    import numpy as np

    parts = Weights(c)
    layer, embedding = parts.layer / c.tp, parts.embedding / c.tp
    tables = np.where(how.piped | (c.tied > 0), 1, 2) * embedding
    weight, gradient, states = _bytes_a_weight(c, k, how)
    return _Model(
        layer=layer,
        alike=layer * _apart(c, parts, how.spread),
        embedding=embedding,
        tables=tables + c.work_params,
        weight=weight,
        weights=weight / np.where(how.sharded, how.spread, 1),
        gradients=gradient / np.where(c.zero >= 2, how.spread, 1),
        optimizer=states / how.spread,
    )


def _stage(c: Cases, k: Constants, how: _How, model: _Model, first_stage: bool) -> _Stage:
    """The first has the most micro-batches, the last the logits."""
    import numpy as np

    tokens = c.micro_batch * c.sequence / c.cp
    full, kept = _bytes_a_token(c, k, how)
    tokens_bytes = tokens * c.value_bytes / 2
    kept, once = kept * tokens_bytes, full * tokens_bytes  # whole while it is computed again
    whole_logits = _bytes_a_logit(c, k, how) * tokens * c.vocab / c.tp
    work = _of_work(c) * c.value_bytes / 2
    first_layers, last_layers, waiting = _stages(c, k, how)
    flight = np.minimum(c.accumulation, c.pp + np.where(c.vp > 1, (c.pp - 1) / c.vp, 0))
    at_first = kept * flight * (first_layers + waiting)
    at_last = kept * last_layers
    if first_stage:
        late = ~how.piped
    else:
        each = model.alike * (model.weights + model.gradients + model.optimizer)
        more = at_last - at_first + np.maximum(whole_logits - once, 0)
        late = ~how.piped | (more > each * (first_layers - last_layers))
    by_loss = late & (whole_logits > once)
    return _Stage(
        layers=np.where(late, last_layers, first_layers),
        activations=np.where(late, at_last, at_first) + np.where(by_loss, 0, once) + work,
        logits=np.where(by_loss, whole_logits, 0),
        tokens=tokens,
        kept=kept,
        once=once,
        whole_logits=whole_logits,
        work=work,
    )


def _state(
    c: Cases, how: _How, model: _Model, layers: Column
) -> tuple[Column, Column, Column, Column]:
    """Weights, gradients, the optimizer's states, and copies of weights."""
    import numpy as np

    held, alike = model.layer * layers + model.tables, model.alike * layers + model.tables
    weights = model.weights * np.where(how.sharded, alike, held)
    quantised = c.weight_bytes < 1
    if quantised.any():  # but not the tables
        by_three = np.where(how.sharded, how.spread, 1)
        weights = weights + np.where(quantised, 2 - model.weight, 0) * model.tables / by_three
    gradients = model.gradients * np.where(c.zero >= 2, alike, held)
    return weights, gradients, model.optimizer * alike, np.where(how.cast, native.COPY, 0) * held


def _gathered(c: Cases, how: _How, model: _Model) -> Column:
    import numpy as np

    # Two layers in 16 bits and the gradient of one; XLA gathers one at a time.
    three = 3 * model.layer + model.tables - c.work_params
    pieces = np.where(how.xla, model.layer + model.embedding, three)
    # A model without a shape is sharded in some ten pieces.
    found: Column = np.where(how.sharded, pieces + 2 * c.work_params / 10, 0) * c.value_bytes
    return found


def _bytes_a_weight(c: Cases, k: Constants, how: _How) -> tuple[Column, Column, Column]:
    """Of the weight, its gradient and its optimizer's states, before they are sharded."""
    import numpy as np

    weight = np.where(how.own, 4, c.weight_bytes)
    eight = (c.fp8 > 0) & ~how.sharded
    if eight.any():
        weight = weight + np.where(eight, k["fp8_copy_bytes"], 0)
    gradient = np.where(how.fused, k["fused_gradient_bytes"], k["eager_gradient_bytes"])
    gradient = np.where(how.sharded, k["sharded_gradient_bytes"], gradient)
    gradient = np.where(how.torch, 4, gradient)
    if not how.mixed.all():
        # What is trained at one precision needs no second gradient; the leanest keep none.
        plain = np.maximum(c.weight_bytes, 2)
        plain = np.where(c.optimizer_bytes < 1, np.minimum(plain, c.optimizer_bytes), plain)
        gradient = np.where(how.mixed, gradient, plain)
    states = np.maximum(c.optimizer_bytes - 4 * how.own, 0)
    share = np.where(c.trained > 0, c.trained, 1)
    return weight, gradient * share, states * share


def _bytes_a_token(c: Cases, k: Constants, how: _How) -> tuple[Column, Column]:
    """What a token leaves behind in a layer: all of it, and what is kept until it goes back."""
    import numpy as np

    fused, torch = how.fused, how.torch
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
    width = np.where(torch, native.width_bytes(fused, how.cast), width) * c.d_model
    whole = np.where(fused | torch, 0, k["eager_whole_bytes"]) * c.d_model
    # Without sequence parallelism norms and residuals are whole on every device.
    outside = np.where(how.old, 1, c.tp)
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
    kept = np.where(c.recompute == 2, np.where(how.cast, 4, 2) * c.d_model / outside, full)
    return full, np.where(c.recompute == 1, light, kept)


def _bytes_a_logit(c: Cases, k: Constants, how: _How) -> Column:
    """An eager loss holds 16-bit logits, 32-bit ones, their softmax and their gradients, of which
    nanotron's overwrites some; and the last micro-batch's, until the next one's are made."""
    import numpy as np

    fused = how.fused & ~how.old
    each = np.where(c.stack == "nanotron", k["sharded_logit_bytes"], k["eager_logit_bytes"])
    each = each + np.where(c.accumulation > 1, k["kept_logit_bytes"], 0) * (c.fused == 0)
    each = np.where(fused, k["fused_logit_bytes"], each)
    found: Column = np.where(how.torch, native.logit_bytes(fused), each)
    return found


def _of_work(c: Cases) -> Column:
    """What the samples of a model without a shape leave behind."""
    import numpy as np

    part = np.select([c.recompute == 2, c.recompute == 1], [0.15, 0.5], 1.0)
    found: Column = c.micro_batch * (part * c.work_kept + c.work_passing)
    return found


def _stages(c: Cases, k: Constants, how: _How) -> tuple[Column, Column, Column | float]:
    """Layers on the first and on the last stage; and what more, in layers, a micro-batch keeps."""
    import numpy as np

    even = c.layers / c.pp
    waiting = np.where(how.piped & ~how.fused, k["waiting_layers"], 0)
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
