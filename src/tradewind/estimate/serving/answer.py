"""One question about serving, checked and answered: memory, throughput, latencies, with a band.

`ask` refuses what cannot be (an engine or a format nobody knows, one that the hardware lacks, more
positions than the model has, a layout that does not divide), naming what is legal. What is open is
chosen: the fewest accelerators for a copy of the weights that leave room for the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving import band, chips, engines, formats, memory, modes, rows
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.points import Points
from tradewind.estimate.serving.served import Served
from tradewind.model import Accelerator

USUAL_ENGINE = "vllm"
USUAL_ACCEPTED = 0.7
MOST_GUESSES = 16
MOST_ADAPTERS = 10_000
_NEURON, _TPU = "neuron", "tpu"
MOST = 10_000_000  # tokens of a request, clients: beyond this it is a slip of the keyboard


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`None` where it is to be chosen."""

    model: Served
    accelerator: Accelerator
    count: int = 1
    input: int = 1000
    output: int = 200
    concurrency: int = 1
    engine: str | None = None
    weights: str | None = None  # format
    cache: str | None = None
    tp: int | None = None
    pp: int = 1
    dp_attention: bool = False
    adapters: int = 0  # of low rank, that requests choose among
    adapter_params: float = 0.0  # of one
    guesses: int = 0  # tokens guessed in each step
    accepted: float = USUAL_ACCEPTED  # chance that a guess is right, if those before it are
    draft: Served | None = None  # what guesses; None: one more layer of the model itself
    cached: float = 0.0  # share of prompts that a prefix cache holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    model: str
    accelerator: str
    count: int
    engine: str
    weights: str
    cache_bytes: float
    tp: int
    pp: int
    replicas: int
    input: int
    output: int
    concurrency: int
    fits: bool
    memory_gb: dict[str, float]  # on the fullest accelerator
    capacity_gb: float
    most_sequences: int  # of a replica, that fit beside the weights
    running: float  # sequences at once on a replica
    output_tokens_per_s: float
    total_tokens_per_s: float
    requests_per_s: float
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    low: dict[str, float]  # of the 80 % band
    high: dict[str, float]
    familiarity: str
    band: str
    notes: list[str]


def check(question: Question) -> tuple[engines.Engine, str, int]:
    """Engine, format and tensor-parallel degree. InvalidValue, with what is legal."""
    model, chip = question.model, question.accelerator
    for name, least in (("input", 1), ("output", 1), ("concurrency", 1), ("count", 1), ("pp", 1)):
        value = getattr(question, name)
        if not least <= value <= MOST:
            raise InvalidValue(f"{name} is {value:,}", hint=f"from {least} to {MOST:,}")
    for name, low, high in (
        ("adapters", 0, MOST_ADAPTERS), ("guesses", 0, MOST_GUESSES), ("accepted", 0, 1),
    ):  # fmt: skip
        value = getattr(question, name)
        if not low <= value <= high:
            raise InvalidValue(f"{name} is {value:,}", hint=f"from {low} to {high:,}")
    if not 0 <= question.cached < 1:
        raise InvalidValue(f"{question.cached:.0%} of prompts cached", hint="below 100 %")
    engine = engines.named(question.engine or usual_engine(chip))
    weights = formats.named(question.weights or usual_format(chip))
    formats.check(chip, weights)
    if question.cache is not None and question.cache not in formats.CACHE_BYTES:
        raise InvalidValue(
            f"{question.cache!r} is not a precision of the cache",
            hint=f"one of {', '.join(formats.CACHE_BYTES)}",
        )
    length = question.input + question.output
    if model.longest and length > model.longest:
        raise InvalidValue(
            f"{length:,} tokens are more than {model.name} takes: {int(model.longest):,}",
            hint=f"--input and --output together may be {int(model.longest):,} at most",
        )
    if question.pp > model.layers:
        raise InvalidValue(
            f"--pp {question.pp} is more than the {int(model.layers)} layers of {model.name}",
            hint="fewer stages",
        )
    room = question.count // question.pp
    if question.tp is None:
        size = formats.FORMATS[weights].bytes
        fewest = rows.smallest_group(model, chip, size / question.pp, max(room, 1))
        tp = next(d for d in range(int(fewest), room + 1) if not room % d) if room else 1
    else:
        tp = question.tp
    if question.count % (tp * question.pp):
        raise InvalidValue(
            f"{question.count} accelerators do not divide into replicas of tp {tp} × pp "
            f"{question.pp}",
            hint=f"tp may be {', '.join(str(d) for d in _divisors(room))}" if room else "more --on",
        )
    return engine, weights, tp


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if not number % d]


def usual_engine(chip: Accelerator) -> str:
    return {_NEURON: "neuron", _TPU: "jetstream", "apple": "llama.cpp"}.get(
        chips.family(chip), USUAL_ENGINE
    )


def usual_format(chip: Accelerator) -> str:
    return "bf16" if chip.bf16_tflops else "fp16"


