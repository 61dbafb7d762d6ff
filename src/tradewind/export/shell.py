"""Pieces of shell scripts for one machine, which several kinds have: they differ in how a command
is started and in what is around it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from tradewind.export.asked import Asked
from tradewind.export.exported import Refused
from tradewind.model.accelerator import Accelerator
from tradewind.model.job import Job
from tradewind.model.plan import Plan
from tradewind.model.serveplan import ServingPool

_COUNTS = {
    "NVIDIA": "nvidia-smi --query-gpu=name --format=csv,noheader",
    "AMD": "rocm-smi --showproductname --csv | grep -i ^card",
}
"""A line for each accelerator, by its maker's own tool."""


def one_machine(kind: str, asked: Asked) -> tuple[Plan, Job]:
    plan, job = asked.training(kind)
    if plan.nodes > 1:
        raise Refused(
            f"{kind} is for one machine, and the plan has {plan.nodes}",
            nearest="kubernetes or slurm; or --max-nodes 1, where one can do it in time",
        )
    return plan, job


def one_pool(kind: str, asked: Asked) -> ServingPool:
    """The machine that is exported is one of its pool, whose number follows the traffic."""
    serving, _ = asked.service(kind)
    if len(serving.pools) > 1:
        raise Refused(
            f"{kind} is for machines of one kind, and the plan has {len(serving.pools)} pools",
            nearest="kubernetes, which has a deployment for each",
        )
    return serving.pools[0]


def counted(chip: Accelerator, count: int) -> str:
    """Whether the machine has what the plan counts on; "" where nobody can tell by a command."""
    look = _COUNTS.get(chip.vendor)
    if look is None:
        return ""
    return (
        f"# The plan counts on {count} × {chip.name}: with fewer it is slower, or too large.\n"
        f"found=$({look} 2> /dev/null | wc -l)\n"
        f'if [ "$found" -lt {count} ] && [ -z "${{ANYWAY:-}}" ]; then\n'
        f'  echo "here are $found accelerators, and the plan has {count} × {chip.name};'
        ' ANYWAY=1 goes on" >&2\n'
        "  exit 2\n"
        "fi\n"
    )


def needed(job: Job | None) -> str:
    """Secrets: whoever starts it has them in the environment."""
    secrets = job.secrets if job is not None else {}
    return "".join(
        f': "${{{name}:?a secret, kept in {where}}}"\n' for name, where in secrets.items()
    )


def exports(variables: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(each)}\n" for name, each in variables.items())


def keyed(command: str, key: str) -> str:
    """What a command prints; or, where there is a key, what the JSON object that it prints has."""
    if not key:
        return command
    look = "import json, sys; print(json.load(sys.stdin)[sys.argv[1]])"
    return f"{command} | python3 -c '{look}' {shlex.quote(key)}"


def quoted(script: str) -> str:
    return shlex.quote(script)


def is_simple(command: str) -> bool:
    """One command, which a shell can be replaced by."""
    return not any(each in command for each in "\n;&|<>()`#") and "=" not in command.split()[0]


def within_quotes(path: str) -> str:
    """As it stands between double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", path)
