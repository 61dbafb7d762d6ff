"""How an engine is started that serves a model as the plan says."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from tradewind.export.exported import Refused, Setting
from tradewind.export.images import Table
from tradewind.model.serve import Serve
from tradewind.model.serveplan import ServingPool

PORT = 8000
MODEL = Setting(
    "model", "Weights to serve: a repository of Hugging Face, or a path.", example="ORG/NAME"
)
_SIXTEEN = {"bf16": "bfloat16", "fp16": "float16"}


class Engine(NamedTuple):
    package: str
    """Of PyPI, with its version."""
    command: tuple[str, ...]
    """Words; the model's weights are among them."""
    health: str
    """A path that answers 200 once it serves."""
    pending: str
    """A Prometheus metric of its own: requests that wait."""
    answered: str
    """The same: requests that were answered, a counter."""


def weights_of(serve: Serve, known: Table, named: str) -> str:
    """Where the engine finds the model."""
    if named:
        return named
    model = serve.model if isinstance(serve.model, str) else serve.model.name
    if "/" in model and not model.endswith((".json", ".yaml", ".yml")):
        return model
    if model in known.weights:
        return known.weights[model]
    raise Refused(
        f"{model} is the shape of a model, and does not say whose weights are to be served",
        nearest="--set model=ORG/NAME, a repository of Hugging Face, or a path",
    )


def started(pool: ServingPool, serve: Serve, known: Table, weights: str) -> Engine:
    """One replica, on `pool.tp` accelerators."""
    if pool.engine == "vllm":
        return _vllm(pool, serve, known, weights)
    if pool.engine == "sglang":
        return _sglang(pool, serve, known, weights)
    raise Refused(
        f"exports do not start {pool.engine} yet",
        nearest="serve.engine: vllm, or sglang, in the workload file",
    )


def _vllm(pool: ServingPool, serve: Serve, known: Table, weights: str) -> Engine:
    words = ["vllm", "serve", weights, "--host=0.0.0.0", f"--port={PORT}"]
    words += _options(pool, serve, split="--tensor-parallel-size")
    return Engine(
        f"vllm=={known.engines['vllm']}",
        tuple(words),
        "/health",
        "vllm:num_requests_waiting",
        "vllm:request_success_total",
    )


def _sglang(pool: ServingPool, serve: Serve, known: Table, weights: str) -> Engine:
    words = ["python", "-m", "sglang.launch_server", f"--model-path={weights}"]
    words += ["--host=0.0.0.0", f"--port={PORT}", "--enable-metrics"]
    words += _options(pool, serve, split="--tp")
    return Engine(
        f"sglang=={known.engines['sglang']}",
        tuple(words),
        "/health",
        "sglang:num_queue_reqs",
        "sglang:num_requests_total",
    )


def _options(pool: ServingPool, serve: Serve, *, split: str) -> list[str]:
    """What engines call alike, but for `split`: over how many accelerators a model is spread."""
    words = [f"{split}={pool.tp}"] if pool.tp > 1 else []
    if pool.weights in _SIXTEEN:
        words.append(f"--dtype={_SIXTEEN[pool.weights]}")
    else:
        words.append(f"--quantization={pool.weights}")
    if serve.cache:
        words.append(f"--kv-cache-dtype={serve.cache}")
    return words


def shell(engine: Engine) -> str:
    return shlex.join(engine.command)
