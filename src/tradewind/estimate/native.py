"""What a step of PyTorch itself holds, and when. Pure, vectorised, and nothing here is fitted.

Bytes are counted: `tradewind.torch.profiling.step` runs a step on fake tensors and adds up what is
alive, and on an H200 that is what `max_memory_allocated` says, to a thousandth. Where layers are
compiled, what they keep is what PyTorch's partitioner saves. That under autocast their gradients
are there twice while the step goes back, and in pure bf16 once, was measured (torch 2.11); of
training in 32 bits throughout, which was not, twice is taken.

`cast` is autocast over 32-bit weights: residuals and norms are in 32 bits, and each matrix has a
copy in 16 that lives until it has gone back. Otherwise everything is in 16 (or 32) bits alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tradewind.estimate.cases import Cases, Column, Flags

COPY = 2  # bytes of a weight's copy in 16 bits
# Bytes a token and layer: of each d_model value beside queries, keys, values and what attention
# returns; of each inner value of a gated layer, and of a plain one. Eager autocast casts a norm's
# output for each matrix that reads it, and q, k and v are one matrix or three: between the two.
_WIDTH_CAST = {"eager": 16, "compiled": 10}
_WIDTH = {"eager": 8, "compiled": 8}
_GATED = {"eager": 8, "compiled": 6}
_PLAIN = 4
# A logit going back: its logarithm and two gradients in 32 bits; compiled, itself and one in 16.
_LOGIT = {"eager": 12, "compiled": 4}
_FORWARD_LOGIT = 10  # eager, at the end of the forward pass


class Fullest(NamedTuple):
    """Bytes at the fullest moment."""

    gradients: Column
    copies: Column
    activations: Column
    logits: Column


def is_native(c: Cases) -> Flags:
    found: Flags = (c.stack == "fsdp-eager") | (c.stack == "fsdp-compile")
    return found


def width_bytes(compiled: Flags, cast: Flags) -> Column:
    import numpy as np

    found: Column = np.where(cast, _by(_WIDTH_CAST, compiled), _by(_WIDTH, compiled))
    return found


def inner_bytes(gated: Flags, compiled: Flags) -> Column:
    import numpy as np

    found: Column = np.where(gated, _by(_GATED, compiled), _PLAIN)
    return found


def logit_bytes(compiled: Flags) -> Column:
    return _by(_LOGIT, compiled)


def _by(table: dict[str, int], compiled: Flags) -> Column:
    import numpy as np

    found: Column = np.where(compiled, table["compiled"], table["eager"])
    return found


def fullest(
    c: Cases,
    *,
    cast: Flags,
    sharded: Flags,
    layer: Column,
    embedding: Column,
    tokens: Column,
    gradient: Column,
    kept: Column,
    once: Column,
    logits: Column,
    work: Column,
) -> Fullest:
    """Of a model that is not in a pipeline. `layer` and `embedding` are numbers of weights on the
    device, `gradient` bytes of each; `kept` and `once` bytes of a layer until it goes back, and
    while it does; `work` what the samples of a model without a shape leave behind."""
    import numpy as np

    compiled, again, tied = c.fused > 0, c.recompute == 2, c.tied > 0
    nothing = np.zeros(len(c))
    stack, others = c.layers * layer, np.maximum(c.layers - 1, 0)
    whole = stack + np.where(tied, 1, 2) * embedding + c.work_params
    copy = np.where(cast, COPY, 0)  # not of the embedding, which is looked up
    residual = np.where(cast, 4, c.value_bytes) * c.d_model * tokens * (c.layers > 0)
    narrow = c.value_bytes * c.d_model * tokens * (c.layers > 0)
    # Gradients of the micro-batch before are there from the start.
    early = np.where(c.accumulation > 1, gradient * whole, 0)
    # Autocast keeps all copies until the forward pass ends, even of layers to be computed again.
    sooner = (_LOGIT["eager"] - _FORWARD_LOGIT) * tokens * c.vocab / c.tp
    lingering = np.where(compiled, 0, np.maximum(copy * stack - sooner, 0))
    at_loss = Fullest(
        gradients=early,
        copies=copy * (embedding + c.work_params) + np.where(again, lingering, copy * stack),
        activations=c.layers * kept + residual + narrow + work,
        logits=logits,
    )
    # While a layer goes back: gradients of its values, and of its largest matrix, that one first in
    # 16 bits; a moment later there is one gradient more of its inner values, and a copy less of
    # both the matrix and its gradient. Compiled, each takes the place of what it came from.
    wide = np.maximum(c.d_ff, c.d_ff_expert) / c.tp
    largest, inner = c.d_model * wide, c.value_bytes * wide * tokens
    passing = residual + narrow + inner + np.maximum(inner - 2 * copy * largest, 0)
    passing = np.where(compiled, 0, passing)
    matrix = np.where(compiled, 0, (gradient + copy) * largest)
    in_last = Fullest(
        gradients=np.maximum(early, gradient * embedding) + matrix,
        copies=copy * np.where(again, layer, stack),
        activations=others * kept + once + passing,
        logits=nothing,
    )
    wide_gradients = cast | (c.value_bytes > COPY)
    twice = np.where(compiled & wide_gradients & ~sharded, gradient * stack, 0)
    here = np.where(compiled, c.layers, others) * layer
    in_first = Fullest(
        gradients=np.maximum(early, gradient * (embedding + here)) + matrix + twice,
        copies=copy * layer,
        activations=once + passing,
        logits=nothing,
    )
    # The table's gradient comes last; if it is the head's too, it is added to the one there is.
    at_end = Fullest(
        gradients=gradient * (whole + np.where(tied, embedding, 0)) + twice,
        copies=nothing,
        activations=residual,
        logits=nothing,
    )
    moments = (at_loss, in_last, in_first, at_end)
    sums = [m.gradients + m.copies + m.activations + m.logits for m in moments]
    which = np.argmax(sums, axis=0)
    return Fullest(*(np.choose(which, column) for column in zip(*moments, strict=True)))
