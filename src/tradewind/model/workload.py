"""What must be done, and within which limits.

    Workload(
        name="support-bot-8b",
        train=Train(model="llama-3.1-8b", tokens=10**10, sequence=8192, global_batch=512),
        limits=Limits(within_s=48 * 3600, budget=Micros(2000 * 10**6)),
    )

A workload is training (`Train`: a model and how much of it), work known by measurement (`Measured`:
so long on such accelerators), a model to be served (`Serve`: traffic and targets), or a command on
machines that are named (`Machines`), however long it takes.

A value that cannot be meant is refused when it is made,
with an InvalidValue that names every wrong field; the same `faults` serve the reader of files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tradewind.model import checks, sensitive
from tradewind.model.checks import Fault
from tradewind.model.job import Job
from tradewind.model.limits import Limits
from tradewind.model.machines import Machines
from tradewind.model.serve import Serve
from tradewind.model.train import Train
from tradewind.model.upkept import Upkept

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
"""Also a label at every cloud, so no capitals and no blanks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Work known by measurement: `hours`, or `steps` of `step_s`, on `count` of `accelerator`."""

    accelerator: str
    count: int = 1
    hours: float | None = None
    step_s: float | None = None
    steps: int | None = None
    memory_bytes: int | None = None
    """What each accelerator needs; None: as much as the one it was measured on has."""
    scales: bool = False
    """Whether more accelerators than it was measured on would make it faster."""

    def __post_init__(self) -> None:
        checks.raise_any("work", self.faults(checks.fields_of(self)))

    @property
    def seconds(self) -> float:
        """How long it takes where it was measured."""
        if self.hours is not None:
            return self.hours * 3600
        assert self.step_s is not None
        assert self.steps is not None
        return self.step_s * self.steps

    @property
    def accelerator_hours(self) -> float:
        return self.seconds / 3600 * self.count

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        if not seen & {"on", "accelerator"}:
            yield Fault("on", "it is missing: measured on which accelerators?", "on: 8xA100-80GB")
        stepped = seen & {"step", "step_s", "steps"}
        if "hours" in seen and stepped:
            yield Fault("hours", "there is step too; give hours, or step and steps")
        elif not stepped and "hours" not in seen:
            yield Fault("hours", "how long? hours, or step and steps, is missing")
        elif stepped and "steps" not in stepped:
            yield Fault("step", "how many of them? steps is missing")
        elif stepped and len(stepped) < 2:
            yield Fault("steps", "how long is one? step is missing", "step: 1.8s")
        yield from checks.text(values, "accelerator")
        yield from checks.whole(values, "count", field="on")
        yield from checks.positive(values, "hours")
        yield from checks.positive(values, "step_s", field="step")
        yield from checks.whole(values, "steps")
        yield from checks.whole(values, "memory_bytes", field="memory")
        yield from checks.flag(values, "scales")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the work reads, and where it lies: moving it takes time and money."""

    uri: str
    size_bytes: int | None = None
    provider: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        checks.raise_any("data", self.faults(checks.fields_of(self)))

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        if values.get("uri") is None and "uri" not in wrong:
            yield Fault("uri", "it is missing: where is the data?", "uri: s3://bucket/folder")
        yield from checks.text(values, "uri", "region")
        if found := sensitive.shape(str(values.get("uri") or "")):
            yield Fault(
                "uri",
                f"it holds what looks like {found}",
                "plans and pages show it to whoever reads them; the job takes credentials from"
                " run.secrets",
            )
        yield from checks.whole(values, "size_bytes", field="size")
        if values.get("region") is not None and values.get("provider") is None:
            yield Fault("region", "whose region? write the provider before it", "aws/eu-west-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How often state is saved. None: as often as interruptions make it worth while."""

    every_s: int | None = None
    keep: int = 3
    size_bytes: int | None = None
    """None: what the model and its optimizer come to."""

    def __post_init__(self) -> None:
        checks.raise_any("checkpoint", self.faults(checks.fields_of(self)))

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        yield from checks.whole(values, "every_s", field="every")
        yield from checks.whole(values, "keep")
        yield from checks.whole(values, "size_bytes", field="size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Exactly one of `train`, `work`, `serve` and `machines` is set."""

    name: str = "workload"
    train: Train | None = None
    work: Measured | None = None
    serve: Serve | None = None
    machines: Machines | None = None
    """Machines that are named, for work of which nobody knows how long it takes."""
    data: Data | None = None
    checkpoint: Checkpoint = Checkpoint()
    limits: Limits = field(default_factory=Limits)
    run: Job | None = None
    service: Upkept | None = None

    def __post_init__(self) -> None:
        checks.raise_any("workload", self.faults(checks.fields_of(self)))

    @property
    def total_tokens(self) -> int | None:
        return self.train.total_tokens if self.train else None

    @property
    def total_steps(self) -> int | None:
        """None for work that is known in hours."""
        if self.train:
            return self.train.total_steps
        return self.work.steps if self.work else None

    @property
    def sequences_per_step(self) -> int | None:
        return self.train.sequences_per_step if self.train else None

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        name = values.get("name")
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            yield Fault(
                "name",
                f"{checks.shown(name)} is no name for every cloud",
                "at most 63 of a-z 0-9 . _ -, a letter or digit at both ends",
            )
        asked = [name for name in ("train", "work", "serve") if name in seen]
        if len(asked) > 1:
            yield Fault(asked[1], f"there is {asked[0]} too; a workload is one of them")
        elif asked and "machines" in seen:
            yield Fault(
                asked[0],
                "there are gpus, type, nodes or cpus too: those name the machines, which the plan"
                " chooses here",
                "limits.accelerators and limits.max_nodes narrow its choice; or leave"
                f" {asked[0]} out",
            )
        elif not asked and "machines" not in seen:
            yield Fault(
                "train",
                "train (or work, if it was measured) is missing, or serve, or gpus: what is to do?",
            )
        if "service" in seen and asked and "serve" not in seen:
            yield Fault("service", "nothing is served: there is no section serve")
        for name, kind in _PARTS.items():
            part = values.get(name)
            if part is not None and not isinstance(part, kind):
                yield Fault(name, f"{checks.shown(part)} is no {kind.__name__}")


_PARTS: dict[str, type] = {
    "train": Train, "work": Measured, "serve": Serve, "data": Data, "checkpoint": Checkpoint,
    "limits": Limits, "run": Job, "service": Upkept, "machines": Machines,
}  # fmt: skip
