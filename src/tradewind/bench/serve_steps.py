"""Real prefills and decoding steps on this machine's GPU against their estimates.

Models of well-known shapes with random weights, by plain PyTorch: SDPA, a static cache, and on a
GPU decoding steps as CUDA graphs, which is what an engine does without its scheduler. On a CPU tiny
shapes run, for a trial.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.bench.gpu_steps import torch_or_hint, where
from tradewind.bench.serve_model import build
from tradewind.estimate import registry
from tradewind.estimate.serving import chips, formats, modes, passes, served
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.model import Accelerator
from tradewind.model.shape import Shape

_WARM_UP = 2
_STEPS_OF_A_GRAPH = 8  # replays timed together: one is too short for the clock
ENGINE = "pytorch"


@dataclass(frozen=True, slots=True)
class Pass:
    """A prefill of so many prompts of that length, or one decoding step behind so many tokens."""

    model: str
    kind: str  # prefill, decode
    batch: int
    length: int


@dataclass(frozen=True, slots=True)
class Timed:
    step: Pass
    seconds: float  # the median
    times: int
    graph: bool


PASSES = tuple(
    Pass(model, kind, batch, length)
    for model, points in {
        "llama-3.2-1b": {
            "prefill": [(1, 512), (1, 4096), (8, 1024)],
            "decode": [(1, 512), (16, 1024), (64, 1024), (128, 2048)],
        },
        "qwen3-4b": {"prefill": [(1, 2048)], "decode": [(1, 1024), (32, 2048)]},
        "llama-3.1-8b": {
            "prefill": [(1, 512), (1, 2048), (1, 8192), (8, 1024)],
            "decode": [(1, 512), (1, 8192), (8, 1024), (32, 1024), (64, 2048), (128, 1024)],
        },
        "qwen3-14b": {"prefill": [(1, 2048)], "decode": [(1, 1024), (32, 1024)]},
    }.items()
    for kind, pairs in points.items()
    for batch, length in pairs
)
_TINY = Shape(
    name="tiny", kind="decoder", layers=2, d_model=128, n_heads=4, n_kv_heads=2, head_dim=32,
    d_ff=256, gated=True, vocab=512, tied=False, positions="rotary", max_positions=4096,
    bias=False, norm="rmsnorm",
)  # fmt: skip
TINY = (
    Pass("tiny", "prefill", 1, 32), Pass("tiny", "prefill", 4, 64),
    Pass("tiny", "decode", 1, 32), Pass("tiny", "decode", 8, 64),
)  # fmt: skip


def shape_of(name: str) -> Shape:
    if name == _TINY.name:
        return _TINY
    found = registry.find(name)
    assert isinstance(found, Shape)
    return found


def measure(steps: Sequence[Pass] = PASSES, times: int = 7) -> Iterator[Timed]:
    """One entry a pass, as it is timed. What does not fit is left out."""
    torch, device = torch_or_hint(), where()
    for step in steps:
        try:
            model = build(shape_of(step.model), step.batch, step.length, device)
            found = _run(torch, model, step, times, device)
        except torch.OutOfMemoryError:
            continue
        finally:
            model = None
            gc.collect()  # a model is a ring of references; its memory would count as the next's
            if device == "cuda":
                torch.cuda.empty_cache()
        yield found


def _run(torch: Any, model: Any, step: Pass, times: int, device: str) -> Timed:
    vocab = shape_of(step.model).vocab
    on_gpu = device == "cuda"
    size = step.length if step.kind == "prefill" else 1
    place = 0 if step.kind == "prefill" else step.length
    with torch.inference_mode():
        tokens = torch.randint(vocab, (step.batch, size), device=device)

        def once() -> None:
            model(tokens, place)

        for _ in range(_WARM_UP):
            once()
        graph = _captured(torch, once) if on_gpu and step.kind == "decode" else None
        together = _STEPS_OF_A_GRAPH if graph else 1
        taken = []
        for _ in range(times):
            if on_gpu:
                torch.cuda.synchronize()
            before = clock.stopwatch()
            for _ in range(together):
                graph.replay() if graph else once()
            if on_gpu:
                torch.cuda.synchronize()
            taken.append((clock.stopwatch() - before) / together)
    return Timed(step, median(taken), times * together, graph is not None)


def _captured(torch: Any, once: Any) -> Any:
    """A step as a CUDA graph, after a run on another stream, as capturing wants it."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        once()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once()
    return graph


def estimated(step: Pass, accelerator: Accelerator) -> float:
    """Seconds by the formulas of serving, for plain PyTorch: of the pass alone, without what an
    engine adds to a request."""
    shape = shape_of(step.model)
    cases = Cases.of(
        {
            **served.of_shape(shape).columns(), **chips.columns(accelerator, "bf16", 1.0),
            "weight_bytes": formats.FORMATS["bf16"].bytes, "kv_bytes": 2.0, "precision": "16",
            "engine": ENGINE, "software": ENGINE, "model": shape.name, "group": 1.0,
            "input": step.length, "output": 1.0, "batch": step.batch, "mode": "static",
            "mean": 0.0,
        }
    )  # fmt: skip
    terms = fitted().terms(cases)
    if step.kind == "prefill":
        return float(passes.prefill(cases, terms, cases.batch, cases.group)[0])
    return float(modes.static(cases, terms).tpot[0])


def compared(found: Timed, accelerator: Accelerator) -> dict[str, Any]:
    """A pass beside its estimate, in milliseconds."""
    guess = estimated(found.step, accelerator)
    return {
        **shown(found),
        "estimated_ms": round(1e3 * guess, 3),
        "ratio": round(guess / found.seconds, 3),
    }


def shown(found: Timed) -> dict[str, Any]:
    step = found.step
    return {
        "model": step.model, "kind": step.kind, "batch": step.batch, "length": step.length,
        "measured_ms": round(1e3 * found.seconds, 3), "graph": found.graph,
    }  # fmt: skip


def row(found: Timed, accelerator: Accelerator | None, made_with: dict[str, str]) -> dict[str, Any]:
    """In the schema of docs/serving-estimate.md; on a CPU it was a trial, and is marked so."""
    step = found.step
    chip = accelerator.name if accelerator else "CPU"
    latency = "ttft_ms_p50" if step.kind == "prefill" else "tpot_ms_p50"
    how = "CUDA graph" if found.graph else "eager"
    torch, driver = made_with["torch"], made_with["driver"]
    return {
        "source": f"tradewind-{chip.lower()}", "date": made_with["measured_on"], "task": "llm",
        "model": step.model, "accelerator": chip, "n_accelerators": 1,
        "accelerators_per_replica": 1, "tp": 1, "engine": ENGINE, "engine_version": torch,
        "weight_precision": "bf16", "mode": "static-batch", "batch": step.batch,
        "input_len": step.length, "output_len": 1, latency: f"{1e3 * found.seconds:.6g}",
        "n_repeats": found.times, "quality": "ok" if accelerator else "doubtful: a trial on a CPU",
        "notes": f"{step.kind} alone, {how}, SDPA, static cache; {made_with['gpu']}, "
        f"driver {driver or 'none'}",
    }  # fmt: skip
