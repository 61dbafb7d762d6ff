"""Published outcomes of memory: what ran, what did not, and the peak where it was told.

A file in the schema of docs/measurements.md. Rows of fine-tuning are read too (LoRA, QLoRA).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.base.csvfile import number
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants
from tradewind.estimate.lora import QUANTISED_BYTES
from tradewind.estimate.measurements import FindAccelerator, FindShape, case_of, none_usable
from tradewind.estimate.memory import GIB, memory_use
from tradewind.estimate.weights import Weights

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column, Flags

_OUTCOMES = ("ok", "oom", "crashed_or_oom")
_LORA_SHARE = 0.004  # of the weights, at rank 8 to 32
_REDUCED_OPTIMIZER_BYTES = 0.25  # kept elsewhere, and applied while going back
_TORCH = (
    "foundry", "mosaic", "litgpt", "lightning", "torchtune", "torchtitan", "fsdp", "axolotl",
    "huggingface", "transformers", "unsloth", "llama-factory", "olmo", "pytorch",
)  # fmt: skip
_FUSED_LOSS = ("llm-foundry",)  # eager, but for its kernels and loss
_DEVICE = ("bigscience",)  # read from the device: with the context and what is cached
_DECIMAL = ("litgpt", "lightning")  # report peaks in 10**9 bytes, not in 2**30


@dataclass(slots=True)
class Outcomes:
    cases: Cases
    ran: Column  # 1 or 0
    peak_gb: Column  # of 2**30 bytes; 0 where it was not told
    whole: Flags  # whether that peak counts all of the device's memory, not only tensors
    sources: list[str]
    models: list[str]
    unsupported: Counter[str]
    rows: int

    def as_published(self, constants: Constants) -> Column:
        """The estimated peaks in GB, as they would be told: those of the first device, and of its
        tensors alone unless the device itself was asked."""
        import numpy as np

        use = memory_use(self.cases, constants, first_stage=True)
        found: Column = np.where(self.whole, use.peak, use.allocated()) / GIB
        return found

    def take(self, mask: Any) -> Outcomes:
        def kept(names: list[str]) -> list[str]:
            return [name for name, keep in zip(names, mask, strict=True) if keep]

        return Outcomes(
            self.cases.take(mask),
            self.ran[mask],
            self.peak_gb[mask],
            self.whole[mask],
            kept(self.sources),
            kept(self.models),
            self.unsupported,
            self.rows,
        )


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
        raise none_usable(unsupported)
    return Outcomes(
        Cases.of({name: [case[name] for case in found] for name in found[0]}),
        np.array([_outcome(row) == "ok" for row in kept], dtype=np.float64),
        np.array([_peak(row) for row in kept]),
        np.array([_has(_words(row), _DEVICE) for row in kept]),
        [row.get("source", "") for row in kept],
        [row.get("model", "") for row in kept],
        unsupported,
        len(rows),
    )


def _case(row: Mapping[str, str], accelerator: FindAccelerator, shape: FindShape) -> dict[str, Any]:
    if _outcome(row) not in _OUTCOMES:
        raise InvalidValue(f"outcome is {_outcome(row)!r}, not one of {', '.join(_OUTCOMES)}")
    whole = dict(row)
    devices = number(row, "n_gpus") or 1
    whole["gpus_per_node"] = str(min(8, devices))
    whole["stack"] = row.get("stack") or _stack(row)
    case = case_of(whole, accelerator, shape)
    case["memory_gb"] = number(row, "accelerator_mem_gb") or case["memory_gb"]
    words = _words(row)
    eager = case["stack"] in ("nanotron", "fsdp-eager") and not _has(words, _FUSED_LOSS)
    case |= {"fused": 0 if eager else 1, "trained": 1, "weight_bytes": 2}
    # Policies of one's own keep or offload little; and what is not told was made to fit.
    if _has(row.get("activation_ckpt", ""), ("custom", "offload", "unknown")):
        case["recompute"] = 2
    if case["experts"]:
        # Recipes of experts spread them, and compute what is cheap again, as a matter of course.
        if not row.get("ep"):
            case["ep"] = min(case["experts"], case["dp"])
        if not row.get("activation_ckpt"):
            case["recompute"] = 1
    task = row.get("task", "pretrain")
    if task in ("lora", "qlora"):
        case |= {"trained": _LORA_SHARE, "zero": 0}
        case["weight_bytes"] = QUANTISED_BYTES if task == "qlora" else 2
    if task == "sft":
        case |= _tuning(row, devices, case)
    if _has(words, ("memory-reduced optimizer", "8-bit", "8bit")):
        case |= {"optimizer_bytes": _REDUCED_OPTIMIZER_BYTES, "mixed": 0}
    return case


def _outcome(row: Mapping[str, str]) -> str:
    return row.get("outcome", "").strip().lower()


def _peak(row: Mapping[str, str]) -> float:
    told = number(row, "peak_mem_gb") or 0
    return told * 1e9 / GIB if _has(_words(row), _DECIMAL) else told


def _tuning(row: Mapping[str, str], devices: float, case: Mapping[str, Any]) -> dict[str, float]:
    """All weights tuned, by a tool that does not say how: in 16 bits throughout, and sharded."""
    if row.get("sharding"):
        return {}
    if devices > 1:
        return {"zero": 3, "shard": devices, "optimizer_bytes": 4, "mixed": 0}
    # Whoever has little room left takes an optimizer that needs little.
    weights = Weights(Cases.of({**case, "ep": 1}))
    number_of = float((weights.layer * case["layers"] + weights.embedding)[0])
    tight = (2 + 2 + 4) * number_of > 0.5 * case["memory_gb"] * GIB
    return {"optimizer_bytes": _REDUCED_OPTIMIZER_BYTES if tight else 4, "mixed": 0}


def _stack(row: Mapping[str, str]) -> str:
    """Read from the source where the row does not say it, else from how the model is spread."""
    words = _words(row)
    tpu = row.get("accelerator", "").upper().startswith("TPU")
    if "nanotron" in words:
        return "nanotron"
    if tpu or _has(words, ("maxtext", "paxml", "tpu-recipes", "jax")):
        return "xla-tpu" if tpu else "xla-gpu"
    torch = "fsdp-compile" if row.get("compile", "") in ("1", "1.0") else "fsdp-eager"
    megatron = "megatron-preFA" if row.get("flash_attention", "") in ("0", "0.0") else "megatron"
    if _has(words, ("nemo", "megatron", "dgxc", "bigscience", "vtrain", "neox")):
        return megatron
    if _has(words, _TORCH):
        return torch
    split = (number(row, "tp") or 1) * (number(row, "pp") or 1) > 1
    return megatron if split or row.get("sharding", "") == "zero1" else torch


def _words(row: Mapping[str, str]) -> str:
    names = ("source", "source_url_or_path", "notes", "stack")
    return " ".join(row.get(name, "") for name in names).lower()


def _has(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)
