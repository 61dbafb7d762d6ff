"""`pulumi`: a Python program that has the plan's machines run the job, and end: what `terraform`
writes, in Pulumi's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, nodes, registry, rented
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Setting
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
_PULUMI = "3"
_WIDE = 98
_FILES = {"source"}
"""Fields that are a file of this computer."""


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if settings["cluster"]:
        made, notes = nodes.described("pulumi", asked, settings["cluster"])
        scripts = {}
    else:
        made, script = rented.machines("pulumi", asked)
        scripts, notes = {SCRIPT: script}, made.notes
    about = "Machines that run a job, and end." if scripts else "GPU nodes of a cluster."
    package, version = made.pulumi
    project = {
        "name": rented.name_of(asked),
        "runtime": {"name": "python", "options": {"virtualenv": "venv"}},
        "description": about,
    }
    required = [each.name for each in made.variables if each.default is None]
    told = "".join(f" && pulumi config set {name} …" for name in required)
    command = f"pulumi install && pulumi stack init{told} && pulumi up"
    requirements = (
        f"pulumi>={_PULUMI},<{int(_PULUMI) + 1}\n{package}>={version},<{int(version) + 1}\n"
    )
    return Exported(
        {
            "Pulumi.yaml": File(commented.text(project)),
            "__main__.py": File(_Program(made, about).text()),
            "requirements.txt": File(requirements.replace("_", "-")),
            **scripts,
        },
        (rented.again(asked, command) if scripts else f"in DIR: {command}", *notes),
    )


class _Program:
    def __init__(self, made: Infrastructure, about: str) -> None:
        self.made, self.about = made, about
        self.package, _ = made.pulumi
        self.short = self.package.removeprefix("pulumi_")
        self.names = {each.address: self._name(each) for each in made.things}

    def _name(self, thing: Thing) -> str:
        kind = thing.kind.removeprefix(f"{self.made.provider}_")
        return f"the_{kind}" if thing.name == "job" else f"{kind}_{thing.name}"

    def text(self) -> str:
        things = sorted(self.made.things, key=lambda each: not each.data)
        parts = [
            f'"""{self.about}"""\n',
            *(
                ["import base64\nimport hashlib\nfrom pathlib import Path\n"]
                if self.made.functions
                else []
            ),
            f"import pulumi\nimport {self.package} as {self.short}\n",
            ("HERE = Path(__file__).parent\n" if self.made.functions else "")
            + "config = pulumi.Config()\n"
            + "".join(_variable(each) for each in self.made.variables),
            f"provider = {self._call(f'{self.short}.Provider', self.made.settings, '', 'job')}"
            "made = pulumi.ResourceOptions(provider=provider)\n",
            *(self._thing(each) for each in _ordered(things)),
            "".join(
                f"pulumi.export({json.dumps(name)}, {self.said(value, 0)})  # {words}\n"
                for name, (value, words) in self.made.outputs.items()
            ),
        ]
        return "\n".join(parts)

    def _thing(self, thing: Thing) -> str:
        why = f"# {thing.why}\n" if thing.why else ""
        called = f"{self.short}.{self.made.classes[thing.kind]}"
        if thing.data:
            options, name = "opts=pulumi.InvokeOptions(provider=provider)", ""
        else:
            options, name = self._options(thing), thing.name
        return why + f"{self.names[thing.address]} = " + self._call(
            called, thing.fields, options, name
        )  # fmt: skip

    def _options(self, thing: Thing) -> str:
        if not thing.needs and not thing.leaves:
            return "opts=made"
        needs = ", ".join(self.names[each] for each in thing.needs)
        leaves = ", ".join(json.dumps(_camel(each)) for each in thing.leaves)
        said = f", ignore_changes=[{leaves}]" if leaves else ""
        options = f"opts=pulumi.ResourceOptions(provider=provider, depends_on=[{needs}]{said})"
        if len(options) + 4 < _WIDE:
            return options
        lines = "".join(f"            {self.names[each]},\n" for each in thing.needs)
        more = f"        ignore_changes=[{leaves}],\n" if leaves else ""
        return (
            "opts=pulumi.ResourceOptions(\n        provider=provider,\n        depends_on=[\n"
            f"{lines}        ],\n{more}    )"
        )

    def _call(self, called: str, fields: Mapping[str, Any], options: str, name: str) -> str:
        lines = [f"    {json.dumps(name)},\n"] if name else []
        for field, value in fields.items():
            said = self.said(value, 1)
            if field in _FILES and isinstance(value, Var):
                said = f"pulumi.FileAsset({said})"
            lines.append(f"    {_plural(field, value)}={said},\n")
        lines += [f"    {options},\n"] if options else []
        return f"{called}(\n{''.join(lines)})\n"

    def said(self, value: Any, deep: int) -> str:
        match value:
            case Var(name):
                return name
            case Of(address, attribute):
                return f"{self.names[address]}.{attribute}"
            case Filled(pattern, parts):
                return self._filled(pattern, parts)
            case Json(inner):
                return f"pulumi.Output.json_dumps({self._braced(inner, deep, fields=False)})"
            case Map(values):
                return self._braced(dict(values), deep, fields=False)
            case Underscored(part):
                return f'{self.said(part, deep)}.replace("-", "_")'
            case FileHash(path):
                return f"hashlib.md5(Path({self.said(path, deep)}).read_bytes()).hexdigest()"
            case Script(variables, encoded):
                return self._script(variables, encoded, deep)
            case dict() | list():
                return self._braced(value, deep, fields=True)
        return repr(value) if isinstance(value, bool | int | float) else json.dumps(value)

    def _braced(self, value: Any, deep: int, *, fields: bool) -> str:
        """Names of fields are Pulumi's; keys of what is no block are as they are."""
        if not isinstance(value, dict | list):
            return self.said(value, deep)
        if not value:
            return "{}" if isinstance(value, dict) else "[]"
        inner, pad = "    " * (deep + 1), "    " * deep
        if isinstance(value, list):
            items = [self._braced(each, deep + 1, fields=fields) for each in value]
            flat = f"[{', '.join(items)}]"
            if "\n" not in flat and len(flat) + len(pad) < _WIDE - 20:
                return flat
            return "[\n" + "".join(f"{inner}{each},\n" for each in items) + f"{pad}]"
        lines = [
            f"{inner}{json.dumps(_plural(key, each) if fields else key)}:"
            f" {self._braced(each, deep + 1, fields=fields)},\n"
            for key, each in value.items()
        ]
        return "{\n" + "".join(lines) + f"{pad}}}"

    def _filled(self, pattern: str, parts: tuple[Any, ...]) -> str:
        pieces: list[str] = []
        for text, part in zip(pattern.split("%s"), [*parts, None], strict=True):
            pieces += [json.dumps(text)] if text else []
            pieces += [self.said(part, 0)] if part is not None else []
        if all(isinstance(each, Var) for each in parts):
            return " + ".join(pieces)
        return f"pulumi.Output.concat({', '.join(pieces)})"

    def _script(self, variables: Mapping[str, Any], encoded: bool, deep: int) -> str:
        inner, pad = "    " * (deep + 1), "    " * deep
        pieces = ['"#!/bin/bash\\n"']
        for name, each in variables.items():
            pieces.append(f'"export {name}=", {self.said(each, deep)}, "\\n"')
        pieces.append(f'(HERE / "{SCRIPT}").read_text()')
        said = (
            "pulumi.Output.concat(\n" + "".join(f"{inner}{each},\n" for each in pieces) + f"{pad})"
        )
        return f"{said}.apply(lambda text: base64.b64encode(text.encode()).decode())" if (
            encoded
        ) else said  # fmt: skip


