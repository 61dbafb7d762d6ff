"""How long it takes to plan: in a running program, and as a command from nothing."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tradewind import catalog
from tradewind.base import clock
from tradewind.base.units import parse_bytes, parse_duration, parse_money
from tradewind.bench.startup import once, surroundings
from tradewind.catalog import files, ratecard
from tradewind.model import Data, Limits, Train, Workload, buckets
from tradewind.planning.planner import plan
from tradewind.planning.rates import Rates
from tradewind.providers import charges

_LEAST = 7  # repeats of which a median is taken


def measure(repeats: int = 15) -> dict[str, Any]:
    """`warm` is one plan without reasons, the catalog loaded; `per_second` counts the layouts and
    the ways that it weighs; `cold` is a whole process, against `python -c pass` in turn with it."""
    repeats = max(repeats, _LEAST)
    loaded = catalog.load(files.PACKAGED, account=False)
    now = loaded.facts.made_at
    work = workload()
    taken = []
    rates = Rates(ratecard.card(), charges.usual(ratecard.card()))
    found = plan(work, catalog=loaded, now=now, explain=False, rates=rates)
    for _ in range(repeats):
        start = clock.stopwatch()
        found = plan(work, catalog=loaded, now=now, explain=False, rates=rates)
        taken.append(clock.stopwatch() - start)
    warm = median(taken)
    cold, bare = _cold(now.isoformat(), repeats)
    return {
        "candidates": found.candidates,
        "layouts": found.layouts,
        "warm_ms_median": round(1e3 * warm, 1),
        "cold_ratio": round(cold / bare, 1),
        "cold_s": round(cold, 3),
        "per_second": round((found.candidates + found.layouts) / warm),
        "repeats": repeats,
    }


_DATA = "gs://acme-corpus/tokens-v1"


def workload() -> Workload:
    """examples/pretrain-1.3b, which an installed package has no file of."""
    return Workload(
        name="pretrain-1.3b",
        train=Train(
            model="gpt3-1.3b",
            tokens=26 * 10**9,
            sequence=2048,
            global_batch_tokens=10**6,
            stack="fsdp-compile",
        ),
        data=Data(
            uri=_DATA,
            size_bytes=parse_bytes("52GB"),
            provider=buckets.home(_DATA),
            region="us-central1",
        ),
        limits=Limits(
            within_s=parse_duration("3d"),
            confidence=0.9,
            budget=parse_money("$2,500"),
            markets=("spot", "on_demand"),
            max_nodes=4,
        ),
    )


_OPTIONS = (
    "--model gpt3-1.3b --tokens 26B --seq 2048 --global-batch 1M-tokens --stack fsdp-compile "
    f"--data-uri {_DATA} --data-size 52GB --data-region gcp/us-central1 "
    "--deadline 3d --confidence 90% --budget $2500 --market spot,on_demand --max-nodes 4"
).split()


def _cold(now: str, repeats: int) -> tuple[float, float]:
    """Seconds of `tradewind plan …` and of bare Python, medians of processes in turn."""
    script = Path(sys.executable).parent / "tradewind"
    ours = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "tradewind"]
    commands = {"bare": [sys.executable, "-P", "-c", "pass"], "plan": [*ours, "plan", *_OPTIONS]}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as empty:
        env = surroundings(empty, now)
        for _ in range(repeats + 1):
            for name, command in commands.items():
                taken[name].append(once(command, env))
    # The first of each fills the disk cache and the byte code.
    return median(taken["plan"][1:]), median(taken["bare"][1:])
