"""Whose file it is, and which module reads it."""

from __future__ import annotations

import re
from importlib import import_module

from tradewind.base.errors import BadFile
from tradewind.export.foreign.found import Found

KINDS = {
    "sky": "a task file of SkyPilot",
    "dstack": "a task of dstack",
    "sbatch": "a batch script of Slurm",
    "dockerfile": "a Dockerfile",
    "estimator": "arguments of an estimator of SageMaker's SDK, as JSON or YAML",
}


def read(kind: str, text: str) -> Found:
    try:
        found: Found = import_module(f"{__package__}.{kind}").read(text)
    except (ValueError, LookupError) as error:  # a quote without end, a word that is missing
        raise BadFile(
            f"this is not {KINDS[kind]} as its own tool would take it: {error}",
            hint="correct it, or --from another KIND",
        ) from None
    if not found.command:
        raise BadFile(f"{KINDS[kind]} that starts nothing is no work", hint="add its command")
    return found


def guessed(name: str, text: str) -> str:
    if "#SBATCH" in text:
        return "sbatch"
    if re.search(r"^\s*FROM\s+\S+", text, re.MULTILINE):
        return "dockerfile"
    if re.search(r"""(^|[{,\s])["']?entry_point["']?\s*:""", text):
        return "estimator"
    if re.search(r"^type:\s*\w+", text, re.MULTILINE):
        return "dstack"
    if re.search(r"^(run|resources|num_nodes|setup):", text, re.MULTILINE):
        return "sky"
    raise BadFile(
        f"whose file {name} is cannot be told", hint=f"--from {' or --from '.join(KINDS)}"
    )