def _variable(each: Variable) -> str:
    why = f"# {each.words}\n"
    whole = each.kind == "number"
    if each.default is None:
        return f"{why}{each.name} = config.require({json.dumps(each.name)})\n"
    got = "get_int" if whole else "get"
    default = each.default if whole else json.dumps(each.default)
    return f"{why}{each.name} = config.{got}({json.dumps(each.name)}, {default})\n"


def _camel(path: str) -> str:
    """Properties are `scalingConfig.desiredSize` there."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), path)


def _plural(name: str, value: Any) -> str:
    """Pulumi's names of lists are plural."""
    return f"{name}s" if isinstance(value, list) and not name.endswith("s") else name


def _ordered(things: list[Thing]) -> list[Thing]:
    """Each after what it needs: a program has no other order."""
    known = {each.address: each for each in things}
    found: dict[str, Thing] = {}

    def put(thing: Thing) -> None:
        if thing.address in found:
            return
        for address in (*_needs(thing.fields), *thing.needs):
            put(known[address])
        found[thing.address] = thing

    for each in things:
        put(each)
    return list(found.values())


def _needs(value: Any) -> list[str]:
    match value:
        case Of(address, _):
            return [address]
        case dict():
            return [each for inner in value.values() for each in _needs(inner)]
        case list() | tuple():
            return [each for inner in value for each in _needs(inner)]
        case (
            Map(inner)
            | Json(inner)
            | Script(inner, _)
            | FileHash(inner)
            | Underscored(inner)
            | Filled(_, inner)
        ):
            return _needs(inner)
    return []
