"""Machines that are named, where others let the plan choose them: so many, of that kind, no others.

How long the work takes is not known then. What bounds its money is a time: the machines are stopped
when the job is idle, and when they have been up for so long in all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.model import checks
from tradewind.model.checks import Fault

HARD_STOP_S = 24 * 3600
"""So long its machines may be up, where neither `max_duration` nor a deadline says it."""
ASSUMED = 0.5
"""Of the time until a deadline, so much the work is taken to need: whoever chooses between spot and
on demand needs some figure, and nobody has told it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Exactly these accelerators in each of `nodes` machines; processors and memory at least."""

    gpus: tuple[str, ...] | None = None
    """Of these accelerators any: `H100` is sold as SXM, PCIe and NVL. None: without, unless `type`
    says otherwise."""
    count: int | None = None
    """Of them in one machine; None: as `type` has."""
    nodes: int = 1
    type: str | None = None
    cpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None

    def __post_init__(self) -> None:
        checks.raise_any("machines", self.faults(checks.fields_of(self)))

    @property
    def words(self) -> str:
        """`2 machines with 8× H100-SXM each`."""
        many = f"{self.nodes} machines" if self.nodes > 1 else "a machine"
        with_ = []
        if self.gpus:
            named = ", ".join(self.gpus[:-1]) + " or " * (len(self.gpus) > 1) + self.gpus[-1]
            with_.append(f"{self.count or 1}× {named}")
        if self.cpus:
            with_.append(f"{self.cpus} or more CPUs")
        if self.ram_bytes:
            with_.append(f"{self.ram_bytes / 1e9:.4g} GB of memory or more")
        text = f"{many} of type {self.type}" if self.type else many
        each = " each" if self.nodes > 1 else ""
        return f"{text} with {', '.join(with_)}{each}" if with_ else text

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        if not seen & {"gpus", "type", "cpus", "ram", "ram_bytes"}:
            given = "nodes" if "nodes" in seen else "disk"
            yield Fault(given, "of which machines? gpus (or type, or cpus) is missing", "gpus: L4")
        yield from checks.listed(values, "gpus")
        yield from checks.whole(values, "count", field="gpus")
        yield from checks.whole(values, "nodes", "cpus")
        yield from checks.text(values, "type")
        yield from checks.whole(values, "ram_bytes", field="ram")
        yield from checks.whole(values, "disk_bytes", field="disk")
