"""Measured steps as rows of our schema (docs/measurements.md), ready to go into `measurements/`.

A row says what was measured and with what: GPU, driver, PyTorch, month. Nothing in it tells whose
machine it was: no host, user or path.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.bench.decoder import VISITED
from tradewind.bench.gpu_steps import Measured
from tradewind.catalog import files
from tradewind.estimate.memory import GB, GIB
from tradewind.model import Accelerator
from tradewind.telemetry import gpus

COLUMNS = (
    "source", "stack", "sw_date", "task", "arch", "model", "layers", "d_model", "n_heads",
    "n_kv_heads", "head_dim", "d_ff", "gated", "vocab", "tied_emb", "seq_len", "accelerator",
    "accelerator_mem_gb", "n_gpus", "gpus_per_node", "interconnect", "precision", "dp", "tp", "pp",
    "vp", "cp", "ep", "sharding", "micro_batch", "grad_accum", "activation_ckpt",
    "flash_attention", "compile", "tokens_per_s_per_gpu", "peak_mem_gb", "quality", "notes",
    # What files before had in their notes, or not at all.
    "experts", "experts_per_token", "d_ff_expert", "lora_rank", "outcome", "allocated_gb",
    "reserved_gb", "context_gb", "gpu", "driver", "torch", "measured_on",
)  # fmt: skip


def row(
    found: Measured, accelerator: Accelerator | None, made_with: dict[str, str]
) -> dict[str, Any]:
    """Without an accelerator it was a trial on a CPU, and is marked as none to fit to."""
    step = found.step
    chip = accelerator.name if accelerator else "CPU"
    how = (
        "16-bit weights and states"
        if step.precision == "pure-bf16"
        else "autocast over 32-bit weights"
    )
    if step.lora:
        how = "adapters in 32 bits on frozen 16-bit weights"

    def size(number: int | None, unit: float) -> float | str:
        return round(number / unit, 3) if number else ""

    held = (found.allocated or 0) + (found.context or 0)
    return {
        **dict.fromkeys(("n_gpus", "gpus_per_node", "dp", "tp", "pp", "vp", "cp", "ep"), 1),
        "source": f"tradewind-{chip.lower()}",
        "stack": step.stack,
        "sw_date": made_with["measured_on"][:7],
        "task": "lora" if step.lora else "pretrain",
        "arch": "moe" if step.experts else "dense",
        "model": step.name,
        "layers": step.layers,
        "d_model": step.d_model,
        "n_heads": step.heads,
        "n_kv_heads": step.heads,
        "head_dim": step.head_dim,
        "d_ff": step.d_ff,
        "gated": 1,
        "vocab": step.vocab,
        "tied_emb": 0,
        "seq_len": step.sequence,
        "accelerator": chip,
        "accelerator_mem_gb": f"{accelerator.memory_gb:g}" if accelerator else "",
        "precision": step.precision,
        "sharding": "none",
        "micro_batch": step.micro_batch,
        "grad_accum": 1,
        "activation_ckpt": "full" if step.recompute else "none",
        "flash_attention": 1,
        "compile": int(step.compiled),
        "tokens_per_s_per_gpu": round(found.tokens_per_s, 1),
        "peak_mem_gb": size(held, GIB),
        "quality": "ok" if accelerator else "q: a trial on a CPU",
        "notes": f"{how}; fused AdamW; median of {found.timed} steps",
        "experts": step.experts or "",
        "experts_per_token": min(VISITED, step.experts) if step.experts else "",
        "d_ff_expert": step.d_ff if step.experts else "",
        "lora_rank": step.lora or "",
        "outcome": "ok",
        "allocated_gb": size(found.allocated, GB),
        "reserved_gb": size(found.reserved, GB),
        "context_gb": size(found.context, GB),
        **made_with,
    }


def made_with(gpu: str) -> dict[str, str]:
    """The provenance of everything that is measured now."""
    import torch

    return {
        "gpu": gpu,
        "driver": gpus.driver_version(),
        "torch": str(torch.__version__),
        "measured_on": clock.today().isoformat(),
    }


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    try:
        files.replace(path, text.getvalue().encode())
    except OSError as error:
        raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None
