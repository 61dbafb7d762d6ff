"""An engine's own metrics, as Prometheus scrapes them, in our words. Pure.

Each engine has its names; what none of them says is None. A name counts once: of labelled lines
(a model, a rank) the sum is taken, and of shares the greatest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMES = {
    "running": (
        "vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing",
        "tgi_batch_current_size",
    ),
    "waiting": (
        "vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred",
        "tgi_queue_size",
    ),
    "cache": (
        "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "tokens_in": (
        "vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total",
    ),
    "tokens_out": (
        "vllm:generation_tokens_total", "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
    ),
}  # fmt: skip
_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)")
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class EngineFigures:
    running: int | None = None
    waiting: int | None = None
    cache: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0


def read(text: str) -> EngineFigures:
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if 0 <= value <= _MOST:  # NaN is not, either
            found.setdefault(match[1], []).append(value)

    def of(what: str) -> list[float] | None:
        return next((found[name] for name in _NAMES[what] if name in found), None)

    running, waiting, cache = of("running"), of("waiting"), of("cache")
    return EngineFigures(
        running=None if running is None else int(sum(running)),
        waiting=None if waiting is None else int(sum(waiting)),
        cache=None if cache is None else max(cache),
        tokens_in=int(sum(of("tokens_in") or ())),
        tokens_out=int(sum(of("tokens_out") or ())),
    )
