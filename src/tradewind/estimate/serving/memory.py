"""What serving holds in memory, and how many sequences fit beside the weights. Pure.

weights       every parameter at the bytes of its format, spread over group and stages; with
              data-parallel attention each rank has all of the attention's
cache         keys and values of every position, in the bytes of its precision; a window bounds
              its layers; heads that are fewer than ranks are held by several
activations   of the largest step: a few values of the width for each token, and its logits
beside        adapters in 16 bits, and the weights of a model that guesses tokens
engine        context, libraries, graphs and buffers of collectives
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Cases, Column

CONTEXT_BYTES = 1.2e9  # driver, libraries, captured graphs
BUFFER_BYTES = 0.5e9  # of collectives, where there is more than one rank
ADAPTER_BYTES = 2.0  # a value; adapters are kept in 16 bits beside weights of any format
_ACTIVATION_VALUES = 12  # of the width that live at once for each token of a step
_STEP_TOKENS = 8192
_LOGIT_ROWS = 256  # sequences whose logits are there at once, in 32 bits


class Memory(NamedTuple):
    """Bytes on the fullest accelerator, without the cache; and what a sequence adds."""

    weights: Column
    activations: Column
    engine: Column
    cache_per_token: Column  # of one more position of one sequence, on that accelerator
    room: Column  # for the cache
    adapters: Column
    draft: Column

    @property
    def fixed(self) -> Column:
        return self.weights + self.activations + self.engine + self.adapters + self.draft


def cache_ranks(cases: Cases) -> Column:
    """Ranks of a group over which one sequence's cache, or a batch's, is really divided."""
    import numpy as np

    by_heads = np.minimum(cases.group, np.maximum(cases.kv_heads, 1))
    found: Column = np.where(cases.spread_attention > 0, cases.group, by_heads)
    return found


def weight_bytes(cases: Cases) -> Column:
    """On one accelerator."""
    import numpy as np

    own = np.where(cases.spread_attention > 0, cases.attention_params, 0.0)
    divided = (cases.params - own) / (cases.group * cases.stages)
    found: Column = (divided + own / cases.stages) * cases.weight_bytes
    return found


def positions(cases: Cases, length: Column) -> Column:
    """Positions that the cache of a sequence holds, counted in layers without a window."""
    import numpy as np

    seen = np.where(cases.window > 0, np.minimum(length, cases.window), length)
    found: Column = (1 - cases.windowed) * length + cases.windowed * seen
    return found


def held(cases: Cases, usable: Column | float = 0.9) -> Memory:
    """`usable` is the share of the accelerator's memory that an engine lets itself have."""
    import numpy as np

    weights = weight_bytes(cases)
    tokens = np.minimum(_STEP_TOKENS, np.maximum(cases.input, 1) * np.maximum(cases.batch, 1))
    logits = 4.0 * _LOGIT_ROWS * cases.vocab / cases.group
    activations = 2.0 * _ACTIVATION_VALUES * cases.d_model * tokens + logits
    engine = CONTEXT_BYTES + np.where(cases.group * cases.stages > 1, BUFFER_BYTES, 0.0)
    engine = np.minimum(engine, 0.15 * cases.memory)  # small boards run small engines
    activations = np.minimum(activations, 0.15 * cases.memory)
    token = cases.kv_values * cases.kv_bytes / (cases.stages * cache_ranks(cases))
    ranks = cases.group * cases.stages
    adapters = cases.adapters * cases.adapter_params * ADAPTER_BYTES / ranks
    draft = cases.draft_params * cases.weight_bytes / ranks
    room = cases.memory * usable - weights - activations - engine - adapters - draft
    return Memory(weights, activations, engine, token, room, adapters, draft)


def sequences(cases: Cases, memory: Memory, length: Column) -> Column:
    """How many sequences of that length fit on a replica; below 1 where not even one does."""
    import numpy as np

    each = memory.cache_per_token * positions(cases, length)
    found: Column = np.maximum(memory.room, 0.0) / np.maximum(each, 1e-9)
    return found


def peak(cases: Cases, memory: Memory, batch: Column, length: Column) -> Column:
    """Bytes on the fullest accelerator with `batch` sequences of that length."""
    found: Column = memory.fixed + batch * memory.cache_per_token * positions(cases, length)
    return found
