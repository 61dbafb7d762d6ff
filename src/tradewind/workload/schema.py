"""The JSON Schema of workload files, for editors and other programs.

It sees how values are written and which fields go together; not names of providers, nor whether
amounts agree, nor what is past.
"""

from __future__ import annotations

import json
from typing import Any

from tradewind.workload import fields
from tradewind.workload.fields import SECTIONS
from tradewind.workload.sections import Field, Section

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    asked = ("train", "work", "serve")
    properties = {fields.NAME.name: _field(fields.NAME)}
    for section in SECTIONS:
        properties |= (
            {field.name: _field(field) for field in section.fields}
            if section.flat
            else {section.name: _section(section)}
        )
    return {
        "$schema": DIALECT,
        "title": "Tradewind workload",
        "description": "What must be done, and within which limits.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "oneOf": [
            *({"required": [name]} for name in asked),
            {"anyOf": [{"required": [name]} for name in ("gpus", "type", "cpus", "ram")]},
        ],
    }


def text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _section(section: Section) -> dict[str, Any]:
    return {
        "description": section.meaning,
        "type": "object",
        "additionalProperties": False,
        "required": list(section.required),
        "properties": {field.name: _field(field) for field in section.fields},
        **section.rules,
    }


def _field(field: Field) -> dict[str, Any]:
    described = f"{field.meaning} ({field.kind.words})"
    if field.default:
        described += f"; default: {field.default}"
    return {"description": described, "examples": [_example(field)], **field.kind.schema}


def _example(field: Field) -> Any:
    """As data: a number where it is one, a list where it is one."""
    text = field.example
    if text.startswith("{"):
        return dict(part.split(": ") for part in text.strip("{}").split(", "))
    if text.startswith("["):
        return [item.strip(' "') for item in text.strip("[]").split(",")]
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text