def beside(question: Question) -> dict[str, float]:
    """The columns of adapters, guesses and a prefix cache."""
    model, draft = question.model, question.draft
    found = {
        "adapters": float(question.adapters), "adapter_params": question.adapter_params,
        "guesses": float(question.guesses), "accepted": question.accepted,
        "cached": question.cached,
    }  # fmt: skip
    if question.guesses and draft is not None:
        return found | {"draft_params": draft.active_params, "draft_layers": draft.layers}
    if question.guesses:
        head = model.vocab * model.d_model
        layer = max(model.active_params - head, 0.0) / model.layers
        return found | {"draft_params": layer + head, "draft_layers": 1.0}
    return found


def ask(question: Question, own: Points | None = None) -> Answer:
    """`own`: points that the user has measured, which sharpen the answer."""
    import numpy as np

    engine, weights, tp = check(question)
    model, chip = question.model, question.accelerator
    replicas = question.count // (tp * question.pp)
    cache_bytes = rows.cache_bytes(question.cache or "", weights, engine)
    cases = Cases.of(
        {
            **model.columns(), **chips.columns(chip, weights, tp, by_layers=engine.by_layers),
            "model": model.name,
            "weight_bytes": formats.FORMATS[weights].bytes, "kv_bytes": cache_bytes,
            "precision": formats.FORMATS[weights].group, "engine": engine.name,
            "software": engine.name, "group": tp, "stages": question.pp, "replicas": replicas,
            "spread_attention": float(question.dp_attention), "input": question.input,
            "output": question.output, "concurrency": question.concurrency, "mode": "closed",
            "mean": 0.0, **beside(question),
        }
    )  # fmt: skip
    told = own.told(cases) if own else None
    terms = told.terms if told else fitted().terms(cases)
    held = memory.held(cases, terms["usable"])
    length = cases.input + cases.output
    most = float(memory.sequences(cases, held, length)[0])
    seen = modes.closed(cases, terms)
    running = float(seen.running[0])
    speed, tpot, ttft = (float(c[0]) for c in (seen.tokens_per_s, seen.tpot, seen.ttft))
    if told:
        more = [exp(float(told.corrections[measure][0])) for measure in rows.MEASURES]
        speed, tpot, ttft = speed * more[0], tpot * more[1], ttft * more[2]
    familiarity = band.published().familiarity(cases)
    values = {"output_tokens_per_s": speed, "tpot_ms": 1e3 * tpot, "ttft_ms": 1e3 * ttft}
    widths = {
        name: told.widths[measure]
        if told
        else float(band.half_width(cases, measure, familiarity)[0])
        for name, measure in zip(values, rows.MEASURES, strict=True)
    }
    full = np.array([max(min(running, most), min(1.0, most))])
    cache = float((full * held.cache_per_token * memory.positions(cases, length))[0])
    items = {
        "weights": float(held.weights[0]), "cache": cache,
        "activations": float(held.activations[0]), "engine": float(held.engine[0]),
    }  # fmt: skip
    for name, size in (("adapters", held.adapters), ("draft", held.draft)):
        if size[0]:
            items[name] = float(size[0])
    fits = most >= 1
    return Answer(
        model=model.name, accelerator=chip.name, count=question.count, engine=engine.name,
        weights=weights, cache_bytes=cache_bytes, tp=tp, pp=question.pp, replicas=replicas,
        input=question.input, output=question.output, concurrency=question.concurrency,
        fits=fits, memory_gb={name: round(size / 1e9, 3) for name, size in items.items()},
        capacity_gb=float(cases.memory[0]) / 1e9, most_sequences=int(most), running=running,
        output_tokens_per_s=speed,
        total_tokens_per_s=speed * (1 + question.input / question.output),
        requests_per_s=speed / question.output, ttft_ms=1e3 * ttft, tpot_ms=1e3 * tpot,
        e2e_ms=1e3 * (ttft + (question.output - 1) * tpot),
        low={name: value * exp(-widths[name]) for name, value in values.items()},
        high={name: value * exp(widths[name]) for name, value in values.items()},
        familiarity=familiarity[0],
        band=told.reason
        if told
        else band.reason(familiarity[0], engine.name, chip.name, model.name),
        notes=_notes(question, engine.name, weights, fits, most, replicas),
    )  # fmt: skip


def _notes(
    question: Question, engine: str, weights: str, fits: bool, most: float, replicas: int
) -> list[str]:
    found = []
    if question.engine is None:
        found.append(f"the engine is taken to be {engine}; --engine says otherwise")
    if question.weights is None:
        found.append(f"the weights are taken to be {weights}; --weights says otherwise")
    if question.adapters:
        found.append(
            f"{question.adapters:,} adapters of {question.adapter_params / 1e6:,.1f}M weights are "
            "held in 16 bits; what they take is by arithmetic, not fitted to measurements"
        )
    if question.guesses:
        draft = question.draft.name if question.draft else "one more layer of the model"
        found.append(
            f"{question.guesses} guessed by {draft}, {question.accepted:.0%} right one after "
            "another; by arithmetic, not fitted to measurements"
        )
    each = question.concurrency / replicas
    if fits and each > most:
        found.append(
            f"the cache has room for {int(most):,} whole sequences of a replica, and "
            f"{each:,.0f} clients ask: some wait"
        )
    return found
