"""How a copy of the model may be laid out: accelerator, tensor-parallel degree, format; and how
many requests a second one copy answers while every target holds.

Machines of a kind serve equally fast wherever they stand, so this is asked once for a kind, and
prices are joined after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving import band, engines, formats, load, queue, steps
from tradewind.estimate.serving.answer import Question, usual_engine, usual_format
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.mix import Mix
from tradewind.estimate.serving.served import Served
from tradewind.model import Accelerator
from tradewind.model.serve import Serve
from tradewind.planning.serving import margin

if TYPE_CHECKING:
    from typing import Any

    from tradewind.estimate.serving.cases import Column
    from tradewind.estimate.serving.points import Points

    Targets = Mapping[str, tuple[float | Column, float]]  # seconds, for all layouts or one each

DEGREES = (1, 2, 4, 8, 16)
_HALVINGS = 12
_IDLE = 1e-4  # requests a second at which nobody meets anybody
# Engines that run on one vendor's hardware, by the families of `chips.family`.
_ONLY = {"jetstream": ("tpu",), "neuron": ("neuron",), "habana": ("gaudi",)}


@dataclass(frozen=True, slots=True)
class Layout:
    accelerator: str
    tp: int
    weights: str
    engine: str


@dataclass(slots=True)
class Layouts:
    """Those in which the model fits, with the tables of their steps; and why others are none."""

    layouts: list[Layout]
    cases: Cases | None
    refused: dict[str, str] = field(default_factory=dict)  # by accelerator, the nearest reason
    speeds: Any = None
    matrix: Any = None

    def tables(self, mix: Mix) -> steps.Steps:
        """As slow as a plan takes them to be."""
        assert self.cases is not None
        speeds: margin.Speeds = self.speeds
        if self.matrix is None:
            self.matrix = steps.by_tokens(self.cases, speeds.terms)
        found = steps.tables(self.cases, speeds.terms, mix, self.matrix)
        return found.slower(speeds.token, speeds.first)


def check(serve: Serve, model: Served, mix: Mix) -> None:
    """What can be known to be wrong before any machine is looked at."""
    if serve.engine is not None:
        engines.named(serve.engine)
    for name in (serve.weights, *(serve.quantise or ())):
        if name is not None:
            formats.named(name)
    if serve.cache is not None and serve.cache not in formats.CACHE_BYTES:
        raise InvalidValue(
            f"serve.cache: {serve.cache!r} is not a precision of the cache",
            hint=f"one of {', '.join(formats.CACHE_BYTES)}",
        )
    if model.longest and mix.longest > model.longest:
        raise InvalidValue(
            f"requests of {mix.longest:,.0f} tokens are more than {model.name} takes: "
            f"{int(model.longest):,}",
            hint="shorten serve.input or serve.output, or serve another model",
        )


def found(
    serve: Serve, model: Served, mix: Mix, chips: Iterable[tuple[Accelerator, int]],
    confidence: float, own: Points | None = None,
) -> Layouts:  # fmt: skip
    """`chips`: accelerators, and the most of them in one machine. `own`: measured points."""
    import numpy as np

    layouts: list[Layout] = []
    columns: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    for chip, most in chips:
        why = _tried(serve, model, chip, most, layouts, columns)
        if why:
            refused[chip.name] = why
    if not layouts:
        return Layouts([], None, refused)
    cases = Cases.of({name: [one[name] for one in columns] for name in columns[0]})
    terms = fitted().terms(cases)
    familiar = band.published().familiarity(cases)
    matrix = steps.by_tokens(cases, terms)
    table = steps.tables(cases, terms, mix, matrix)
    fits = (table.whole >= 1) & (table.room >= 1)
    known = [
        name != "strange" or (own is not None and own.speaks_of(cases.take([i])))
        for i, name in enumerate(familiar)
    ]
    keep = fits & np.array(known)
    for i, layout in enumerate(layouts):
        name = layout.accelerator
        if keep[i]:
            refused.pop(name, None)
        elif not any(keep[j] for j, other in enumerate(layouts) if other.accelerator == name):
            refused[name] = (
                f"{model.name} does not fit with a cache for one request"
                if not fits[i]
                else f"{layout.engine} was never measured on anything like it"
            )
    at = np.flatnonzero(keep)
    if not len(at):
        return Layouts([], None, refused)
    kept_terms = {name: column[at] for name, column in terms.items()}
    speeds = margin.speeds(cases.take(at), kept_terms, confidence, own)
    return Layouts(
        [layouts[i] for i in at], cases.take(at), refused, speeds,
        None if own else matrix[at],  # own points move terms, and the table with them
    )  # fmt: skip


def _tried(
    serve: Serve, model: Served, chip: Accelerator, most: int,
    layouts: list[Layout], columns: list[dict[str, Any]],
) -> str:  # fmt: skip
    """Adds what may be tried on a chip; or says why nothing may."""
    from tradewind.estimate.serving import chips as kinds

    if not (chip.bf16_tflops or chip.fp16_tflops) or not chip.memory_bandwidth_gbps:
        return "its speed is not known"
    engine = engines.named(serve.engine or usual_engine(chip))
    only = _ONLY.get(engine.name)
    if only and kinds.family(chip) not in only:
        return f"{engine.name} does not run on it"
    if engine.name == "trtllm" and chip.vendor.lower() not in ("nvidia", ""):
        return f"{engine.name} does not run on it"
    wanted = [formats.named(serve.weights) if serve.weights else usual_format(chip)]
    wanted += [formats.named(name) for name in serve.quantise or ()]
    possible = [name for name in dict.fromkeys(wanted) if formats.native(chip, name)]
    if not possible:
        legal = [name for name in formats.FORMATS if formats.native(chip, name)]
        lacking = ", ".join(dict.fromkeys(wanted))
        return f"it has no units for {lacking}; on it weights may be {', '.join(legal)}"
    degrees = [d for d in DEGREES if d <= most and serve.tp in (None, d)]
    if not degrees:
        return f"no machine has {serve.tp} of it"
    for weights in possible:
        for tp in degrees:
            question = Question(model=model, accelerator=chip, count=tp, cache=serve.cache, tp=tp)
            layouts.append(Layout(chip.name, tp, weights, engine.name))
            columns.append(load.case(question, engine, weights, tp))
    return ""


def kept(state: queue.State, mix: Mix, targets: Targets) -> Column:
    """Bool by layout: whether every target holds for its share of the requests."""
    _, outputs, shares = mix.columns()
    held: Any = state.stable
    for name, (seconds, share) in targets.items():
        held = held & (_within(state, name, seconds, outputs) @ shares >= share)
    found: Column = held
    return found


def _within(state: queue.State, name: str, seconds: float | Column, outputs: Column) -> Column:
    if name == "ttft":
        return queue.within_first(state, seconds)
    if name == "tpot":
        return queue.within_token(state, seconds)
    return queue.within_whole(state, outputs, seconds)


def ceiling(table: steps.Steps, mix: Mix) -> Column:
    """By layout, a rate that no target can be looser than: every step as full as can be, or nothing
    but prompts read."""
    import numpy as np

    room = np.maximum(table.room, 1.0)
    decoding = room / (mix.output * table.seconds(room[:, None])[:, 0])
    found: Column = np.minimum(decoding, 1 / (table.prefill @ mix.columns()[2]))
    return found


def most_rate(table: steps.Steps, mix: Mix, targets: Targets, cv: float) -> Column:
    """By layout: requests a second of one replica at which every target still holds; 0 where they
    do not even hold for a request that is alone. Targets may be one for each layout."""
    import numpy as np

    high = ceiling(table, mix)
    result = np.zeros(len(table))
    alone = kept(queue.at_rate(table, mix, np.full(len(table), _IDLE), cv**2), mix, targets)
    at = np.flatnonzero(alone)
    if not len(at):
        return result
    part, low, high = table.take(at), np.full(len(at), _IDLE), high[at]
    targets = {
        name: (np.broadcast_to(seconds, len(table))[at], share)
        for name, (seconds, share) in targets.items()
    }
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        good = kept(queue.at_rate(part, mix, middle, cv**2), mix, targets)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    result[at] = low
    return result


def reached(table: steps.Steps, mix: Mix, targets: Targets) -> list[dict[str, float]]:
    """By layout, what each target comes to for requests that are alone, in seconds."""
    import numpy as np

    _, outputs, shares = mix.columns()
    found = []
    for i in range(len(table)):
        one = table.take(np.array([i]))
        state = queue.at_rate(one, mix, np.array([_IDLE]))
        values = {}
        for name, (_, share) in targets.items():
            within = partial(_by_seconds, state, name, outputs)
            values[name] = queue.percentile(within, shares, share)
        found.append(values)
    return found


def _by_seconds(state: queue.State, name: str, outputs: Column, seconds: float) -> Column:
    return _within(state, name, seconds, outputs)
