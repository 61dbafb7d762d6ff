"""How a job is started where no supervisor of ours does it: its command and its variables."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tradewind.model import torchrun
from tradewind.model.job import Job
from tradewind.model.plan import Plan

PORT = 29500
"""Where the machines of a training meet, as PyTorch's own default is."""


def command(plan: Plan, job: Job, *, rank: str = "", first: str = "", port: str = "") -> str:
    """A shell's command. `torchrun` is told to start a process for each accelerator and, where
    there are several machines, who they are: `rank` and `first` are words of that shell."""
    said = job.command.strip()
    if not torchrun.is_torchrun(said):
        return said
    if not torchrun.meets(said):
        several = {
            "nnodes": str(plan.nodes), "node-rank": rank, "master-addr": first,
            "master-port": port or str(PORT),
        }  # fmt: skip
        said = torchrun.told(said, several if plan.nodes > 1 else {"standalone": ""})
    if torchrun.has(said, "nproc"):
        return said
    return torchrun.told(said, {"nproc-per-node": str(plan.accelerator_count)})


def variables(plan: Plan, job: Job) -> Mapping[str, str]:
    """Of the job, besides its secrets. `TRADEWIND_LAYOUT` is read by `tw.prepare`: how the plan
    spreads the model."""
    layout = {name: each for name, each in plan.layout.items() if not isinstance(each, dict)}
    return {
        "PYTHONUNBUFFERED": "1",
        **({"TRADEWIND_LAYOUT": json.dumps(layout, separators=(",", ":"))} if layout else {}),
        **{name: str(value) for name, value in job.env.items()},
    }
