"""How long one pass over the layers takes: the terms of a step. Pure.

weights     what the step reads of them: all, or the experts that its tokens meet
matrix      two FLOPs for each weight a token meets; hides in part behind the reading
cache       reading keys and values of every position looked at
attention   its arithmetic, which hides in part behind that
adapters    reading those that the batch chose, their products, and launching them
guesses     a draft's steps, and as many more tokens to check at once
exchange    two all-reduces a layer over a tensor-parallel group, or experts' all-to-alls
launch      of a layer, of a step, of each sequence
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tradewind.estimate.serving.memory import ADAPTER_BYTES, cache_ranks, positions

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Cases, Column

    Terms = Mapping[str, Column]

_EXCHANGES = 2  # a layer
_VALUE_BYTES = 2  # of what is exchanged


def touched(cases: Cases, tokens: Column) -> Column:
    """Share of the experts that `tokens` meet, each choosing its own."""
    import numpy as np

    each = np.clip(cases.top_k / np.maximum(cases.experts, 1), 0.0, 1 - 1e-9)
    found: Column = np.where(cases.experts > 1, -np.expm1(tokens * np.log1p(-each)), 1.0)
    return found


def matrices(cases: Cases, terms: Terms, tokens: Column, group: Column) -> Column:
    """Reading weights and multiplying by them, of one pass over `tokens`."""
    import numpy as np

    dense = cases.params - cases.expert_params - cases.table_params
    own = np.where(cases.spread_attention > 0, cases.attention_params, 0.0)
    met = cases.expert_params * touched(cases, tokens)
    read = (own + (dense - own + met) / group) * cases.weight_bytes
    reading = read / cases.bandwidth * terms["weights"]
    # An expert's products are done in tiles, full or not.
    one = cases.expert_params / np.maximum(cases.experts, 1)
    padding = one * cases.experts * touched(cases, tokens) * terms["tile"]
    work = 2 * (cases.active_params * tokens + padding) / group / cases.peak * terms["matrix"]
    return _both(reading, work, terms)


def decode_attention(cases: Cases, terms: Terms, batch: Column, length: Column) -> Column:
    """Of `batch` sequences that each look back over `length` positions."""
    import numpy as np

    looked = batch * positions(cases, length)
    ranks = np.where(cases.spread_attention > 0, np.minimum(cases.group, np.maximum(batch, 1)), 0)
    ranks = np.where(cases.spread_attention > 0, ranks, cache_ranks(cases))
    reading = looked * cases.kv_values * cases.kv_bytes / ranks / cases.bandwidth * terms["cache"]
    split = np.where(cases.spread_attention > 0, ranks, cases.group)
    work = (
        looked
        * (1 + cases.guesses)
        * cases.decode_width
        / split
        / cases.peak16
        * terms["attention"]
    )
    return _both(reading, work, terms)


def prefill_attention(cases: Cases, terms: Terms, sequences: Column, group: Column) -> Column:
    """Each position looks back over half of the input on average, and more if half is cached."""
    pairs = sequences * cases.input * positions(cases, cases.input) / 2
    pairs = pairs * (1 - cases.cached**2)
    found: Column = pairs * cases.prefill_width / group / cases.peak16 * terms["attention"]
    return found


def fresh(cases: Cases) -> Column:
    """Tokens of a prompt that no prefix cache holds."""
    found: Column = cases.input * (1 - cases.cached)
    return found


def adapters(
    cases: Cases, terms: Terms, sequences: Column, tokens: Column, group: Column
) -> Column | float:
    """Each sequence has one of the adapters, chosen alike; a step reads those that it meets."""
    import numpy as np

    if not cases.adapters.any():
        return 0.0
    number = np.maximum(cases.adapters, 1.0)
    with np.errstate(divide="ignore"):
        met = -number * np.expm1(sequences * np.log1p(-1 / number))
    read = met * cases.adapter_params * ADAPTER_BYTES / group / cases.bandwidth * terms["weights"]
    work = 2 * tokens * cases.adapter_params / group / cases.peak16 * terms["matrix"]
    # As many small kernels more as a layer has, of every layer.
    launched = cases.layers * terms["launch"]
    found: Column = np.where(cases.adapters > 0, _both(read, work, terms) + launched, 0.0)
    return found


def accepted(cases: Cases) -> Column:
    """Tokens that a step gives a sequence: its own, and guesses up to the first wrong one."""
    import numpy as np

    right = np.minimum(cases.accepted, 1 - 1e-9)
    found: Column = (1 - right ** (cases.guesses + 1)) / (1 - right)
    return found


def guessing(cases: Cases, terms: Terms, batch: Column) -> Column | float:
    """A draft's steps, one after the other, before the model checks what it says."""
    if not cases.guesses.any():
        return 0.0
    reading = cases.draft_params * cases.weight_bytes / cases.group / cases.bandwidth
    work = 2 * batch * cases.draft_params / cases.group / cases.peak
    one = _both(reading * terms["weights"], work * terms["matrix"], terms)
    found: Column = cases.guesses * (one + cases.draft_layers * terms["launch"])
    return found


