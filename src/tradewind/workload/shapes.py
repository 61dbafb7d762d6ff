"""A model described in the file itself: the fields of a `Shape`, or of a `Work`.

A shape of a plain decoder needs five numbers; the rest has the values that are usual today. What
has `params` is a `Work`: a model that is no transformer, by what one sample costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

from tradewind.base.errors import InvalidValue
from tradewind.base.yamltree import Node, Problems, field
from tradewind.model.shape import Shape, Work

_LARGEST = 10**7  # as in a config.json: no width, count or length of a real model is larger
_NEEDED = {
    Shape: ("layers", "d_model", "n_heads", "d_ff", "vocab"),
    Work: ("params", "forward_flops_per_sample"),
}
_USUAL: dict[type, dict[str, Any]] = {
    Shape: {
        "name": "inline",
        "kind": "decoder",
        "gated": True,
        "tied": False,
        "positions": "rotary",
        "max_positions": 0,
        "bias": False,
        "norm": "rmsnorm",
    },
    Work: {
        "name": "inline",
        "kind": "profile",
        "activation_bytes_per_sample": 0.0,
        "moved_bytes_per_sample": 0.0,
        "sample": "sample",
        "input": "",
    },
}


def read(node: Node, problems: Problems) -> Shape | Work:
    """What is wrong goes to `problems`, or is raised where it is the whole."""
    kind: type = Work if isinstance(node.value, dict) and "params" in node.value else Shape
    hints = get_type_hints(kind)
    before = len(problems.found)
    given = node.mapping(hints, problems)
    values: dict[str, Any] = {}
    for name in given:

        def one(inner: Node, hint: Any = hints[name], name: str = name) -> Any:
            return _value(inner, hint, name)

        values[name] = field(given, name, one, problems)
    missing = [name for name in _NEEDED[kind] if name not in given]
    if missing:
        raise InvalidValue(f"a model described here needs {', '.join(missing)}")
    if len(problems.found) > before:
        raise InvalidValue("the description of the model is wrong")
    if kind is Work:
        return Work(**{**_USUAL[Work], **values})
    heads = values["n_heads"]
    values = {"n_kv_heads": heads, "head_dim": values["d_model"] // heads, **values}
    if "head_dim" not in given and values["d_model"] % heads:
        raise InvalidValue(f"d_model is no multiple of n_heads ({heads})", hint="give head_dim")
    if heads % values["n_kv_heads"]:
        raise InvalidValue(f"n_heads ({heads}) is no multiple of n_kv_heads")
    return Shape(**{**_USUAL[Shape], **values})


def _value(node: Node, hint: Any, name: str) -> Any:
    if hint is bool:
        if node.text().lower() not in ("true", "false"):
            raise InvalidValue(f"{node.text()!r} is neither true nor false")
        return node.text().lower() == "true"
    if hint is str:
        return node.text()
    choices = get_args(hint)
    if choices:
        if node.text() not in choices:
            raise InvalidValue(f"{node.text()!r} is none of {', '.join(choices)}")
        return node.text()
    if hint is float or name == "params":
        number = node.number() if hint is float else int(node.number())
        if number <= 0:
            raise InvalidValue(f"{node.text()} is not more than 0")
        return number
    number = node.number()
    least = 1 if name in (*_NEEDED[Shape], "n_kv_heads", "head_dim") else 0
    if number != int(number) or not least <= number <= _LARGEST:
        raise InvalidValue(f"{node.text()} is no whole number from {least} to {_LARGEST:,}")
    return int(number)


def schema() -> dict[str, Any]:
    return {"anyOf": [_schema(Shape), _schema(Work)]}


def _schema(kind: type) -> dict[str, Any]:
    hints: Mapping[str, Any] = get_type_hints(kind)
    known = {f.name: f.default for f in fields(kind) if f.default is not MISSING} | _USUAL[kind]
    properties: dict[str, Any] = {}
    for name, hint in hints.items():
        if hint is bool:
            described: dict[str, Any] = {"type": "boolean"}
        elif get_args(hint):
            described = {"enum": list(get_args(hint))}
        elif hint is str:
            described = {"type": ["string", "number"]}
        else:
            needed = name in (*_NEEDED[kind], "n_kv_heads", "head_dim")
            described = {"type": "number"} if hint is float else {"type": "integer"}
            described |= {"exclusiveMinimum": 0} if needed or hint is float else {"minimum": 0}
        if known.get(name) not in (None, ""):
            described["default"] = known[name]
        properties[name] = described
    return {
        "title": kind.__name__,
        "type": "object",
        "additionalProperties": False,
        "required": list(_NEEDED[kind]),
        "properties": properties,
    }
