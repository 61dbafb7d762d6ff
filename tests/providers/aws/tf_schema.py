"""What Terraform's provider for AWS knows: resources, their attributes and blocks.

The provider itself cannot be had everywhere. `@cdktf/provider-aws` is generated from its schema, by
HashiCorp: for each resource a file of JavaScript that says how each field is written, and one of
types that says which have to be there. Both are made by one program in one layout, so they are read
by patterns, and whatever does not fit is an error.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FETCHED = Path(__file__).parents[3] / "build/terraform"
PACKAGE = FETCHED / "cdktf-provider-aws-21.22.1.tgz"

FIELD = re.compile(
    r"^ +(\w+): \{\n +value: (.*),\n +isBlock: (true|false),\n"
    r' +type: "\w+",\n +storageClassType: "(\w+)",$',
    re.MULTILINE,
)
NAMED = re.compile(r"#(\w+) \w+#\1\}(?:(?!\*/).)*\*/\s+readonly \w+(\??): ([^;{]*)", re.DOTALL)
INTERFACE = re.compile(r"^export interface (\w+) [^{]*\{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(
    r"^function (\w+)ToHclTerraform\(struct\) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL
)
THING = re.compile(
    r"^class (\w+) extends cdktf\.Terraform\w+ \{$(.*?)^\}$", re.MULTILINE | re.DOTALL
)
OUTPUT = re.compile(r"this\.get(\w+)Attribute\('(\w+)'\)")
OUTPUTS = {
    "String": "string", "Number": "number", "Boolean": "boolean", "List": "stringList",
    "NumberList": "numberList", "StringMap": "stringMap",
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    kind: str
    """string, number, stringList, stringMap and so on; of a block, the name of its shape."""
    required: bool
    block: bool
    """Some are attributes to the provider, and may be blocks in a text: a security group's rules.
    They may also be lists, if each of their fields is in each. We write blocks."""
    many: bool
    """A block that may be there more than once."""


Fields = dict[str, Field]


@dataclass(frozen=True)
class Thing:
    """A resource, a data source, or the provider's own settings."""

    fields: Fields
    shapes: dict[str, Fields]
    """Of its blocks, and of theirs."""
    outputs: dict[str, str]
    """What others may refer to, and of which kind it is."""


class Schema:
    name = "aws"

    def __init__(self) -> None:
        assert PACKAGE.exists(), f"{PACKAGE} is not there; run `make test-system`"
        with tarfile.open(PACKAGE) as packed:
            wanted = re.compile(r"package/lib/([\w-]+)/index\.(js|d\.ts)")
            self._texts: dict[tuple[str, str], bytes] = {}
            for member in packed:
                if found := wanted.fullmatch(member.name):
                    opened = packed.extractfile(member)
                    assert opened
                    # Most of it is a map back to a source that is not there.
                    plain = opened.read().partition(b"\n//# sourceMappingURL=")[0]
                    self._texts[found[1], found[2]] = plain
        self._read: dict[str, Thing] = {}

    def resource(self, name: str) -> Thing | None:
        return self._thing(name.removeprefix("aws_").replace("_", "-"), name)

    def data(self, name: str) -> Thing | None:
        return self._thing(f"data-{name.replace('_', '-')}", name)

    def provider(self) -> Thing:
        found = self._thing("provider", "aws")
        assert found
        return found

    def version(self) -> str:
        """Of the provider."""
        (found,) = set(re.findall(rb"providerVersion: '([\d.]+)'", self._texts["vpc", "js"]))
        return str(found, "ascii")

    def _thing(self, folder: str, name: str) -> Thing | None:
        if (folder, "js") not in self._texts:
            return None
        if folder not in self._read:
            script, types = (str(self._texts[folder, each], "utf-8") for each in ("js", "d.ts"))
            assert f'tfResourceType = "{name}"' in script, f"{folder} is not {name}"
            self._read[folder] = thing(script, types)
        return self._read[folder]


@cache
def schema() -> Schema:
    return Schema()


def thing(script: str, types: str) -> Thing:
    named = {
        interface: {name: (mark == "", kind) for name, mark, kind in NAMED.findall(body)}
        for interface, body in INTERFACE.findall(types)
    }
    ((own, body),) = THING.findall(script)
    bodies = {_upper(name): text for name, text in FUNCTION.findall(script)}
    shapes = {name: _fields(text, named[name]) for name, text in bodies.items()}
    fields = _fields(body, named[f"{own}Config"])
    read = len(fields) + sum(map(len, shapes.values()))
    assert read == script.count("isBlock:"), (
        f"{own}: {read} fields of those that are there were read"
    )
    outputs = {name: field.kind for name, field in fields.items() if not field.block}
    outputs |= {name: OUTPUTS[kind] for kind, name in OUTPUT.findall(body) if kind in OUTPUTS}
    return Thing(fields, shapes, outputs)


def _fields(text: str, named: dict[str, tuple[bool, str]]) -> Fields:
    made: Fields = {}
    for name, value, block, kind in FIELD.findall(text):
        required, typed = named[name]
        shape = re.search(r"(?<![\w.])(\w+)ToHclTerraform", value)
        assert bool(shape) == (block == "true"), f"{name} is neither a block nor an attribute"
        made[name] = Field(
            _upper(shape[1]) if shape else kind, required, bool(shape), "[]" in typed
        )
    return made


def _upper(name: str) -> str:
    return name[0].upper() + name[1:]
