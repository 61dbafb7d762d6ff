"""A text in Terraform's language, laid out as `terraform fmt` would."""

from __future__ import annotations

import json
from typing import Any

Block = tuple[str, dict[str, Any]]
"""Its head, such as `resource "KIND" "NAME"`, and what is in it: a dict is a block within, a
list of dicts are several."""


class Raw(str):
    """An expression, not a text."""


def rendered(blocks: list[Block]) -> str:
    return "\n".join(f"{head} {_body(fields)}\n" for head, fields in blocks)


def mapped(values: dict[str, str]) -> Raw:
    """An attribute that is a map, which is no block."""
    return Raw(text(values))


def text(value: Any) -> str:
    """An expression, laid out as `terraform fmt` would."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, dict):
        return _braced(_aligned([(_word(key), text(each)) for key, each in value.items()]))
    if isinstance(value, list) and len(value) > 1:
        inner = "".join(f"  {_shifted(text(each))},\n" for each in value)
        return f"[\n{inner}]"
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    # JSON's texts are Terraform's, but for what it would fill in.
    return json.dumps(value, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def _word(key: str) -> str:
    return key if key.isidentifier() else json.dumps(key)


def _body(fields: dict[str, Any]) -> str:
    """Of a block: attributes, and blocks within."""
    items: list[tuple[str, str]] = []
    for key, value in fields.items():
        blocks = value if isinstance(value, list) and isinstance(value[0], dict) else [value]
        for each in blocks:
            inner = isinstance(each, dict)
            items.append((key, "" if inner else text(each)))
            if inner:
                items[-1] = ("", f"{key} {_body(each)}")
    return _braced(_aligned(items))


def _aligned(items: list[tuple[str, str]]) -> list[str]:
    """The equal signs of neighbours that fit on one line stand below each other."""
    lines: list[str] = []
    near: list[tuple[str, str]] = []

    def flush() -> None:
        wide = max((len(key) for key, _ in near), default=0)
        lines.extend(f"{key:<{wide}} = {text}" for key, text in near)
        near.clear()

    for key, text in items:
        if key and "\n" not in text:
            near.append((key, text))
            continue
        flush()
        lines.append(f"{key} = {text}" if key else text)
    flush()
    return lines


def _braced(lines: list[str]) -> str:
    return "{\n" + "".join(f"  {_shifted(line)}\n" for line in lines) + "}" if lines else "{}"


def _shifted(text: str) -> str:
    return text.replace("\n", "\n  ")
