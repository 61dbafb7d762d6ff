"""Published outcomes of memory: what ran, what did not, and the peak where it was told.

A file in the schema of docs/measurements.md. Rows of fine-tuning are read too (LoRA, QLoRA).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.csvfile import number
from tradewind.errors import BadFile, InvalidValue, NotFound
from tradewind.estimate.cases import Cases
from tradewind.estimate.measurements import FindAccelerator, FindShape, case_of

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column

_LORA_SHARE = 0.004  # of the weights, at rank 8 to 32
_QUANTISED_BYTES = 0.6  # a weight in 4 bits, with its scales


@dataclass(slots=True)
class Outcomes:
    cases: Cases
    ran: Column  # 1 or 0
    peak_gb: Column  # 0 where it was not told
    sources: list[str]
    unsupported: Counter[str]
    rows: int


def read(
    rows: Sequence[Mapping[str, str]], accelerator: FindAccelerator, shape: FindShape
) -> Outcomes:
    import numpy as np

    found: list[dict[str, Any]] = []
    kept: list[Mapping[str, str]] = []
    unsupported: Counter[str] = Counter()
    for row in rows:
        try:
            found.append(_case(row, accelerator, shape))
        except (InvalidValue, NotFound) as error:
            unsupported[error.message] += 1
            continue
        kept.append(row)
    if not found:
        raise BadFile(
            "no row can be used" + (f": {unsupported.most_common(1)[0][0]}" if unsupported else "")
        )
    return Outcomes(
        Cases.of({name: [case[name] for case in found] for name in found[0]}),
        np.array([row["outcome"] == "ok" for row in kept], dtype=np.float64),
        np.array([number(row, "peak_mem_gb") or 0 for row in kept]),
        [row.get("source", "") for row in kept],
        unsupported,
        len(rows),
    )


def _case(row: Mapping[str, str], accelerator: FindAccelerator, shape: FindShape) -> dict[str, Any]:
    whole = dict(row)
    devices = number(row, "n_gpus") or 1
    whole["gpus_per_node"] = str(min(8, devices))
    whole["dp"] = row.get("dp") or str(devices)
    words = f"{row.get('source', '')} {row.get('notes', '')} {row.get('stack', '')}".lower()
    old = row.get("flash_attention", "") in ("0", "0.0")
    eager = row.get("compile", "") in ("0", "0.0") or "nanotron" in words
    whole["stack"] = row.get("stack") or (
        "nanotron" if "nanotron" in words else "megatron-preFA" if old else "megatron"
    )
    case = case_of(whole, accelerator, shape)
    case["memory_gb"] = number(row, "accelerator_mem_gb") or case["memory_gb"]
    case |= {"fused": 0 if eager else 1, "trained": 1, "weight_bytes": 2, "optimizer_bytes": 12}
    # Policies of one's own keep or offload little; and what is not told was made to fit.
    if any(word in row.get("activation_ckpt", "") for word in ("custom", "offload", "unknown")):
        case["recompute"] = 2
    task = row.get("task", "pretrain")
    if task in ("lora", "qlora"):
        case |= {"trained": _LORA_SHARE, "zero": 0}
        case["weight_bytes"] = _QUANTISED_BYTES if task == "qlora" else 2
    if "memory-reduced optimizer" in words or "8-bit" in words or "8bit" in words:
        case["optimizer_bytes"] = 2
    if task == "sft" and not row.get("sharding") and devices > 1:
        case |= {"zero": 3, "shard": devices}
    return case
