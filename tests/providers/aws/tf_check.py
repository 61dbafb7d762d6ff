"""What is wrong with a text in Terraform's language, as the schema of a cloud's provider tells.

Stricter than Terraform: a number is no text here. What it has no words for, it calls a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from tests.providers.aws.tf_schema import Fields, Thing
from tests.providers.aws.tf_text import (
    Block,
    Called,
    Expression,
    Item,
    Listed,
    Literal,
    Mapped,
    Name,
    Part,
    Template,
    read,
)

FUNCTIONS = {
    "jsonencode": ("any", "string"),
    "length": ("stringList", "number"),
    "sort": ("stringList", "stringList"),
    "base64encode": ("string", "string"),
    "file": ("string", "string"),
    "filemd5": ("string", "string"),
    "join": ("string stringList", "string"),
    "format": ("string string", "string"),
    "replace": ("string string string", "string"),
}
"""What each takes, and gives."""


OWN = frozenset({"provider", "count", "depends_on"})
"""Attributes of Terraform, not of a provider: those that we write."""


class Fault(Exception):
    pass


class Schema(Protocol):
    """Of a provider: what there is, by the names that Terraform has for it."""

    name: str

    def resource(self, name: str) -> Thing | None: ...

    def data(self, name: str) -> Thing | None: ...

    def provider(self) -> Thing: ...


@dataclass(frozen=True)
class Declared:
    address: str
    block: Block
    thing: Thing

    @property
    def counted(self) -> bool:
        return "count" in self.block.attributes


def faults(text: str, schema: Schema) -> list[str]:
    return list(_Check(schema).file(read(text)))


class _Check:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.declared: dict[str, Declared] = {}
        self.providers: dict[str, Declared] = {}
        self.needs: dict[str, set[str]] = {}
        self.variables: dict[str, str] = {}
        self.outputs: list[Block] = []
        self.used: set[str] = set()

    def file(self, file: Block) -> Iterator[str]:
        yield from (f"{name}: nothing may be set outside of blocks" for name in file.attributes)
        for block in file.blocks:
            yield from self._declare(block)
        for each in self.providers.values():
            yield from self._body(each.address, each.block, each.thing.fields, each)
        for each in self.declared.values():
            yield from self._own(each)
            yield from self._body(each.address, each.block, each.thing.fields, each, OWN)
        for output in self.outputs:
            none = Declared(f"output.{output.labels[0]}", output, Thing({}, {}, {}))
            if found := self._unlike("string", output.attributes["value"], none):
                yield f"{none.address}.value: {found}"
        yield from (f"var.{name}: used by nothing" for name in self.variables.keys() - self.used)
        try:
            TopologicalSorter(self.needs).prepare()
        except CycleError as found:
            yield "these need each other: " + ", ".join(sorted(set(found.args[1])))

    def _declare(self, block: Block) -> Iterator[str]:
        among, thing = self.declared, None
        match block.kind, block.labels:
            case "resource", [kind, name]:
                address, thing = f"{kind}.{name}", self.schema.resource(kind)
            case "data", [kind, name]:
                address, thing = f"data.{kind}.{name}", self.schema.data(kind)
            case "provider", [cloud] if cloud == self.schema.name:
                alias = block.attributes.get("alias")
                address = f"{cloud}.{alias.text}" if isinstance(alias, Literal) else cloud
                among, thing = self.providers, self.schema.provider()
            case "terraform", []:
                yield from _settings(block, self.schema.name)
                return
            case "variable", [name]:
                yield from self._variable(name, block)
                return
            case "output", [_] if set(block.attributes) == {"value", "description"}:
                self.outputs.append(block)
                return
            case _:
                address = " ".join([block.kind, *block.labels])
        if thing is None:
            yield f"{address}: the provider has no such thing"
        elif address in among:
            yield f"{address}: declared twice"
        else:
            among[address] = Declared(address, block, thing)

    def _variable(self, name: str, block: Block) -> Iterator[str]:
        given = dict(block.attributes)
        kind = _dotted(given.pop("type", Name("none")))
        default = given.pop("default", None)
        if kind not in ("string", "number") or set(given) != {"description"} or block.blocks:
            yield f"var.{name}: has to be a type, a description and perhaps a default"
        if isinstance(default, Literal) and default.kind != kind:
            yield f"var.{name}.default: is {default.kind}, not {kind}"
        if name in self.variables:
            yield f"var.{name}: declared twice"
        self.variables[name] = kind

    def _own(self, of: Declared) -> Iterator[str]:
        """What is wrong with the attributes that are Terraform's own."""
        given = of.block.attributes
        if _dotted(given.get("provider", Name(self.schema.name))) not in self.providers:
            yield f"{of.address}.provider: not a declared provider"
        if found := "count" in given and self._unlike("number", given["count"], of):
            yield f"{of.address}.count: {found}"
        after = given.get("depends_on", Listed([]))
        for each in after.items if isinstance(after, Listed) else [after]:
            name = _dotted(each)
            self.needs.setdefault(of.address, set()).add(name)
            if name not in self.declared:
                yield f"{of.address}.depends_on: {name} is not declared"

    def _body(
        self, where: str, block: Block, fields: Fields, of: Declared, known: Set[str] = frozenset()
    ) -> Iterator[str]:
        """Of what is declared, or of a block in it; `known` are attributes to pass over."""
        kinds = [each.kind for each in block.blocks]
        for name, field in fields.items():
            if field.required and name not in [*kinds, *block.attributes]:
                yield f"{where}.{name}: required, and not there"
            if field.block and not field.many and kinds.count(name) > 1:
                yield f"{where}.{name}: may be there only once"
        for name in (each for each in block.attributes if each not in known):
            if name not in fields:
                yield f"{where}.{name}: no such attribute"
            elif fields[name].block:
                yield f"{where}.{name}: a block, written as an attribute"
            elif found := self._unlike(fields[name].kind, block.attributes[name], of):
                yield f"{where}.{name}: {found}"
        for inner in block.blocks:
            name = inner.kind
            if name == "lifecycle" and block is of.block:
                yield from _lifecycle(f"{where}.lifecycle", inner, fields)
                continue
            if name not in fields:
                yield f"{where}.{name}: no such block"
            elif not fields[name].block:
                yield f"{where}.{name}: an attribute, written as a block"
            elif inner.labels:
                yield f"{where}.{name}: a block within another has no labels"
            else:
                yield from self._body(
                    f"{where}.{name}", inner, of.thing.shapes[fields[name].kind], of
                )

    def _unlike(self, kind: str, value: Expression, of: Declared) -> str:
        try:
            got = self._kind(value, of)
        except Fault as fault:
            return str(fault)
        if got == kind or (got == "[]" and kind.endswith("List")):
            return ""
        return f"is {got}, not {kind}"

    def _kind(self, value: Expression, of: Declared) -> str:
        match value:
            case Literal():
                return value.kind
            case Listed():
                inner = {self._kind(each, of) for each in value.items}
                return _together(inner, "List") if inner else "[]"
            case Mapped():
                return _together({self._kind(each, of) for each in value.items.values()}, "Map")
            case Called():
                return self._called(value, of)
            case Template():
                kinds = {self._kind(each, of) for each in value.parts}
                if kinds - {"string", "number"}:
                    raise Fault(f"{', '.join(sorted(kinds))} within a text")
                return "string"
            case Name() | Part():
                return self._reached(value, of)
        got, key = self._kind(value.of, of), self._kind(value.key, of)
        if key != "number" or not got.endswith("List"):
            raise Fault(f"{got} has no item that {key} names")
        return got.removesuffix("List")

    def _called(self, value: Called, of: Declared) -> str:
        if value.name not in FUNCTIONS:
            raise Fault(f"{value.name}() is not known to this check")
        takes, gives = FUNCTIONS[value.name]
        kinds = [self._kind(each, of) for each in value.given]
        if takes not in (" ".join(kinds), "any") or (takes == "any" and len(kinds) != 1):
            raise Fault(f"{value.name}() takes one {takes}, not {', '.join(kinds) or 'nothing'}")
        return gives

    def _reached(self, value: Expression, of: Declared) -> str:
        path = _path(value)
        if path[0] == "var":
            self.used.add(str(path[1]))
            if path[1] not in self.variables:
                raise Fault(f"var.{path[1]} is not declared")
            return self.variables[str(path[1])]
        if path == ["path", "module"]:
            return "string"
        if path == ["count", "index"]:
            if not of.counted:
                raise Fault("count.index, without a count")
            return "number"
        there = 3 if path[0] == "data" else 2
        target, rest = ".".join(map(str, path[:there])), path[there:]
        if target not in self.declared:
            raise Fault(f"{target} is not declared")
        self.needs.setdefault(of.address, set()).add(target)
        found = self.declared[target]
        key = rest.pop(0) if rest and not isinstance(rest[0], str) else None
        if (key is not None) != found.counted:
            raise Fault(f"{target} has {'a' if found.counted else 'no'} count")
        if key is not None and not isinstance(key, str) and self._kind(key, of) != "number":
            raise Fault(f"{target} is counted by numbers")
        name = ".".join(map(str, rest))
        if name not in found.thing.outputs:
            raise Fault(f"{target} has no attribute {name}".rstrip())
        return found.thing.outputs[name]


