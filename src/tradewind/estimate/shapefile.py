"""A transformer's shape from a user's YAML: the numbers of Shape, one a line.

    layers: 24
    d_model: 2048
    n_heads: 16

What is left out is as in a Llama (`huggingface.from_numbers`). Everything that is wrong is told at
once, with file, line and field.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.units import parse_count
from tradewind.base.yamltree import Node, Problems, parse
from tradewind.estimate.huggingface import CHOICES, from_numbers
from tradewind.model.shape import Shape

FIELDS = {field.name: str(field.type) for field in fields(Shape)}
NEEDED = ("layers", "d_model", "n_heads")
_MAY_BE_NEGATIVE = ("extra_params",)


def read(text: str, origin: str, name: str = "") -> Shape:
    root = parse(text, origin)
    problems = Problems(origin)
    values: dict[str, Any] = {}
    nodes = root.mapping(FIELDS, problems)
    for field, node in nodes.items():
        with problems.at(node):
            values[field] = _value(node, field)
    misspelled = len(root.value) > len(nodes)
    for field in NEEDED:
        if field not in nodes and not misspelled:
            problems.add(root.line, f"{field} is missing")
    problems.raise_if_any()
    try:
        return from_numbers(values, origin=origin, name=name)
    except BadFile as error:
        # What two fields say together is wrong: it is told where the first of them stands.
        words = error.message.removeprefix(f"{origin}: ")
        lines = [nodes[word].line for word in words.split() if word in nodes]
        where = f"{origin} line {lines[0]}" if lines else origin
        raise BadFile(f"{where}: {words}", hint=error.hint) from None


def _value(node: Node, field: str) -> Any:
    text, kind = node.text(), FIELDS[field]
    if kind == "bool":
        if text.lower() not in ("true", "false", "yes", "no"):
            raise InvalidValue(f"{text!r} is neither true nor false")
        return text.lower() in ("true", "yes")
    if kind == "int":
        negative = field in _MAY_BE_NEGATIVE and text.startswith("-")
        number = parse_count(text.removeprefix("-") if negative else text)
        return -number if negative else number
    legal = CHOICES.get(field)
    if legal and text not in legal:
        raise InvalidValue(f"{text!r} is not one of {', '.join(legal)}")
    return text
