"""Published (or a user's own) measurements of training throughput, as cases with their outcome.

A file in the schema of docs/measurements.md: CSV, gzipped or not, one measurement a row. A row that
the model cannot take is counted as unsupported, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base import csvfile
from tradewind.base.csvfile import number
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.estimate import hardware, interconnect
from tradewind.estimate.cases import STACKS, Cases
from tradewind.model import Accelerator

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column

FindAccelerator = Callable[[str, float | None], Accelerator]
FindShape = Callable[[str], Mapping[str, float] | None]

_SHAPE = ("layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab")
_EXPERTS = ("experts", "experts_per_token", "d_ff_expert")
_ZERO = {"none": 0, "": 0, "ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3, "fsdp": 3, "hsdp": 3}
# Parts of a software stack's name, and which of ours it is most like.
KIN = {
    "nemo": "megatron", "deepspeed": "megatron", "mcore": "megatron", "maxtext": "xla-tpu",
    "pax": "xla-gpu", "jax": "xla-gpu", "xla": "xla-gpu", "torchtitan": "fsdp-compile",
    "compile": "fsdp-compile", "eager": "fsdp-eager", "ddp": "fsdp-eager",
    "fsdp": "fsdp-eager", "megatron": "megatron", "nanotron": "nanotron",
    "torch": "fsdp-eager", "lightning": "fsdp-eager", "accelerate": "fsdp-eager",
    "composer": "fsdp-eager", "foundry": "fsdp-eager", "litgpt": "fsdp-eager",
    "transformers": "fsdp-eager", "trainer": "fsdp-eager", "axolotl": "fsdp-eager",
    "unsloth": "fsdp-eager", "neox": "megatron",
}  # fmt: skip
# Where nothing is said of the network, what such machines usually have for each device.
_NETWORK_GBPS = {"volta": 50, "ampere": 200, "hopper": 400, "blackwell": 400}


@dataclass(slots=True)
class Measurements:
    cases: Cases
    tokens_per_s: Column  # for each device
    sources: list[str]
    models: list[str]
    networks: list[str]  # between machines, as described: "roce 200"
    unsupported: Counter[str]
    rows: int  # of pretraining that are fit to be used

    def take(self, mask: Any) -> Measurements:
        return Measurements(
            self.cases.take(mask),
            self.tokens_per_s[mask],
            list(compress(self.sources, mask)),
            list(compress(self.models, mask)),
            list(compress(self.networks, mask)),
            self.unsupported,
            self.rows,
        )


def rows_of(path: Path) -> list[dict[str, str]]:
    """What a short row lacks is empty, and what is beyond the header is dropped."""
    return [
        {name: cell or "" for name, cell in cells.items() if name is not None}
        for _, cells in csvfile.rows(path)
    ]


def read(
    rows: Sequence[Mapping[str, str]], accelerator: FindAccelerator, shape: FindShape
) -> Measurements:
    """Rows of pretraining whose quality is ok."""
    import numpy as np

    found: list[dict[str, Any]] = []
    outcomes: list[float] = []
    sources: list[str] = []
    models: list[str] = []
    networks: list[str] = []
    unsupported: Counter[str] = Counter()
    total = 0
    for row in rows:
        if (
            not row.get("quality", "ok").startswith("ok")
            or row.get("task", "pretrain") != "pretrain"
        ):
            continue
        total += 1
        try:
            outcome = number(row, "tokens_per_s_per_gpu")
            case = case_of(row, accelerator, shape)
            if not outcome:
                raise InvalidValue("no tokens_per_s_per_gpu")
        except (InvalidValue, NotFound) as error:
            unsupported[error.message] += 1
            continue
        found.append(case)
        outcomes.append(outcome)
        sources.append(row.get("source", ""))
        models.append(row.get("model", ""))
        fabric = interconnect.fabric(row.get("interconnect", ""))
        networks.append(f"{fabric} {case['network'] * 8 / 1e9:g}")
    if not found:
        raise none_usable(unsupported)
    cases = Cases.of({name: [case[name] for case in found] for name in found[0]})
    return Measurements(cases, np.array(outcomes), sources, models, networks, unsupported, total)


def none_usable(unsupported: Counter[str]) -> BadFile:
    """With the most frequent reason."""
    why = f": {unsupported.most_common(1)[0][0]}" if unsupported else ""
    return BadFile(f"no row can be used{why}")


def case_of(
    row: Mapping[str, str], accelerator: FindAccelerator, shape: FindShape
) -> dict[str, Any]:
    chip = accelerator(row.get("accelerator", ""), number(row, "accelerator_mem_gb"))
    case: dict[str, Any] = dict(_model(row, shape))
    # Four bits are new: their nearest kin are eight with scales for each block.
    precision = re.sub(r".*fp4", "mxfp8", row.get("precision", "bf16").lower())
    case |= hardware.columns(chip, precision)
    node = number(row, "gpus_per_node") or 8
    text = row.get("interconnect", "")
    if not case["generation"].startswith("tpu"):
        case["domain"] = 72 if "nvl72" in text else node
    usual = network_gbps(case["generation"])
    case["network"] = interconnect.network_gbps(text, node, usual) * 1e9 / 8
    case["link"] = interconnect.link(text, case["generation"], case["link"])
    for name in ("tp", "pp", "vp", "cp", "ep", "micro_batch"):
        case[name] = number(row, name) or 1
    replicas = (number(row, "n_gpus") or 1) / (case["tp"] * case["pp"] * case["cp"])
    case["dp"] = number(row, "dp") or max(replicas, 1)
    turns = (number(row, "global_batch") or 1) / (case["dp"] * case["micro_batch"])
    case["accumulation"] = number(row, "grad_accum") or max(turns, 1)
    case["sequence"] = number(row, "seq_len") or 2048
    sharding = row.get("sharding", "").lower()
    case["zero"] = _ZERO.get(sharding, 0)
    case["shard"] = min(case["dp"], node) if sharding == "hsdp" else case["dp"]
    case["flash"] = 0 if row.get("flash_attention", "1") in ("0", "0.0") else 1
    case["recompute"] = _recompute(row.get("activation_ckpt", ""))
    case["stack"] = stack_of(row.get("stack", ""))
    pure = precision == hardware.PURE
    case |= {"mixed": float(not pure), "optimizer_bytes": 4.0 if pure else 12.0}
    date = re.match(r"(\d{4})-?(\d\d)?", row.get("sw_date", ""))
    case["year"] = int(date[1]) + (int(date[2] or 6) - 1) / 12 if date else 2025
    return case


def _model(row: Mapping[str, str], shape: FindShape) -> Mapping[str, float]:
    given = {name: number(row, name) for name in _SHAPE}
    experts = {name: number(row, name) or 0 for name in _EXPERTS}
    # Published tables have no columns for experts.
    told = all(given.values()) and (row.get("arch", "") != "moe" or experts["experts"])
    known = None if told else shape(row.get("model", ""))
    if known is not None:
        return known
    layers, d_model, heads = given["layers"], given["d_model"], given["n_heads"]
    if not (layers and d_model and heads):
        raise InvalidValue(f"the shape of {row.get('model')!r} is not known")
    usual = {
        "n_kv_heads": heads, "head_dim": d_model / heads, "d_ff": 4 * d_model, "vocab": 50_000,
    }  # fmt: skip
    return {
        **{name: value or usual[name] for name, value in given.items()},
        **({"d_ff": 0} if experts["experts"] else {}),
        "gated": number(row, "gated") or 0,
        "tied": number(row, "tied_emb") or 0,
        **experts, "d_ff_shared": 0, "hybrid": 0,
        "mixing": 0, "attending": 1, "window": 0, "windowed": 0, "causal": 1,
    }  # fmt: skip


def stack_of(name: str) -> str:
    """Our nearest kin of a software stack."""
    if name in STACKS:
        return name
    plain = name.lower()
    return next((ours for word, ours in KIN.items() if word in plain), "fsdp-eager")


def _recompute(text: str) -> int:
    if text == "full":
        return 2
    return 1 if text and text not in ("none", "unknown") else 0


def network_gbps(generation: str) -> float:
    """What machines of that generation usually have, Gbit/s for each accelerator."""
    return _NETWORK_GBPS.get(generation, 100)
