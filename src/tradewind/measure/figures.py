"""What a load has shown: throughput and latencies, and the row that says so. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tradewind.measure.loads import Sent

COLUMNS = (
    "source", "date", "task", "model", "weight_variant", "accelerator", "n_accelerators",
    "accelerators_per_replica", "tp", "engine", "engine_version", "weight_precision", "mode",
    "batch", "concurrency", "request_rate", "input_len", "output_len", "output_tokens_per_s",
    "total_tokens_per_s", "requests_per_s",
    *(
        f"{kind}_ms_{statistic}"
        for kind in ("ttft", "tpot", "e2e")
        for statistic in ("mean", "p50", "p90", "p99")
    ),
    "n_repeats", "quality", "assumed_fields", "notes",
)  # fmt: skip
FEW = 0.02  # share of requests that may fail before a row is doubtful


@dataclass(frozen=True, slots=True)
class Load:
    """Lengths in tokens; clients, or a rate of requests a second."""

    input: int
    output: int
    clients: int | None = None
    rate: float | None = None

    @property
    def words(self) -> str:
        how = f"{self.clients} at once" if self.clients else f"{self.rate:.3g} requests/s"
        return f"{how}, {self.input} in, {self.output} out"


@dataclass(frozen=True, slots=True)
class Figures:
    load: Load
    requests: int
    failures: dict[str, int]  # by reason
    input_len: float | None
    output_len: float | None
    output_tokens_per_s: float | None
    requests_per_s: float | None
    ttft_ms: dict[str, float]
    tpot_ms: dict[str, float]
    e2e_ms: dict[str, float]
    late_ms: float  # how late we were at worst, but for one request in a hundred
    saturated: bool
    counted: bool  # the server said how many tokens there were


def of(load: Load, *rounds: Sent) -> Figures:
    """Of one load, in one or several rounds."""
    replies = [reply for sent in rounds for reply in sent.replies]
    good = [reply for reply in replies if reply.error is None]
    failures = Counter(reply.error for reply in replies if reply.error is not None)
    first = [1e3 * (reply.arrivals_s[0] - reply.due_s) for reply in good]
    whole = [1e3 * (reply.arrivals_s[-1] - reply.due_s) for reply in good]
    each = [
        1e3 * (reply.arrivals_s[-1] - reply.arrivals_s[0]) / (reply.tokens - 1)
        for reply in good
        if reply.tokens > 1 and len(reply.arrivals_s) > 1
    ]
    counted = bool(good) and all(reply.output_tokens is not None for reply in good)
    known = [r.prompt_tokens for r in good if r.prompt_tokens is not None]
    output = _mean([reply.tokens for reply in good])
    speed = _speed(load, rounds, quantile(whole, 0.5) / 1e3 if whole else 0.0)
    return Figures(
        load=load,
        requests=len(replies),
        failures={str(reason): number for reason, number in failures.most_common()},
        input_len=_mean(known) if known else (float(load.input) if good else None),
        output_len=output,
        output_tokens_per_s=speed,
        requests_per_s=speed / output if speed and output else None,
        ttft_ms=_statistics(first),
        tpot_ms=_statistics(each),
        e2e_ms=_statistics(whole),
        late_ms=quantile([1e3 * max(r.sent_s - r.due_s, 0.0) for r in replies], 0.99),
        saturated=any(sent.saturated for sent in rounds),
        counted=counted,
    )


def _speed(load: Load, rounds: Sequence[Sent], usual_s: float) -> float | None:
    """Output tokens a second while the load was as heavy as was asked for.

    What an open loop is answered follows what it sends by as long as a request takes.
    """
    shift = 0.0 if load.clients else usual_s
    tokens = spent = 0.0
    for sent in rounds:
        begun, ended = sent.begun_s + shift, sent.ended_s + shift
        spent += max(ended - begun, 0.0)
        for reply in sent.replies:
            if reply.error is None:
                # Some events carry several tokens, and the last one's may carry none.
                worth = reply.tokens / len(reply.arrivals_s)
                tokens += worth * sum(begun <= moment < ended for moment in reply.arrivals_s)
    return tokens / spent if tokens and spent else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def quantile(values: Sequence[float], share: float) -> float:
    """Between the two nearest; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _statistics(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {
        "mean": sum(values) / len(values),
        **{name: quantile(values, share) for name, share in shares.items()},
    }


def row(found: Figures, stack: dict[str, Any]) -> dict[str, Any]:
    """In the schema of docs/serving-estimate.md; `stack` are the columns that no load changes."""
    failed = sum(found.failures.values())
    quality = "ok"
    if found.output_tokens_per_s is None or not found.ttft_ms:
        quality = "failed"
    elif found.saturated:
        quality = "doubtful: the server fell behind, and not all of the load was sent"
    elif failed > FEW * found.requests:
        quality = f"doubtful: {failed} of {found.requests} requests failed"
    speed, output, length = found.output_tokens_per_s, found.output_len, found.input_len
    cells: dict[str, Any] = {
        **stack,
        "task": "llm",
        "mode": "closed-loop" if found.load.clients else "server",
        "concurrency": found.load.clients or "",
        "request_rate": _cell(found.load.rate),
        "input_len": _cell(length),
        "output_len": _cell(output),
        "output_tokens_per_s": _cell(speed),
        "requests_per_s": _cell(found.requests_per_s),
        "n_repeats": found.requests,
        "quality": quality,
        "assumed_fields": "" if found.counted else "output_len: one token an event",
        "notes": "; ".join(f"{number}× {reason}" for reason, number in found.failures.items()),
    }
    if speed and output and length is not None:
        cells["total_tokens_per_s"] = _cell(speed * (1 + length / output))
    for kind, values in (("ttft", found.ttft_ms), ("tpot", found.tpot_ms), ("e2e", found.e2e_ms)):
        cells |= {f"{kind}_ms_{name}": _cell(value) for name, value in values.items()}
    return cells


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