def _lifecycle(where: str, block: Block, fields: Fields) -> Iterator[str]:
    """Terraform's own: which of two is made first, and what others may change."""
    for name, value in block.attributes.items():
        if name == "ignore_changes" and isinstance(value, Listed):
            for each in value.items:
                if str(_path(each)[0]) not in fields:
                    yield f"{where}.ignore_changes: {_path(each)[0]} is no field"
        elif name != "create_before_destroy":
            yield f"{where}: is not what we write"


def _settings(block: Block, cloud: str) -> Iterator[str]:
    """Terraform's own: where the provider comes from."""
    (wanted,) = block.blocks if len(block.blocks) == 1 else (Block("nothing", []),)
    found = wanted.attributes.get(cloud)
    source = found.items.get("source") if isinstance(found, Mapped) else None
    if (
        set(block.attributes) - {"required_version"}
        or wanted.kind != "required_providers"
        or wanted.blocks
    ):
        yield "terraform: has to be one block required_providers"
    elif source != Literal("string", f"hashicorp/{cloud}") or len(wanted.attributes) != 1:
        yield f"terraform.required_providers: has to be {cloud}, of hashicorp/{cloud}"


def _together(kinds: set[str], of: str) -> str:
    if len(kinds) == 1 and kinds <= {"string", "number", "boolean"}:
        return f"{kinds.pop()}{of}"
    return f"mixed{of}"


def _path(value: Expression) -> list[str | Expression]:
    """`a.b[c].d` as [a, b, c, d]: words, and what is in brackets."""
    match value:
        case Name():
            return [value.name]
        case Part():
            return [*_path(value.of), value.name]
        case Item():
            return [*_path(value.of), value.key]
    raise Fault("not a name")


def _dotted(value: Expression) -> str:
    try:
        return ".".join(map(str, _path(value)))
    except Fault as fault:
        return f"what is {fault}"
