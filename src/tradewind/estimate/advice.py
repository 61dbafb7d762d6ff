"""What would make it fit, or go faster: the same question with one thing changed, asked again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.estimate import hardware, stacks
from tradewind.estimate.answer import Answer, answer
from tradewind.estimate.band import on_record
from tradewind.estimate.constants import Constants, fitted
from tradewind.estimate.layouts import Layout
from tradewind.estimate.measurements import network_gbps
from tradewind.estimate.question import Question
from tradewind.model.shape import Shape

_WORTH = 1.03  # what is faster by less is not mentioned
_MOST = 3
_MOST_NODES = 4096
_LORA_RANK = 16

# What a layout decides, and how it is spoken of once another is found.
_LAYOUT = {
    "recompute": "{0.recompute} recompute",
    "micro_batch": "a micro-batch of {0.micro_batch}",
    "sharding": "{0.sharding} sharding",
    "tp": "tp {0.tp}",
    "pp": "pp {0.pp}",
    "cp": "cp {0.cp}",
    "ep": "ep {0.ep}",
}
_ALL = "another layout ({0.words}; micro-batch {0.micro_batch})"


@dataclass(frozen=True, slots=True)
class Advice:
    change: str  # `a micro-batch of 2`
    speedup: float  # against the answer; 1.08 is 8 % faster
    peak_gb: float
    fits: bool


def advise(q: Question, found: Answer, constants: Constants | None = None) -> list[Advice]:
    """The changes that help most. Where it does not fit, the smallest that make it fit first."""
    constants = constants or fitted()
    heard: list[Advice] = []
    seen: list[tuple[Question, Layout]] = []  # what a larger change would only repeat
    for change, changed in _changes(q, found, constants):
        try:
            other = answer(changed, constants)
        except InvalidValue:
            continue
        if (free := _undecided(changed), other.layout) in seen:
            continue
        seen.append((free, other.layout))
        # More accelerators do more: what counts is what each does.
        more = changed.devices / q.devices
        speedup = other.samples_per_s / found.samples_per_s / more
        spoken = re.sub("^none", "no", change.format(other.layout))
        heard.append(Advice(spoken, speedup, other.memory_gb["peak"], other.fits))
    if not found.fits:
        return [a for a in heard if a.fits][:_MOST]
    faster = [a for a in heard if a.fits and a.speedup >= _WORTH]
    return sorted(faster, key=lambda a: -a.speedup)[:_MOST]


def _changes(q: Question, found: Answer, constants: Constants) -> Iterator[tuple[str, Question]]:
    """From the least trouble to the most."""
    decided = [name for name in _LAYOUT if getattr(q, name) is not None]
    for name in decided:
        freed: dict[str, Any] = {name: None} | ({"vp": 1} if name == "pp" else {})
        yield _LAYOUT[name], replace(q, **freed)
    if len(decided) > 1:
        yield _ALL, _undecided(q)
    if not q.flash:
        yield "flash attention", replace(q, flash=True)
    yield from _to_go_faster(q, found) if found.fits else _to_fit(q, constants)


def _undecided(q: Question) -> Question:
    freed: dict[str, Any] = dict.fromkeys(_LAYOUT)
    return replace(q, vp=1, **freed)


def _to_fit(q: Question, constants: Constants) -> Iterator[tuple[str, Question]]:
    if q.optimizer == "adamw":
        yield "an 8-bit AdamW", replace(q, optimizer="adamw-8bit")
    nodes = q.nodes
    while nodes < _MOST_NODES and q.devices / q.nodes * nodes < 8 * q.batch:
        nodes *= 2
        free = replace(_undecided(q), nodes=nodes)
        try:
            enough = answer(free, constants).fits
        except InvalidValue:
            break
        if enough:
            yield f"{nodes} nodes", free
            break
    if isinstance(q.model, Shape):
        if q.lora is None:
            tuned = replace(q, lora=_LORA_RANK)
            yield f"LoRA of rank {_LORA_RANK}", tuned
            yield f"QLoRA of rank {_LORA_RANK}", replace(tuned, quantised=True)
        elif not q.quantised:
            yield f"QLoRA of rank {q.lora}", replace(q, quantised=True)
        if q.model.kind != "vision" and q.length >= 2048:
            yield f"sequences of {q.length // 2}", replace(q, sequence=q.length // 2)


def _to_go_faster(q: Question, found: Answer) -> Iterator[tuple[str, Question]]:
    if isinstance(q.model, Shape) and q.kind_of_number in ("bf16", "fp16"):
        for precision in ("mxfp8", "fp8"):
            if precision in hardware.precisions(q.accelerator) and q.lora is None:
                yield precision, replace(q, precision=precision)
                break
    if q.kind_of_number == "fp32" and "bf16" in hardware.precisions(q.accelerator):
        yield "bf16", replace(q, precision="bf16")
    if not stacks.fused(q.software):
        yield "a compiled stack (fsdp-compile)", replace(q, stack="fsdp-compile")
    decoder = isinstance(q.model, Shape) and q.model.kind == "decoder" and q.lora is None
    # Where it was never seen to run, it is no advice.
    known = on_record("megatron", hardware.generation(q.accelerator))
    if decoder and known and q.software.startswith("fsdp"):
        yield "the stack megatron", replace(q, stack="megatron")
    lay = found.layout
    if lay.accumulation < 8 or lay.pp > 1:
        yield f"a global batch of {4 * q.batch}", replace(q, global_batch=4 * q.batch)
    if found.bound_by == "network" or found.seconds["data"] > 0.1 * found.step_s:
        doubled = 2 * (q.network_gbps or network_gbps(hardware.generation(q.accelerator)))
        if q.nodes > 1:
            yield f"a network of {doubled:g} Gbit/s each", replace(q, network_gbps=doubled)
    if q.quantised:
        yield "LoRA without quantising", replace(q, quantised=False)
