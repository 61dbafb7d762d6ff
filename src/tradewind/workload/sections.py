"""What a section of a workload file and its fields are described with. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tradewind.workload import kinds, shapes
from tradewind.workload.kinds import Kind


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    meaning: str
    example: str
    into: tuple[str, ...] = ()  # attributes of the value; left out: the same name
    default: str = ""  # in words, for the page

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.into or (self.name,)


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    make: Any  # a class of model.workload
    meaning: str
    fields: tuple[Field, ...]
    required: tuple[str, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)  # what a schema can see between fields
    flat: bool = False  # its fields stand at the top of the file, without a heading

    def of(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)

    def path(self, name: str) -> str:
        """Of a field, as the file has it."""
        return name if self.flat else f"{self.name}.{name}"


MODEL = Kind(
    "name, path, or fields",
    kinds.no_reader,  # an inline description tells its own faults; see reader.py
    {"anyOf": [kinds.TEXT.schema, shapes.schema()]},
)
