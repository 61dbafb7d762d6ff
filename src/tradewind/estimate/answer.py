"""One question answered: does this model train on these accelerators, and how fast?

Of all layouts that the question leaves open the fastest that fits is the answer (a simpler one if
it is nearly as fast); if none fits, the one that needs the least memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tradewind.estimate import columns, hardware, lora, samples, stacks
from tradewind.estimate.band import Evidence, Kind, half_width, kinds, reason
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants, calibration, fitted
from tradewind.estimate.layouts import Layout, layouts, preference
from tradewind.estimate.layouts import columns_of as layout_columns
from tradewind.estimate.measurements import network_gbps
from tradewind.estimate.memory import GB, fits, memory_use, usable
from tradewind.estimate.optimizers import state_bytes
from tradewind.estimate.question import Question, check
from tradewind.estimate.time import step_time
from tradewind.model.profile import Profile
from tradewind.model.shape import Shape, Work

if TYPE_CHECKING:
    import numpy as np

# Half-widths in the logarithm, where what transformers show says little.
_BANDS = {"measured": 0.3, "registry": 0.5, "profile": 0.4, "lora": 0.35, "stack": 0.35}
_ENOUGH = 3  # rows of a user's own that tell more than kin do

BOUNDS = {
    "compute": ("matrix", "attention", "vocabulary", "recompute"),
    "memory bandwidth": ("elementwise", "optimizer"),
    "network": ("tensor", "context", "expert", "gather", "data", "contention"),
    "kernel launches": ("launch",),
    "pipeline bubble": ("pipeline",),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Rates are of all accelerators together; `low_` and `high_` are the 80 % band."""

    model: str
    accelerator: str
    devices: int
    parameters: int
    trained_parameters: int
    precision: str
    stack: str
    sample: str  # what `samples` are: sequence, image, sample, token
    sequence: int | None
    global_batch: int
    layout: Layout
    fits: bool
    capacity_gb: float  # of one accelerator; here and below of 10**9 bytes
    usable_gb: float
    memory_gb: dict[str, float]  # by item at the fullest moment, and its sums
    seconds: dict[str, float]
    step_s: float
    samples_per_s: float
    low_samples_per_s: float
    high_samples_per_s: float
    tokens_per_s: float | None  # None where a sample has no tokens
    low_tokens_per_s: float | None
    high_tokens_per_s: float | None
    utilisation: float  # of the dense peak, by the FLOPs of the model alone
    bound_by: str
    considered: int
    band: str  # why the band is as wide as it is
    notes: tuple[str, ...]


def answer(
    question: Question, constants: Constants | None = None, own: Evidence | None = None
) -> Answer:
    """Raises InvalidValue, naming the field and what is legal, where no layout is possible.

    `own`: what the user measured, if that is what sharpened the constants.
    """
    import numpy as np

    check(question)
    constants = constants or fitted()
    found = layouts(question)
    asked = cases(question, found)
    use, time = memory_use(asked, constants), step_time(asked, constants)
    right = fits(asked, use, constants)
    best = int(np.argmax(np.where(right, time.tokens_per_s * preference(asked), 0)))
    if not right.any():
        best = int(np.argmin(use.peak))

    def at(column: np.ndarray[Any, Any]) -> float:
        return float(column[best])

    memory = {f.name: at(getattr(use, f.name)) / GB for f in fields(use)}
    memory |= {
        "allocated": at(use.allocated()) / GB,
        "reserved": at(use.reserved()) / GB,
        "total": memory["peak"],
    }
    seconds = {f.name: at(getattr(time, f.name)) for f in fields(time)}
    step, each = seconds.pop("step"), seconds.pop("tokens_per_s")
    groups = {name: sum(seconds[part] for part in parts) for name, parts in BOUNDS.items()}
    rate = each * question.devices / question.length
    has_tokens = isinstance(question.model, Shape) or question.sample == "token"
    tokens = rate * question.length if has_tokens else None
    flops = columns.step_flops(question.model, question.length)
    if question.lora is not None:  # no gradients of frozen weights
        flops *= (2 + at(asked.trained)) / 3
    utilisation = rate * flops / question.devices / at(asked.peak)
    case = asked.take([best])
    width, why = band_of(question, kinds(case)[0], float(half_width(case)[0]), own)
    low, high = float(np.exp(-width)), float(np.exp(width))
    if utilisation * high > 1:  # nothing passes the peak
        high = max(1 / utilisation, 1.0)
    weights = columns.parameters(question.model)
    return Answer(
        model=question.model.name,
        accelerator=question.accelerator.name,
        devices=question.devices,
        parameters=weights,
        trained_parameters=round(weights * at(asked.trained)),
        precision=question.kind_of_number,
        stack=question.software,
        sample=question.sample,
        sequence=question.length if isinstance(question.model, Shape) else None,
        global_batch=question.batch,
        layout=found[best],
        fits=bool(right[best]),
        capacity_gb=hardware.capacity_gb(question.accelerator),
        usable_gb=at(usable(asked, constants)) / GB,
        memory_gb=memory,
        seconds=seconds,
        step_s=step,
        samples_per_s=rate,
        low_samples_per_s=rate * low,
        high_samples_per_s=rate * high,
        tokens_per_s=tokens,
        low_tokens_per_s=None if tokens is None else tokens * low,
        high_tokens_per_s=None if tokens is None else tokens * high,
        utilisation=utilisation,
        bound_by=max(groups, key=groups.__getitem__),
        considered=len(found),
        band=why,
        notes=tuple(_notes(question, own)),
    )


