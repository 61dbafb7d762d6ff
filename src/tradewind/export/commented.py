"""YAML with comments: values as they are, and `Why(value, "words")` where a figure has a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import yaml

_WIDE = 98


class Why(NamedTuple):
    value: Any
    words: str


def text(value: Any) -> str:
    return "\n".join(_lines(value, "")) + "\n"


def documents(values: Sequence[Any]) -> str:
    return "---\n".join(text(each) for each in values)


def plain(value: Any) -> Any:
    """Without its comments."""
    if isinstance(value, Why):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def _lines(value: dict[str, Any], indent: str) -> Iterator[str]:
    for key, each in value.items():
        if isinstance(each, Why):
            yield from (f"{indent}# {line}" for line in wrap(each.words, _WIDE - len(indent) - 2))
            each = each.value
        head = f"{indent}{_scalar(key)}:"
        yield from _after(head, each, indent)


def _after(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield head
        yield from _lines(value, indent + "  ")
    elif isinstance(value, list) and value:
        yield head
        yield from _items(value, indent)
    elif isinstance(value, str) and "\n" in value and _is_block(value):
        yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
        yield from (f"{indent}  {line}".rstrip() for line in value.rstrip("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _items(values: list[Any], indent: str) -> Iterator[str]:
    for each in values:
        if isinstance(each, Why):
            yield f"{indent}# {each.words}"
            each = each.value
        if isinstance(each, dict) and each:
            first, *rest = _lines(each, indent + "  ")
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
        elif isinstance(each, list) and each:
            yield f"{indent}- {yaml.safe_dump(plain(each), default_flow_style=True).strip()}"
        else:
            yield from _after(f"{indent}-", each, indent)


def _is_block(text: str) -> bool:
    """What reads as itself in a block: no blanks at ends of lines, none before the first."""
    lines = text.removesuffix("\n").split("\n")
    whole = all(line == line.rstrip() and line.isprintable() for line in lines)
    return whole and bool(lines[0]) and bool(lines[-1]) and lines[0][0] != " "


def _scalar(value: Any) -> str:
    dumped = yaml.safe_dump(value, width=10**6, allow_unicode=True, default_flow_style=True)
    return str(dumped).removesuffix("\n").removesuffix("\n...")
