"""A team's file: on which machine, which workloads come how often, and inputs that it knows better.

on: 8xH100-SXM
workloads:
  - {name: pretrain, accelerators: 8, hours: 60, per_month: 6}
  - {name: finetune, plan: finetune.yaml, per_month: 20, when: office}
inputs: {server_usd: 250000}

A workload tells its accelerators and hours, or `plan:`, the file of a workload of which they are
planned: whoever reads says how. What is wrong is told with its line, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tradewind.base import yamltree
from tradewind.base.errors import InvalidValue
from tradewind.base.units import parse_duration
from tradewind.base.yamltree import Node, Problems, field
from tradewind.economics.use import STARTS, Job

Planned = Callable[[str], tuple[float, float]]
"""From the name of a workload file: accelerators and hours."""
_FIELDS = ("name", "accelerators", "hours", "per_month", "every", "when", "plan")


@dataclass(frozen=True)
class Team:
    on: str
    jobs: tuple[Job, ...]
    settings: tuple[str, ...] = ()


def read(text: str, origin: str, planned: Planned) -> Team:
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    sections: Mapping[str, Node] = {}
    with problems.at(root):
        sections = root.mapping(("on", "workloads", "inputs"), problems)
        if "workloads" not in sections:
            raise InvalidValue("workloads is missing: what runs how often")
    on = field(sections, "on", Node.text, problems) or ""
    jobs: list[Job] = []
    if "workloads" in sections:
        with problems.at(sections["workloads"]):
            for number, node in enumerate(sections["workloads"].items(), 1):
                with problems.at(node):
                    jobs.append(_job(node, number, planned, problems))
    settings = field(sections, "inputs", lambda node: _settings(node), problems) or ()
    problems.raise_if_any(hint="docs/own.md describes the file")
    if not jobs:
        raise InvalidValue(f"{origin} has no workloads", hint="docs/own.md describes the file")
    return Team(on, tuple(jobs), settings)


def _job(node: Node, number: int, planned: Planned, problems: Problems) -> Job:
    fields = node.mapping(_FIELDS, problems)
    name = field(fields, "name", Node.text, problems) or f"workload {number}"
    if "plan" in fields:
        if "accelerators" in fields or "hours" in fields:
            raise InvalidValue(f"{name}: plan says accelerators and hours; leave these out")
        accelerators, hours = planned(fields["plan"].text())
    else:
        for needed in ("accelerators", "hours"):
            if needed not in fields:
                raise InvalidValue(f"{name}: {needed} is missing (or plan: a workload file)")
        accelerators = _positive(fields["accelerators"], "accelerators")
        hours = _hours(fields["hours"])
    if ("per_month" in fields) == ("every" in fields):
        raise InvalidValue(f"{name}: how often? per_month: 20, or every: 3d")
    if "every" in fields:
        per_month = 30.4 * 24 * 3600 / max(parse_duration(fields["every"].text()), 1)
    else:
        per_month = _positive(fields["per_month"], "per_month")
    when = fields["when"].text() if "when" in fields else "any"
    if when not in STARTS:
        raise InvalidValue(f"{name}: jobs do not start {when!r}; one of {', '.join(STARTS)}")
    return Job(name, accelerators, hours, per_month, when)


def _positive(node: Node, name: str) -> float:
    try:
        value = node.number()
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error.message}", hint="legal: more than 0") from None
    if value <= 0:
        raise InvalidValue(f"{name} is {value:g}", hint="legal: more than 0")
    return value


def _hours(node: Node) -> float:
    text = node.text()
    if text[-1:].isalpha():
        return parse_duration(text) / 3600
    return _positive(node, "hours")


def _settings(node: Node) -> tuple[str, ...]:
    if not isinstance(node.value, dict):
        raise InvalidValue(f"expected inputs with their figures, found {node.kind}")
    return tuple(f"{name}={each.text()}" for name, each in node.value.items())
