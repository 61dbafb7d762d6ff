"""One question about serving under a load of so many requests a second: percentiles and goodput.

The same layout as `answer.ask` finds, with the queue of `queue` on each of its replicas, which
share the requests evenly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving import chips, engines, formats, queue, rows, steps
from tradewind.estimate.serving.answer import Question, beside, check
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.mix import Mix

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column
    from tradewind.estimate.serving.steps import Steps

LEVELS = (50, 90, 95, 99)
MOST_RATE = 1e6  # requests a second; beyond it is a slip of the keyboard
MOST_CV = 20.0
_HALVINGS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    rate: float  # requests a second, to all replicas
    mix: Mix
    cv: float = 1.0
    """Coefficient of variation of the gaps between requests; 1 is a Poisson stream."""
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate <= MOST_RATE:
            raise InvalidValue(
                f"{self.rate:g} requests a second", hint=f"above 0, up to {MOST_RATE:,.0f}"
            )
        if not 0.1 <= self.cv <= MOST_CV:
            raise InvalidValue(
                f"gaps with a coefficient of variation of {self.cv:g}",
                hint=f"from 0.1 (like a clock) over 1 (Poisson) to {MOST_CV:g}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Milliseconds; None where the queue only grows."""

    rate: float
    cv: float
    input: float
    output: float
    replicas: int
    stable: bool
    most_requests_per_s: float  # that the replicas can take at all
    load: float  # share of that
    running: float  # sequences at once on a replica
    ttft_ms: dict[str, float | None] = field(default_factory=dict)  # mean, p50 … p99
    tpot_ms: dict[str, float | None] = field(default_factory=dict)
    e2e_ms: dict[str, float | None] = field(default_factory=dict)
    goodput: float | None = None  # share of requests inside every target; None without one


def case(question: Question, engine: engines.Engine, weights: str, tp: int) -> dict[str, Any]:
    """The columns of a layout, without a load."""
    model, chip = question.model, question.accelerator
    return {
        **model.columns(), **chips.columns(chip, weights, tp, by_layers=engine.by_layers),
        "model": model.name,
        "weight_bytes": formats.FORMATS[weights].bytes,
        "kv_bytes": rows.cache_bytes(question.cache or "", weights, engine),
        "precision": formats.FORMATS[weights].group, "engine": engine.name,
        "software": engine.name, "group": tp, "stages": question.pp, "mode": "server",
        "mean": 0.0, "input": 1.0, "output": 1.0,
        # What a prefix cache holds is in the mix.
        **beside(question), "cached": 0.0,
    }  # fmt: skip


def under(question: Question, load: Load) -> Loaded:
    import numpy as np

    engine, weights, tp = check(question)
    if question.model.longest and load.mix.longest > question.model.longest:
        raise InvalidValue(
            f"{load.mix.longest:,.0f} tokens are more than {question.model.name} takes: "
            f"{int(question.model.longest):,}",
            hint="shorter prompts or answers",
        )
    cases = Cases.of(case(question, engine, weights, tp))
    table = steps.tables(cases, fitted().terms(cases), load.mix)
    replicas = question.count // (tp * question.pp)
    each = np.array([load.rate / replicas])
    burst = load.cv**2
    state = queue.at_rate(table, load.mix, each, burst)
    most = float(most_rate(table, load.mix, burst)[0]) * replicas
    _, outputs, shares = load.mix.columns()
    first = partial(queue.within_first, state)
    token = partial(queue.within_token, state)
    whole = partial(queue.within_whole, state, outputs)
    mean_first = float(state.first[0] @ shares + state.wait[0])
    mean_whole = mean_first + (load.mix.output - 1) * float(state.tpot[0])
    stable = bool(state.stable[0])

    def levels(of: Any, mean: float) -> dict[str, float | None]:
        found = {"mean": mean if stable else float("inf")}
        found |= {f"p{n}": queue.percentile(of, shares, n / 100) for n in LEVELS}
        return {name: 1e3 * value if isfinite(value) else None for name, value in found.items()}

    return Loaded(
        rate=load.rate, cv=load.cv, input=load.mix.input, output=load.mix.output,
        replicas=replicas, stable=stable, most_requests_per_s=most,
        load=load.rate / most if most else float("inf"), running=float(state.running[0]),
        ttft_ms=levels(first, mean_first), tpot_ms=levels(token, float(state.tpot[0])),
        e2e_ms=levels(whole, mean_whole),
        goodput=None if not (load.ttft_s or load.tpot_s or load.e2e_s)
        else float(good(state, load, outputs)[0] @ shares),
    )  # fmt: skip


def good(state: queue.State, load: Load, outputs: Column) -> Column:
    """Layout × size: the share inside every target. Waiting and decoding are taken to be late
    independently of each other; the whole counts only as far as it is stricter than both."""
    import numpy as np

    found = np.ones(state.spread.shape)
    if load.ttft_s is not None:
        found = found * queue.within_first(state, load.ttft_s)
    if load.tpot_s is not None:
        found = found * queue.within_token(state, load.tpot_s)
    if load.e2e_s is not None:
        found = np.minimum(found, queue.within_whole(state, outputs, load.e2e_s))
    return found


def most_rate(table: Steps, mix: Mix, burst: float) -> Column:
    """Requests a second of a replica above which its queue only grows, by layout."""
    import numpy as np

    room = np.maximum(table.room, 1.0)
    high = room / (mix.output * table.seconds(room[:, None])[:, 0])
    low = np.zeros(len(table))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        stable = queue.at_rate(table, mix, middle, burst).stable
        low, high = np.where(stable, middle, low), np.where(stable, high, middle)
    return low
