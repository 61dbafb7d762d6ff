"""Serving a model that does not generate text: encoders, rerankers, vision, speech, diffusion.

A batch of `b` requests takes

    host + launches + the larger of: reading the weights, b × arithmetic at what was reached
    + steps of a decoder, where there is one (speech, T5)

so that a lone request is bounded by launches, and many by arithmetic. The share of the peak that
is reached comes from published points of other tasks (`others.py`). Under a rate, requests that
arrive during one batch are the next. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp

from tradewind.base.errors import InvalidValue
from tradewind.estimate import hardware, shapes
from tradewind.estimate.serving import chips, engines, formats, others
from tradewind.estimate.serving.constants import calibration
from tradewind.estimate.serving.memory import CONTEXT_BYTES
from tradewind.model import Accelerator
from tradewind.model.shape import Shape, Work

USUAL_TOKENS, USUAL_ANSWER, USUAL_STEPS = 256, 100, 30
MOST = 1_000_000  # tokens, steps, requests: beyond this it is a slip of the keyboard
# What published points of a task say of its kin, at the arithmetic of those (others.GFLOPS).
_TASKS = {"bert-large": "bert", "resnet-50": "resnet"}
# Speech comes as frames of audio: how many, and how long they are.
_FRAMES = {"whisper": (1500, "30 s of audio"), "wav2vec2": (499, "10 s of audio")}
_TEXTLESS = ("conv", "unet", "dit")
_HOST_S = 2.5e-4  # a request in and out
_LAUNCH_S = {"encoder": 2.5e-5, "vision": 2.5e-5, "encoder-decoder": 3e-5}  # of a layer
_LAUNCH_WORK_S = {"conv": 1e-4, "unet": 5e-3, "dit": 2e-3}  # of a pass
_READ = 1.3  # time of reading weights against the bandwidth, as for language models
_REACHED = 0.75  # no published point of these is above so much of a peak
_LIVE_VALUES = 8  # of the width that are there at once for each token
_LIVE_SHARE = 0.15  # of what training keeps of a sample, that a pass without gradients has at once
_USABLE = 0.9
_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`concurrency` requests are under way at once, or `rate` arrive a second; not both."""

    model: Shape | Work
    accelerator: Accelerator
    count: int = 1
    input: int | None = None  # tokens of a text
    output: int | None = None  # tokens that a decoder writes
    steps: int | None = None  # of denoising
    guided: bool = True  # each of those is two passes
    concurrency: int = 1
    rate: float | None = None
    engine: str | None = None
    weights: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    model: str
    kind: str
    accelerator: str
    count: int
    engine: str
    weights: str
    request: str  # what one is, in words
    gflops: float  # of one
    fits: bool
    memory_gb: dict[str, float]  # on each accelerator, which all have the whole model
    capacity_gb: float
    most_at_once: int  # requests on one accelerator, by memory
    batch: float  # requests that an accelerator takes at once
    stable: bool
    requests_per_s: float
    most_requests_per_s: float  # with the largest batch
    latency_ms: dict[str, float | None]  # mean and p99; None where the queue only grows
    low: dict[str, float]  # of the 80 % band
    high: dict[str, float]
    band: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a request is made of."""

    words: str
    flops: float
    steps: int  # passes of a batch, one after the other
    launch_s: float  # of one of them
    written: int  # tokens of a decoder
    decoder_params: float
    decoder_layers: int
    live_bytes: float  # of one request, in 16 bits


def ask(question: Question) -> Answer:
    for name in ("count", "concurrency", "input", "output", "steps"):
        value = getattr(question, name)
        if value is not None and not 1 <= value <= MOST:
            raise InvalidValue(f"{name} is {value:,}", hint=f"from 1 to {MOST:,}")
    if question.rate is not None and not 0 < question.rate <= MOST:
        raise InvalidValue(f"{question.rate:g} requests a second", hint=f"above 0, up to {MOST:,}")
    model, chip = question.model, question.accelerator
    engine = engines.named(question.engine or "pytorch")
    weights = formats.named(question.weights or ("bf16" if chip.bf16_tflops else "fp16"))
    formats.check(chip, weights)
    one = _of_shape(question, model) if isinstance(model, Shape) else _of_work(question, model)
    shape = formats.FORMATS[weights]
    peak = formats.peak(chip, shape.rate)
    work_s = one.flops / (peak * _share(model.name, chip, shape.group, engine.name))
    read_s = shapes.parameters(model) * shape.bytes / _bandwidth(chip) * _READ
    held = shapes.parameters(model) * shape.bytes
    capacity = hardware.memory_gib(chip) * 2.0**30
    context = min(CONTEXT_BYTES, 0.15 * capacity)
    most = int(max((capacity * _USABLE - held - context) / max(one.live_bytes, 1.0), 0.0))

    def seconds(batch: float) -> float:
        written = max(
            one.decoder_params * shape.bytes / _bandwidth(chip) * _READ,
            2 * batch * one.decoder_params / peak / _REACHED,
        )
        launches = one.steps * one.launch_s
        launches += one.written * one.decoder_layers * _LAUNCH_S["encoder-decoder"]
        reading = one.steps * read_s
        return _HOST_S + launches + max(reading, batch * work_s) + one.written * written

    full = max(most, 1)
    best = full / seconds(full)  # the rate grows with the batch
    stable, waiting = True, 0.0
    if question.rate is None:
        at_once = question.concurrency / question.count
        batch = min(max(at_once, 1.0), full)
        latency = seconds(batch) * max(at_once / full, 1.0)  # more than fit take turns
        speed = min(question.concurrency, question.count * batch) / seconds(batch)
    else:
        each = question.rate / question.count
        stable = each < best
        batch = _settled(seconds, each, full) if stable else float(full)
        latency = seconds(batch)
        waiting = latency * min(1.0, each * latency)  # of the batch before, at the most
        speed = min(question.rate, best * question.count)
    width = float(calibration()["others"]["band"])
    values = {"requests_per_s": speed, "latency_ms": 1e3 * (latency + waiting / 2)}
    widths = {"requests_per_s": 0.0 if question.rate and stable else width, "latency_ms": width}
    fits = most >= 1
    return Answer(
        model=model.name, kind=model.kind, accelerator=chip.name, count=question.count,
        engine=engine.name, weights=weights, request=one.words, gflops=one.flops / 1e9, fits=fits,
        memory_gb={
            "weights": held / 1e9, "activations": batch * one.live_bytes / 1e9,
            "engine": context / 1e9,
        },
        capacity_gb=capacity / 1e9, most_at_once=most, batch=batch, stable=stable,
        requests_per_s=speed, most_requests_per_s=best * question.count,
        latency_ms={
            "mean": values["latency_ms"] if stable else None,
            "p99": 1e3 * (latency + waiting) if stable else None,
        },
        low={name: value * exp(-widths[name]) for name, value in values.items()},
        high={name: value * exp(widths[name]) for name, value in values.items()},
        band="by arithmetic, and what other tasks reached on this accelerator or its kin",
        notes=_notes(question, engine.name, weights, model),
    )  # fmt: skip


def _settled(seconds: Callable[[float], float], each: float, full: int) -> float:
    """The batch that arrives while one is under way; at least one request."""
    low, high = 1.0, float(full)
    if each * seconds(low) <= low:
        return low
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if each * seconds(middle) > middle else (low, middle)
    return high


def _bandwidth(chip: Accelerator) -> float:
    return (chip.memory_bandwidth_gbps or 300) * 1e9


def _share(name: str, chip: Accelerator, group: str, engine: str) -> float:
    """Of the peak, that many requests at once reach."""
    parts = calibration()["others"]["parts"]
    family, task = chips.family(chip), _TASKS.get(name, "")
    known = [
        "base.any", f"family.{family}", f"chip.{chip.name}", "mode.offline", f"precision.{group}",
        f"engine.{engine}", f"family+precision.{family} {group}",
    ]  # fmt: skip
    if task:
        known += [f"task.{task}", f"task+mode.{task} offline", f"task+family.{task} {family}",
                  f"task+chip.{task} {chip.name}"]  # fmt: skip
    return min(exp(sum(parts.get(part, 0.0) for part in known)), _REACHED)


def _of_work(question: Question, model: Work) -> _Pass:
    _refuse(question, model.name, steps=model.kind in ("unet", "dit"))
    live = model.activation_bytes_per_sample * _LIVE_SHARE
    launch = _LAUNCH_WORK_S.get(model.kind, 1e-3)
    if model.kind in ("unet", "dit"):
        steps = question.steps or USUAL_STEPS
        passes = steps * (2 if question.guided else 1)
        # Both of a guided step go together, as a batch of two.
        return _Pass(
            f"{model.input}, {steps} steps", passes * model.forward_flops_per_sample, steps,
            launch, 0, 0.0, 0, 2 * live if question.guided else live,
        )  # fmt: skip
    flops = model.forward_flops_per_sample
    if model.name in _TASKS:
        flops = others.GFLOPS[_TASKS[model.name]] * 1e9
    return _Pass(f"one {model.sample}, {model.input}", flops, 1, launch, 0, 0.0, 0, live)


def _of_shape(question: Question, shape: Shape) -> _Pass:
    writes = shape.kind == "encoder-decoder"
    frames = next((f for name, f in _FRAMES.items() if shape.name.startswith(name)), None)
    text = shape.kind != "vision" and frames is None
    _refuse(question, shape.name, tokens=text, output=writes)
    if shape.kind == "vision":
        tokens, words = shapes.tokens_per_image(shape), f"one image of {shape.image}x{shape.image}"
    elif frames:
        tokens, words = frames
    else:
        tokens = question.input or USUAL_TOKENS
        words = f"{tokens:,} tokens"
        if shape.max_positions and shape.positions == "learned" and tokens > shape.max_positions:
            raise InvalidValue(
                f"{tokens:,} tokens are more than {shape.name} takes: {shape.max_positions:,}",
                hint=f"--input may be {shape.max_positions:,} at most",
            )
    written = (question.output or USUAL_ANSWER) if writes else 0
    feed = (3 if shape.gated else 2) * shape.d_model * shape.d_ff
    own = shapes.attention_matrices(shape)
    if writes:
        encoder = float(shape.layers * (own + feed))
        decoder = float(shape.decoder_layers * (2 * own + feed) + shape.vocab * shape.d_model)
        seen = 4.0 * shape.n_heads * shape.head_dim * shape.layers * tokens
        across = 2.0 * shape.decoder_layers * own / 2 * tokens  # its keys and values, once
        flops = tokens * (2 * encoder + seen) + across + 2 * decoder * written
        words += f", {written:,} tokens written"
    else:
        decoder = 0.0
        flops = shapes.forward_flops_per_token(shape, tokens).total * tokens
    live = 2.0 * tokens * (_LIVE_VALUES * shape.d_model + shape.d_ff)
    live += shapes.kv_bytes_per_token(shape) * (tokens + written)
    return _Pass(
        words, flops, 1, shape.layers * _LAUNCH_S.get(shape.kind, 3e-5), written, decoder,
        shape.decoder_layers, live,
    )  # fmt: skip


def _refuse(
    question: Question,
    name: str,
    *,
    tokens: bool = False,
    output: bool = False,
    steps: bool = False,
) -> None:
    """What was said and means nothing here would be ignored silently."""
    for option, used in (("input", tokens), ("output", output), ("steps", steps)):
        if getattr(question, option) is not None and not used:
            raise InvalidValue(f"--{option} means nothing for {name}", hint=f"leave --{option} out")


def _notes(question: Question, engine: str, weights: str, model: Shape | Work) -> list[str]:
    found = []
    if question.engine is None:
        found.append(f"the engine is taken to be {engine}; --engine says otherwise")
    if question.weights is None:
        found.append(f"the weights are taken to be {weights}; --weights says otherwise")
    if model.kind in ("unet", "dit") and question.guided:
        found.append("each step is two passes, for guidance")
    if model.note:
        found.append(model.note)
    return found
