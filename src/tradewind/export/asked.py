"""What is to be exported: a workload with the plan that was made for it. Plain frozen values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tradewind.export.exported import Refused

if TYPE_CHECKING:
    from tradewind.model.accelerator import Accelerator
    from tradewind.model.job import Job
    from tradewind.model.plan import Plan
    from tradewind.model.serve import Serve
    from tradewind.model.serveplan import ServingPlan, ServingPool
    from tradewind.model.workload import Workload

READ = ("requirements.txt", "requirements.lock", "pyproject.toml", "uv.lock", ".dockerignore")
"""Files of the job's folder that kinds look into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Exactly one of `plan` and `serving` is set."""

    workload: Workload
    made_at: datetime
    command: str
    """That makes the same export again."""
    plan: Plan | None = None
    """Of a training, or of measured work."""
    serving: ServingPlan | None = None
    """Of a model to be served."""
    chips: Mapping[str, Accelerator] = field(default_factory=dict)
    """Facts of the plan's accelerators, by name."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What is in the job's folder of READ."""
    job_path: str = "."
    """The job's folder, as seen from the export's."""
    file_path: str = ""
    """The workload's file, or the plan's, as seen from there; "" where it came from none."""
    imports_us: bool = False
    """Whether a script there imports `tradewind`, which machines of ours bring along."""

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def job(self) -> Job | None:
        return self.workload.run

    @property
    def digest(self) -> str:
        """Of the plan itself, whenever and on whatever processor it was made: by it two exports are
        seen to be of one."""
        value = self.plan if self.plan is not None else self.serving
        assert value is not None
        text = json.dumps(_rounded(asdict(value)), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def training(self, kind: str) -> tuple[Plan, Job]:
        """For what runs a job until it is done."""
        if self.plan is None:
            raise Refused(
                f"{kind} is for work that ends, and {self.name} is served",
                nearest="tradewind export --list says which kinds take services",
            )
        if self.job is None:
            raise Refused(
                f"{self.name} does not say what to run: it has no run.command",
                nearest="add `run: {command: python train.py}` to the workload file",
            )
        return self.plan, self.job

    def service(self, kind: str) -> tuple[ServingPlan, Serve]:
        """For what is up for as long as it is wanted."""
        if self.serving is None or self.workload.serve is None:
            raise Refused(
                f"{kind} is for services, and {self.name} is work that ends",
                nearest="tradewind export --list says which kinds take trainings",
            )
        return self.serving, self.workload.serve

    @property
    def bought(self) -> Plan | ServingPool:
        """The machines: of the training, or the first pool of the service."""
        if self.plan is not None:
            return self.plan
        assert self.serving is not None
        return self.serving.pools[0]

    @property
    def chip(self) -> Accelerator:
        return self.chips[self.bought.accelerator]

    def told(self) -> dict[str, Any]:
        """Variables of the job that are no secrets, as its workload has them."""
        return dict(self.job.env) if self.job is not None else {}


def _rounded(value: Any) -> Any:
    """Last digits differ between processors."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
