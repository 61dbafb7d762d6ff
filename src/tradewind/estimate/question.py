"""One question answered: does this model train on these accelerators, and how fast?

What the layout leaves open is searched: every degree of tensor and pipeline parallelism that
divides the model, sharding stages, micro-batches and recompute. The fastest that fits is the
answer; if none fits, the one that needs the least memory.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from tradewind.errors import InvalidValue
from tradewind.estimate import columns, hardware
from tradewind.estimate.band import half_width
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants, fitted
from tradewind.estimate.measurements import network_gbps, stack_of
from tradewind.estimate.memory import GB, MemoryUse, fits, memory_use
from tradewind.estimate.time import StepTime, step_time
from tradewind.model import Accelerator
from tradewind.model.shape import Shape

if TYPE_CHECKING:
    import numpy as np

SHARDINGS = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}
RECOMPUTES = {"none": 0, "selective": 1, "full": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`None` where the layout is to be chosen. Batches are in sequences."""

    shape: Shape
    accelerator: Accelerator
    per_node: int
    nodes: int
    sequence: int
    global_batch: int
    precision: str = "bf16"
    stack: str = "megatron"
    tp: int | None = None
    pp: int | None = None
    cp: int = 1
    ep: int = 1
    micro_batch: int | None = None
    sharding: str | None = None
    recompute: str | None = None
    network_gbps: float | None = None  # for each accelerator


@dataclass(frozen=True, slots=True)
class Layout:
    dp: int
    tp: int
    pp: int
    cp: int
    ep: int
    micro_batch: int
    accumulation: int
    sharding: str
    recompute: str


@dataclass(frozen=True, slots=True)
class Answer:
    layout: Layout
    fits: bool
    memory_gb: dict[str, float]
    seconds: dict[str, float]
    step_s: float
    tokens_per_s: float  # of all accelerators together
    low_tokens_per_s: float  # the 80 % band
    high_tokens_per_s: float
    utilisation: float  # of the dense peak, by the FLOPs of the model alone
    bound_by: str
    considered: int


BOUNDS = {
    "compute": ("matrix", "attention", "vocabulary", "recompute"),
    "memory bandwidth": ("elementwise", "optimizer"),
    "network": ("tensor", "context", "expert", "gather", "data"),
    "kernel launches": ("launch",),
    "pipeline bubble": ("pipeline",),
}


def answer(question: Question, constants: Constants | None = None) -> Answer:
    """Raises InvalidValue, naming the field and what is legal, where no layout is possible."""
    import numpy as np

    layouts = _layouts(question)
    cases = _cases(question, layouts)
    constants = constants or fitted()
    use, time = memory_use(cases, constants), step_time(cases, constants)
    right = fits(cases, use, constants)
    best = int(np.argmax(np.where(right, time.tokens_per_s, 0)))
    if not right.any():
        best = int(np.argmin(use.peak))
    return _answer(question, layouts, cases, use, time, best, bool(right[best]))


def _layouts(q: Question) -> list[Layout]:
    devices = q.per_node * q.nodes
    layers = q.shape.layers + q.shape.decoder_layers
    if devices % (q.cp or 1):
        raise InvalidValue(f"cp is {q.cp}, which does not divide {devices} accelerators")
    tps = [q.tp] if q.tp else [t for t in _powers(min(q.per_node, 64)) if not q.shape.n_heads % t]
    pps = [q.pp] if q.pp else [p for p in _powers(min(devices, layers)) if not layers % p]
    _divides(q.shape.n_heads, q.tp, "tp", "attention heads")
    _divides(layers, q.pp, "pp", "layers")
    micros = [q.micro_batch] if q.micro_batch else _powers(64)
    shardings = [q.sharding] if q.sharding else ["none", "zero1", "zero3"]
    recomputes = [q.recompute] if q.recompute else list(RECOMPUTES)
    found = []
    for tp, pp, micro, sharding, recompute in product(tps, pps, micros, shardings, recomputes):
        if devices % (tp * pp * q.cp) or (pp > 1 and sharding == "zero3" and not q.sharding):
            continue
        dp = devices // (tp * pp * q.cp)
        if q.global_batch % (dp * micro) or (dp == 1 and sharding != "none" and not q.sharding):
            continue
        accumulation = q.global_batch // (dp * micro)
        found.append(Layout(dp, tp, pp, q.cp, q.ep, micro, accumulation, sharding, recompute))
    if not found:
        raise InvalidValue(
            f"{devices} accelerators and a global batch of {q.global_batch} sequences cannot be "
            "divided that way",
            hint="devices = dp × tp × pp × cp, and the global batch is a multiple of "
            "dp × micro-batch",
        )
    return found


def _powers(most: int) -> list[int]:
    return [2**n for n in range(most.bit_length()) if 2**n <= most]


def _divides(whole: int, by: int | None, name: str, what: str) -> None:
    if by and (by < 1 or whole % by):
        legal = ", ".join(str(n) for n in range(1, whole + 1) if not whole % n)
        raise InvalidValue(f"{name} is {by}, which does not divide {whole} {what}", hint=f"{legal}")


def _cases(q: Question, layouts: list[Layout]) -> Cases:
    found: dict[str, Any] = {**columns.of_shape(q.shape)}
    found |= hardware.columns(q.accelerator, q.precision)
    if not found["generation"].startswith("tpu"):
        found["domain"] = max(found["domain"] if found["domain"] > 8 else q.per_node, 1)
    gbps = q.network_gbps or network_gbps(found["generation"])
    found |= {
        "network": gbps * 1e9 / 8,
        "sequence": q.sequence,
        "stack": stack_of(q.stack),
        "fused": 0 if "eager" in q.stack or "nanotron" in q.stack else 1,
        "dp": [lay.dp for lay in layouts],
        "tp": [lay.tp for lay in layouts],
        "pp": [lay.pp for lay in layouts],
        "cp": [lay.cp for lay in layouts],
        "ep": [lay.ep for lay in layouts],
        "shard": [lay.dp for lay in layouts],
        "micro_batch": [lay.micro_batch for lay in layouts],
        "accumulation": [lay.accumulation for lay in layouts],
        "zero": [SHARDINGS[lay.sharding] for lay in layouts],
        "recompute": [RECOMPUTES[lay.recompute] for lay in layouts],
    }
    return Cases.of(found)


def _answer(
    q: Question,
    layouts: list[Layout],
    cases: Cases,
    use: MemoryUse,
    time: StepTime,
    best: int,
    right: bool,
) -> Answer:
    import numpy as np

    def at(column: np.ndarray[Any, Any]) -> float:
        return float(column[best])

    memory = {f.name: at(getattr(use, f.name)) / GB for f in fields(use)}
    seconds = {f.name: at(getattr(time, f.name)) for f in fields(time)}
    step, each = seconds.pop("step"), seconds.pop("tokens_per_s")
    devices = q.per_node * q.nodes
    width = at(half_width(cases))
    groups = {name: sum(seconds[part] for part in parts) for name, parts in BOUNDS.items()}
    from tradewind.estimate.shapes import forward_flops_per_token

    flops = 3 * sum(forward_flops_per_token(q.shape, q.sequence))
    return Answer(
        layout=replace(layouts[best]),
        fits=right,
        memory_gb=memory,
        seconds=seconds,
        step_s=step,
        tokens_per_s=each * devices,
        low_tokens_per_s=each * devices * float(np.exp(-width)),
        high_tokens_per_s=each * devices * float(np.exp(width)),
        utilisation=each * flops / at(cases.peak),
        bound_by=max(groups, key=groups.__getitem__),
        considered=len(layouts),
    )
