"""Steps of an engine as tables that a queue can look up thousands of times. Pure.

A step of `n` sequences beside `g` tokens of prefills is, by `passes.decode_step`,

    matrices and exchanges of n + g tokens    one table by tokens, piecewise linear
    + attention and sampling of n sequences   linear in n
    + attention of g tokens                   linear in g
    + launching                               constant

so that one table of some thirty entries for each layout answers for every batch and load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from tradewind.estimate.serving import memory, passes
from tradewind.estimate.serving.cases import Cases

if TYPE_CHECKING:
    from typing import Any

    from tradewind.estimate.serving.cases import Column
    from tradewind.estimate.serving.mix import Mix

    Terms = Mapping[str, Column]

_PER_DOUBLING = 2
_DOUBLINGS = 15  # up to 32,768 tokens
_KEPT = 0.6  # of an answer's positions that a running sequence holds on average, by paging
_MIDDLE = 0.5


@dataclass(slots=True)
class Steps:
    """One row a layout (case); seconds."""

    table: Column  # layout × tokens: matrices and exchanges
    sequence: Column  # of each running sequence
    token: Column  # of each token of a prefill, its attention
    fixed: Column
    prefill: Column  # layout × size: a prompt alone
    full: Column  # a prefill of as many tokens as a step takes
    start: Column  # a request before its first token, without the arithmetic
    turn: Column  # steps that a request waits for its turn
    inflow: Column  # prefills among decoding steps, as clients see them
    chunk: Column  # tokens of a step at most
    room: Column  # sequences at once: cache and scheduler
    whole: Column  # sequences of the longest size that fit beside the weights

    def __len__(self) -> int:
        return len(self.fixed)

    def take(self, at: Any) -> Steps:
        return Steps(**{f.name: getattr(self, f.name)[at] for f in fields(self)})

    def slower(self, token: Column, first: Column) -> Steps:
        """By layout: with steps, and all before a first token, so many times as long."""
        return replace(
            self, table=self.table * token[:, None], sequence=self.sequence * token,
            token=self.token * token, fixed=self.fixed * token,
            prefill=self.prefill * first[:, None], full=self.full * first,
            start=self.start * first,
        )  # fmt: skip

    def seconds(self, running: Column, inflow: Column | float = 0.0) -> Column:
        """Layout × anything."""
        found: Column = (
            self._matrices(running + inflow)
            + running * self.sequence[:, None]
            + inflow * self.token[:, None]
            + self.fixed[:, None]
        )
        return found

    def _matrices(self, tokens: Column) -> Column:
        import numpy as np

        tokens = np.maximum(tokens, 1.0)
        last = self.table.shape[1] - 2
        at = np.minimum((np.log2(tokens) * _PER_DOUBLING).astype(np.intp), last)
        low, high = (2.0 ** ((at + more) / _PER_DOUBLING) for more in (0, 1))
        rows = np.arange(len(self))[:, None]
        first, second = self.table[rows, at], self.table[rows, at + 1]
        found: Column = first + (second - first) * (tokens - low) / (high - low)
        return found


def by_tokens(cases: Cases, terms: Terms) -> Column:
    """Layout × tokens: matrices, exchanges and adapters, which no mix changes."""
    import numpy as np

    ones = np.ones(len(cases))
    grid = 2.0 ** (np.arange(_DOUBLINGS * _PER_DOUBLING + 1) / _PER_DOUBLING)
    found: Column = np.stack(
        [
            passes.matrices(cases, terms, tokens * ones, cases.group)
            + passes.exchanges(cases, terms, tokens * ones, cases.group)
            + passes.adapters(cases, terms, tokens * ones, tokens * ones, cases.group)
            for tokens in grid
        ],
        axis=1,
    )
    return found


def tables(cases: Cases, terms: Terms, mix: Mix, matrix: Column | None = None) -> Steps:
    """Of layouts of any models, with the sizes of one mix. `cases.input` and `.output` are not
    looked at. `matrix` is what `by_tokens` found, where that was asked before."""
    import numpy as np

    count = len(cases)
    ones = np.ones(count)
    inputs, _, _ = mix.columns()
    per_token = _with(cases, mix.prompt_of_a_token)
    matrix = by_tokens(cases, terms) if matrix is None else matrix
    every = terms["all"]
    attention = passes.decode_attention(cases, terms, ones, mix.running(_MIDDLE) * ones)
    own = passes.prefill_attention(per_token, terms, ones / mix.prompt_of_a_token, cases.group)
    fresh = 1 - mix.cached
    prompts = np.stack(
        [passes.prefill(_with(cases, max(i * fresh, 1.0)), terms, ones, cases.group)
         for i in inputs], axis=1,
    )  # fmt: skip
    full = passes.prefill(_with(cases, 1.0), terms, terms["chunk"], cases.group)
    held = memory.held(_with(cases, mix.input), terms["usable"])
    kept = memory.sequences(cases, held, mix.running(_KEPT) * ones)
    return Steps(
        table=matrix * every[:, None],
        sequence=(attention + terms["sequence"]) * every,
        token=own * every * fresh,
        fixed=(cases.layers * terms["launch"] + terms["step"]) * every,
        prefill=prompts,
        full=full,
        start=terms["start"],
        turn=terms["turn"],
        inflow=terms["inflow"],
        chunk=terms["chunk"],
        room=np.minimum(kept, terms["most"]),
        whole=memory.sequences(cases, held, mix.longest * ones),
    )


def _with(cases: Cases, tokens: float) -> Cases:
    import numpy as np

    return replace(cases, input=np.full(len(cases), float(tokens)))
