"""Cases of serving for the tests: a plain one, of which a test changes what it is about."""

from __future__ import annotations

from typing import Any

from tradewind import catalog
from tradewind.estimate.serving import chips, formats, served
from tradewind.estimate.serving.cases import Cases


def cases(
    model: str = "llama-3.1-8b", chip: str = "H100-SXM", weights: str = "bf16", **changed: Any
) -> Cases:
    found = served.find(model)
    accelerator = catalog.load(account=False).accelerators[chip]
    group = changed.get("group", 1)
    return Cases.of(
        {
            **found.columns(), **chips.columns(accelerator, weights, 1.0), "model": model,
            "weight_bytes": formats.FORMATS[weights].bytes, "kv_bytes": 2.0,
            "precision": formats.FORMATS[weights].group, "engine": "vllm", "software": "vllm",
            "group": group, "input": 1000, "output": 200, "concurrency": 8, "mode": "closed",
        } | changed
    )  # fmt: skip
