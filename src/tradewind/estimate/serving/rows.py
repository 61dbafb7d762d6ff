"""Published (or a user's own) measurements of serving, as cases with what was measured.

A file in the schema of docs/serving-estimate.md: CSV, gzipped or not, one measurement a row. A row
that the model cannot take is counted as unsupported, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from tradewind.base.csvfile import number
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.estimate.serving import chips, engines, formats
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.served import Served
from tradewind.model import Accelerator

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

FindChip = Callable[[str], Accelerator]
FindModel = Callable[[str], Served]
MEASURES = ("throughput", "tpot", "ttft")
_MODES = {
    "offline": "offline", "static-batch": "static", "single-stream": "static",
    "closed-loop": "closed", "server": "server", "server-interactive": "server",
    "multi-stream": "static",
}  # fmt: skip
# How a system of unknown layout is cut: weights take no more of an accelerator than this.
_FULL = 0.6
_USUAL_INPUT, _USUAL_OUTPUT = 256.0, 256.0
_UNSAID = ("", "auto", "unknown", "none", "mixed", "n/a")  # formats: 16 bits then
_POOLS = (
    re.compile(
        r"prefill tp\d+ ep\d+ gpus(?P<gpus>\d+) workers(?P<n>\d+); decode workers(?P<m>\d+)"
    ),
    re.compile(
        r"prefill (?P<n>\d+)x tp(?P<tp>\d+) dp(?P<dp>\d+); decode (?P<m>\d+)x tp(?P<dtp>\d+)"
        r" dp(?P<ddp>\d+)"
    ),
)


@dataclass(slots=True)
class Measurements:
    cases: Cases
    measured: dict[str, Column]  # of MEASURES; nan where the row has none
    per_token: Column  # output tokens/s times this is the throughput that the row gives
    sources: list[str]
    unsupported: Counter[str]
    rows: int

    def take(self, mask: Any) -> Measurements:
        return Measurements(
            self.cases.take(mask),
            {name: column[mask] for name, column in self.measured.items()},
            self.per_token[mask],
            list(compress(self.sources, mask)),
            self.unsupported,
            self.rows,
        )


def usable(row: Mapping[str, str]) -> bool:
    return row.get("quality", "ok").startswith("ok")


def is_language(row: Mapping[str, str]) -> bool:
    return row.get("task", "llm") in ("llm", "")


def read(rows: Sequence[Mapping[str, str]], chip: FindChip, model: FindModel) -> Measurements:
    """Language models' rows whose quality is ok."""
    import numpy as np

    flagged = _flagging(rows)
    found: list[dict[str, Any]] = []
    measured: list[list[float]] = []
    sources: list[str] = []
    unsupported: Counter[str] = Counter()
    total = 0
    for row in rows:
        if not usable(row) or not is_language(row):
            continue
        total += 1
        try:
            case = case_of(row, chip, model, flag=row.get("source", "") in flagged)
            outcome = outcomes(row, case["input"], case["output"])
        except (InvalidValue, NotFound) as error:
            unsupported[error.message] += 1
            continue
        if all(np.isnan(outcome[:3])):
            unsupported["nothing was measured"] += 1
            continue
        found.append(case)
        measured.append(outcome)
        sources.append(row.get("source", ""))
    names = list(found[0]) if found else []
    cases = Cases.of({name: [case[name] for case in found] for name in names}) if found else None
    table = np.array(measured).reshape(-1, 4)
    columns = {name: table[:, i] for i, name in enumerate(MEASURES)}
    if cases is None:
        cases = _none()
    return Measurements(cases, columns, table[:, 3], sources, unsupported, total)


def _flagging(rows: Sequence[Mapping[str, str]]) -> set[str]:
    """Sources whose `dp_attention` is a flag: it is 0 somewhere, and more than 1 nowhere."""
    values: dict[str, set[str]] = {}
    for row in rows:
        values.setdefault(row.get("source", ""), set()).add(row.get("dp_attention", ""))
    return {name for name, said in values.items() if "0" in said and said <= {"", "0", "1"}}


def _none() -> Cases:
    from dataclasses import fields

    single = Cases.of({f.name: 1.0 for f in fields(Cases)})
    return single.take([False])


def outcomes(row: Mapping[str, str], length: float, output: float) -> list[float]:
    """Throughput, TPOT, TTFT, and what one output token a second is in the throughput's unit."""
    each = {
        "output_tokens_per_s": 1.0,
        "total_tokens_per_s": (length + output) / max(output, 1),
        "requests_per_s": 1 / max(output, 1),
    }
    throughput, unit = float("nan"), 1.0
    for name, worth in each.items():
        value = _positive(row, name)
        if value:
            throughput, unit = value, worth
            break
    latencies = [
        (_positive(row, f"{kind}_ms_mean") or _positive(row, f"{kind}_ms_p50") or float("nan"))
        / 1000
        for kind in ("tpot", "ttft")
    ]
    return [throughput, *latencies, unit]


def _positive(row: Mapping[str, str], name: str) -> float | None:
    found = number(row, name)
    return found if found else None


