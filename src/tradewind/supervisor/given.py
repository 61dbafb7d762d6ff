"""What a journal says of a job, field by field: others may have written it, so nothing is taken for
granted."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import BadFile


def text(job: dict[str, Any], name: str) -> str:
    value = job.get(name) or ""
    if not isinstance(value, str):
        raise BadFile(f"the job's {name} is {value!r} and no text")
    return value


def table(job: dict[str, Any], name: str) -> dict[str, str]:
    found = job.get(name) or {}
    if not isinstance(found, dict):
        raise BadFile(f"the job's {name} is not a table of names and values")
    return {str(key): str(value) for key, value in found.items()}


def texts(job: dict[str, Any], name: str) -> tuple[str, ...]:
    value = job.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise BadFile(f"the job's {name} is not a list of text")
    return tuple(value)