def exchanges(cases: Cases, terms: Terms, tokens: Column, group: Column) -> Column:
    import numpy as np

    many = group > 1
    hops = np.where(many, 0.5 + 0.5 * np.log2(np.maximum(group, 2)), 0.0)
    latency = _EXCHANGES * cases.layers * hops * terms["hop"]
    values = tokens * cases.d_model * np.where(many, 2 * (group - 1) / np.maximum(group, 1), 0.0)
    # Data-parallel attention sends each token to its experts' ranks only.
    sent = tokens / group * np.minimum(np.maximum(cases.top_k, 1), group) * cases.d_model
    values = np.where((cases.spread_attention > 0) & many, sent, values)
    carried = _EXCHANGES * cases.layers * values * _VALUE_BYTES / cases.link * terms["link"]
    found: Column = latency + carried
    return found


def decode_step(
    cases: Cases, terms: Terms, batch: Column, length: Column, inflow: Column | float = 0.0
) -> Column:
    """A step that gives each of `batch` sequences a token, beside `inflow` tokens of prefills."""
    tokens = batch * (1 + cases.guesses) + inflow
    began = inflow / fresh(cases)
    seconds = (
        matrices(cases, terms, tokens, cases.group)
        + decode_attention(cases, terms, batch, length)
        + prefill_attention(cases, terms, began, cases.group)
        + exchanges(cases, terms, tokens, cases.group)
        + adapters(cases, terms, batch, tokens, cases.group)
        + guessing(cases, terms, batch)
        + cases.layers * terms["launch"]
        + terms["step"]
        + batch * terms["sequence"]
    )
    found: Column = seconds * terms["all"]
    return found


def prefill(cases: Cases, terms: Terms, sequences: Column, group: Column) -> Column:
    """The arithmetic of `sequences` whole inputs, without what a request pays only once."""
    import numpy as np

    tokens = sequences * fresh(cases)
    chunk = np.where(cases.chunk > 0, cases.chunk, terms["chunk"])
    rounds = np.maximum(tokens / chunk, 1.0)  # a step takes only so many
    part = tokens / rounds
    seconds = rounds * (
        matrices(cases, terms, part, group)
        + exchanges(cases, terms, part, group)
        + cases.layers * terms["layer"]
    ) + prefill_attention(cases, terms, sequences, group)
    seconds = seconds + adapters(cases, terms, sequences, tokens, group)
    found: Column = seconds * terms["prefill"] * terms["all"]
    return found


def _both(reading: Column, work: Column, terms: Terms) -> Column:
    """Between their larger and their sum."""
    power = 1 + terms["roofline"]
    found: Column = (reading**power + work**power) ** (1 / power)
    return found