def case_of(
    row: Mapping[str, str], chip: FindChip, model: FindModel, *, flag: bool = False
) -> dict[str, Any]:
    """`flag`: the source's dp_attention says whether, and not over how many ranks."""
    served = model(row.get("model", ""))
    accelerator = chip(row.get("accelerator", ""))
    engine = engines.nearest(row.get("engine", ""))
    said = row.get("weight_precision", "").strip()
    weights = formats.named("fp16" if said.lower() in _UNSAID else said)
    mode = _MODES.get(row.get("mode", ""))
    if mode is None:
        raise InvalidValue(f"the mode {row.get('mode')!r} is not known")
    layout = _layout(row, served, accelerator, weights, flag)
    case: dict[str, Any] = {**served.columns(), **layout}
    case |= chips.columns(accelerator, weights, layout["group"], by_layers=engine.by_layers)
    case |= {
        "weight_bytes": formats.FORMATS[weights].bytes,
        "kv_bytes": cache_bytes(row.get("kv_precision", ""), weights, engine),
        "precision": formats.FORMATS[weights].group,
        "engine": engine.name,
        "software": row.get("engine", "").strip().lower(),
        "model": served.name,
        "speculative": float(row.get("spec_decode", "") not in ("", "none", "unknown")),
        "input": number(row, "input_len") or _USUAL_INPUT,
        "output": number(row, "output_len") or _USUAL_OUTPUT,
        "batch": number(row, "batch") or 0.0,
        "concurrency": _clients(row, layout),
        "rate": _rate(row),
        "mean": float(bool(row.get("ttft_ms_mean") or row.get("tpot_ms_mean"))),
        "chunk": _chunk(row.get("notes", "")),
        "decode_only": float("decode speed" in row.get("assumed_fields", "")),
        "mode": "offline" if mode == "server" and "inf" in row.get("request_rate", "") else mode,
        "year": year(row.get("date", "")),
    }
    if mode == "closed" and not case["concurrency"]:
        raise InvalidValue("a closed loop without its concurrency")
    return case


def _clients(row: Mapping[str, str], layout: Mapping[str, float]) -> float:
    """Of the accelerators of the row: a source may count those of a larger system."""
    clients = number(row, "concurrency") or 0.0
    batch = (number(row, "batch") or 0.0) * layout["replicas"]
    if layout["spread_attention"]:
        batch *= layout["group"]
    return min(clients, batch) if clients and batch else clients or batch


def year(text: str) -> float:
    date = re.match(r"(\d{4})-?(\d\d)?", text)
    return int(date[1]) + (int(date[2] or 6) - 1) / 12 if date else 2025.0


def _chunk(notes: str) -> float:
    said = re.search(r"prompt batch -b (\d+)", notes)
    return float(said[1]) if said else 0.0


def _rate(row: Mapping[str, str]) -> float:
    text = row.get("request_rate", "").strip()
    return 0.0 if text.lower() in ("", "inf") else number(row, "request_rate") or 0.0


def cache_bytes(said: str, weights: str, engine: engines.Engine) -> float:
    if said.strip().lower() in formats.CACHE_BYTES:
        return formats.CACHE_BYTES[said.strip().lower()]
    narrow = formats.FORMATS[weights].group in ("8", "4")
    return 1.0 if narrow and engine.eight_bit_cache else 2.0


def _layout(
    row: Mapping[str, str], served: Served, accelerator: Accelerator, weights: str, flag: bool
) -> dict[str, float]:
    count = number(row, "n_accelerators") or 1.0
    stages = number(row, "pp") or 1.0
    each = number(row, "accelerators_per_replica")
    ranks = number(row, "dp_attention") or 0.0
    layout = {
        "stages": stages, "spread_attention": float(ranks > 1 or (flag and ranks == 1)),
        "prefill_group": 0.0, "prefill_workers": 0.0,
    }  # fmt: skip
    if row.get("disagg") == "1":
        pools = _pools(row.get("notes", ""), count)
        if pools:
            return layout | pools
    if not each:
        said = (number(row, "tp") or 0.0) * stages
        size = formats.FORMATS[weights].bytes
        each = said or smallest_group(served, accelerator, size, count)
    if engines.nearest(row.get("engine", "")).by_layers:
        layout["stages"] = stages = each
    layout["group"] = max(each / stages, 1.0)
    layout["replicas"] = max(count / each, 1.0)
    return layout


def _pools(notes: str, count: float) -> dict[str, float] | None:
    """Accelerators that prefill and those that decode, as the notes of the sources have them."""
    for pattern in _POOLS:
        found = pattern.search(notes)
        if not found:
            continue
        said = {name: float(value) for name, value in found.groupdict().items()}
        workers, decoders = max(said["n"], 1.0), max(said["m"], 1.0)
        if "gpus" in said:
            each, group = said["gpus"] / workers, (count - said["gpus"]) / decoders
        else:
            each, group = said["tp"] * said["dp"], said["dtp"] * said["ddp"]
        return {
            "group": max(group, 1.0), "replicas": decoders, "prefill_group": max(each, 1.0),
            "prefill_workers": workers,
        }  # fmt: skip
    return None


def smallest_group(
    served: Served, accelerator: Accelerator, bytes_each: float, most: float
) -> float:
    """Accelerators for one copy, where nobody says: the fewest that leave room for a cache."""
    size, group = served.params * bytes_each, 1.0
    while group < most and size / group > _FULL * accelerator.memory_gb * 2.0**30:
        group *= 2
    return min(group, most)