def cases(q: Question, ways: Sequence[Layout]) -> Cases:
    """The question's columns, one entry a layout."""
    return Cases.of(columns_of(q) | layout_columns(ways))


def columns_of(q: Question) -> dict[str, Any]:
    """What the question decides, whatever the layout."""
    software = q.software
    fused = stacks.fused(software)
    precision = q.kind_of_number
    found: dict[str, Any] = {**columns.of_model(q.model, fused=fused)}
    found |= hardware.columns(q.accelerator, precision)
    found["domain"] = hardware.domain(q.accelerator, q.per_node)
    gbps = q.network_gbps or network_gbps(found["generation"])
    weight_bytes = 4.0 if precision == "fp32" else 2.0
    pure = precision == hardware.PURE
    found.setdefault("trained", 1.0)
    if q.lora is not None and isinstance(q.model, Shape):
        found["trained"] = min(lora.trained_share(q.model, q.lora), 1.0)
        weight_bytes = lora.QUANTISED_BYTES if q.quantised else weight_bytes
    return found | {
        "network": gbps * 1e9 / 8,
        "sequence": q.length,
        "stack": software,
        "fused": float(fused),
        "flash": float(q.flash),
        "weight_bytes": weight_bytes,
        "value_bytes": 4.0 if precision == "fp32" else 2.0,
        "optimizer_bytes": state_bytes(q.optimizer, weight_bytes=weight_bytes, pure=pure),
        "mixed": float(not pure and precision != "fp32"),
    }


def band_of(
    q: Question, kind: Kind, width: float, own: Evidence | None = None
) -> tuple[float, str]:
    """Half of the band, in the logarithm, and what decides it: `width` is what the evidence on its
    stack and chip says, and other things may be less certain."""
    why = reason(kind)
    rows = own.counts.get(kind, (0, 0))[0] if own and isinstance(q.model, Shape) else 0
    if rows >= _ENOUGH:
        scarce = calibration()["bands"]["scarce"]
        if scarce < width:
            width, why = scarce, f"you measured {kind.stack} on {kind.chip}: {rows} rows"
    judged = {}
    if isinstance(q.model, Work):
        # Samples were timed on NVIDIA's chips only, but on many of them.
        width, why = 0.0, ""
        if q.accelerator.vendor != "NVIDIA":
            width = calibration()["bands"]["kin"]
            why = f"{q.model.name} was not measured on {q.accelerator.vendor}'s chips"
        if samples.is_measured(q.model):
            judged["measured"] = f"{q.model.name} was measured, and its figures scatter"
        else:
            judged["registry"] = f"{q.model.name} was not measured: its work is counted"
    elif isinstance(q.model, Profile):
        judged["profile"] = "a profile counts work, and nothing was timed"
    elif q.lora is not None:
        judged["lora"] = "LoRA was not measured"
    if q.stack is not None and rows < _ENOUGH and not stacks.is_measured(q.stack):
        judged["stack"] = f"{q.stack} was not measured, only {q.software}, which it is taken as"
    for name, words in judged.items():
        if _BANDS[name] > width:
            width, why = _BANDS[name], words
    return width, why


def _notes(q: Question, own: Evidence | None) -> list[str]:
    """What was assumed where the question did not say, and what may mislead."""
    found = []
    if own and not isinstance(q.model, Shape):
        found.append("measurements of your own sharpen transformers with a shape only")
    elif own and q.software not in own.stacks:
        found.append(f"none of your measurements is of {q.software}: they change nothing")
    if q.stack is None:
        found.append(f"the software is taken to be {q.software}; --stack says otherwise")
    elif q.software != q.stack:
        found.append(f"the stack {q.stack} is taken as {q.software}")
    if q.precision is None and q.kind_of_number != "bf16":
        found.append(f"{q.accelerator.name} has no bf16: {q.kind_of_number} is taken")
    model = q.model
    if isinstance(model, Shape):
        if model.positions == "learned" and 0 < model.max_positions < q.length:
            found.append(
                f"{model.name} has learned positions for {model.max_positions:,} tokens only"
            )
        if model.kind == "encoder-decoder":
            found.append("a sequence is an input with a target as long; tokens are the input's")
    elif isinstance(model, Work):
        how = "measured" if samples.is_measured(model) else "not measured: counted"
        found.append(f"one {model.sample} is {model.input}; {model.name} was {how}")
    else:
        found.append(f"by the profile of {model.name} on {model.input}")
        found.extend(model.warnings)
    if not isinstance(model, Profile) and model.note:
        found.append(model.note)
    return found
