"""`terraform`: a module that has the plan's machines run the job, and end."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from tradewind.export import nodes, registry, rented
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Setting
from tradewind.providers import hcl
from tradewind.providers.hcl import Block, Raw
from tradewind.providers.infrastructure import (
    SCRIPT,
    FileHash,
    Filled,
    Infrastructure,
    Json,
    Map,
    Of,
    Script,
    Thing,
    Underscored,
    Var,
    Variable,
)

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = (nodes.CLUSTER,)
_LEAST = ">= 1.5.0"
_WIDE = 98


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if settings["cluster"]:
        made, notes = nodes.described("terraform", asked, settings["cluster"])
        scripts = {}
    else:
        made, script = rented.machines("terraform", asked)
        scripts, notes = {SCRIPT: script}, made.notes
    files = {
        "versions.tf": _versions(made),
        "variables.tf": [_variable(each) for each in made.variables],
        "main.tf": [_thing(each) for each in made.things],
        "outputs.tf": [
            (f'output "{name}"', {"value": Raw(_said(value)), "description": words})
            for name, (value, words) in made.outputs.items()
        ],
    }
    missing = [each.name for each in made.variables if each.default is None]
    command = " ".join(["terraform init && terraform apply", *(f"-var {n}=…" for n in missing)])
    first = rented.again(asked, command) if scripts else f"in DIR: {command}"
    return Exported(
        {path: File(hcl.rendered(blocks)) for path, blocks in files.items()} | scripts,
        (first, *notes),
    )


def _versions(made: Infrastructure) -> list[Block]:
    where = {"source": made.source, "version": made.version}
    return [
        (
            "terraform",
            {
                "required_version": _LEAST,
                "required_providers": {made.provider: hcl.mapped(where)},
            },
        ),
        (f'provider "{made.provider}"', _fields(made.settings)),
    ]


def _variable(each: Variable) -> Block:
    fields: dict[str, Any] = {"type": Raw(each.kind), "description": each.words}
    if each.default is not None:
        fields["default"] = each.default
    return f'variable "{each.name}"', fields


def _thing(each: Thing) -> Block:
    why = "".join(f"# {line}\n" for line in wrap(each.why, _WIDE))
    kept: dict[str, Any] = {"lifecycle": {"create_before_destroy": True}} if each.new_first else {}
    if each.leaves:
        kept.setdefault("lifecycle", {})["ignore_changes"] = Raw(
            f"[{', '.join(path.replace('.', '[0].') for path in each.leaves)}]"
        )
    if each.needs:
        kept["depends_on"] = Raw(f"[{', '.join(each.needs)}]")
    kind = "data" if each.data else "resource"
    return f'{why}{kind} "{each.kind}" "{each.name}"', _fields(each.fields) | kept


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in fields.items()}


def _value(value: Any) -> Any:
    """Blocks stay what they are; all else is an expression."""
    if isinstance(value, dict):
        return _fields(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_fields(each) for each in value]
    return Raw(_said(value))


def _said(value: Any) -> str:
    """An expression."""
    match value:
        case Var(name):
            return f"var.{name}"
        case Of(address, attribute):
            return f"{address}.{attribute}"
        case Filled():
            return hcl.text(_filled(value))
        case Json(inner):
            return f"jsonencode({hcl.text(_plain(inner))})"
        case Map(values):
            return hcl.text(_plain(dict(values)))
        case Underscored(part):
            return f'replace({_said(part)}, "-", "_")'
        case FileHash(path):
            return f"filemd5({_said(path)})"
        case Script(variables, encoded):
            lines: list[Any] = ["#!/bin/bash"]
            lines += [Filled(f"export {name}=%s", (each,)) for name, each in variables.items()]
            lines.append(Raw(f'file("${{path.module}}/{SCRIPT}")'))
            joined = f'join("\\n", {hcl.text(_plain(lines))})'
            return f"base64encode({joined})" if encoded else joined
    return hcl.text(_plain(value))


def _plain(value: Any) -> Any:
    """What hcl writes: values, and expressions."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Filled):
        return _filled(value)
    known = isinstance(value, Var | Of | Json | Map | Underscored | FileHash | Script)
    return Raw(_said(value)) if known else value


def _filled(value: Filled) -> Raw:
    """A text with expressions in it."""
    first, *rest = value.pattern.split("%s")
    if "$%s" in value.pattern:  # `$${` would be two signs and no expression
        return Raw(f"format({', '.join([hcl.text(value.pattern), *map(_said, value.parts)])})")
    text = hcl.text(first)[1:-1]
    for part, after in zip(value.parts, rest, strict=True):
        text += f"${{{_said(part)}}}{hcl.text(after)[1:-1]}"
    return Raw(f'"{text}"')
