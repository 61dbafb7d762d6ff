"""Lists of Compute Engine: filters, pages, and lists over all places.

Filters compare fields (`labels.run=x`, `status != RUNNING`, `insertTime > "2026-…"`, `name eq .*`),
joined by AND, OR, NOT, parentheses, or nothing (which is AND). Known lies: an unknown field equals
nothing, instead of being refused; `orderBy` is read and not followed; no place is ever unreachable
unless a test says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.cloud.faces.google.problems import Problem

Item = Mapping[str, Any]
_WORDS = re.compile(
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<joint>AND\b|OR\b|NOT\b)"
    r"|(?P<field>[\w.\-]+)\s*(?P<sign>!=|>=|<=|=|>|<|:|\bne\b|\beq\b)\s*"
    r"(?P<value>\"[^\"]*\"|'[^']*'|\((?:[^()]*)\)|[^\s()]+))"
)


def kept(items: Sequence[Item], expression: str) -> list[Item]:
    if not expression.strip():
        return list(items)
    test = _Reader(expression).read()
    return [each for each in items if test(each)]


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def read(self) -> Callable[[Item], bool]:
        test = self._any()
        if self._text[self._at :].strip():
            raise _bad(self._text)
        return test

    def _peek(self) -> re.Match[str] | None:
        return _WORDS.match(self._text, self._at)

    def _any(self) -> Callable[[Item], bool]:
        tests = [self._all()]
        while (found := self._peek()) and found["joint"] == "OR":
            self._at = found.end()
            tests.append(self._all())
        return lambda item: any(test(item) for test in tests)

    def _all(self) -> Callable[[Item], bool]:
        tests = [self._one()]
        while (found := self._peek()) and not found["close"] and found["joint"] != "OR":
            if found["joint"] == "AND":
                self._at = found.end()
            tests.append(self._one())
        return lambda item: all(test(item) for test in tests)

    def _one(self) -> Callable[[Item], bool]:
        found = self._peek()
        if found is None:
            raise _bad(self._text)
        self._at = found.end()
        if found["joint"] == "NOT":
            inner = self._one()
            return lambda item: not inner(item)
        if found["open"]:
            inner = self._any()
            closing = self._peek()
            if closing is None or not closing["close"]:
                raise _bad(self._text)
            self._at = closing.end()
            return inner
        if not found["field"]:
            raise _bad(self._text)
        return _comparison(found["field"], found["sign"], found["value"])


def _comparison(name: str, sign: str, value: str) -> Callable[[Item], bool]:
    if value.startswith("(") and sign in ("=", ":"):  # one of several
        each = [part.strip().strip("\"'") for part in re.split(r"\bOR\b", value[1:-1])]
        return lambda item: any(_compare(_at(item, name), sign, one) for one in each)
    plain = value[1:-1] if value[0] in "\"'" else value
    return lambda item: _compare(_at(item, name), sign, plain)


def _at(item: Item, name: str) -> Any:
    value: Any = item
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _compare(value: Any, sign: str, wanted: str) -> bool:
    if sign == ":":
        return value is not None and (wanted == "*" or wanted in str(value))
    text = "" if value is None else str(value)
    text = text.lower() if isinstance(value, bool) else text
    if sign in ("eq", "ne"):
        same = value is not None and re.fullmatch(wanted, text) is not None
        return same if sign == "eq" else not same
    if sign in ("=", "!="):
        same = value is not None and text == wanted
        return same if sign == "=" else not same
    if value is None:
        return False
    left, right = _ordered(text), _ordered(wanted)
    if type(left) is not type(right):
        return False
    more, less = bool(left > right), bool(left < right)
    return {">": more, "<": less, ">=": not less, "<=": not more}[sign]


def _ordered(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return text


def page(items: Sequence[Item], query: Mapping[str, str], most: int = 500) -> dict[str, Any]:
    size = min(int(query.get("maxResults") or most), most)
    token = query.get("pageToken", "")
    if token and not re.fullmatch(r"p\d+", token):
        raise Problem(400, f"Invalid value for field 'pageToken': '{token}'.")
    start = int(token[1:]) if token else 0
    told: dict[str, Any] = {"items": list(items[start : start + size])}
    if start + size < len(items):
        told["nextPageToken"] = f"p{start + size}"
    return told


def aggregated(
    found: Sequence[tuple[str, Item]], name: str, places: Sequence[str], query: Mapping[str, str]
) -> dict[str, Any]:
    """By place; those that have nothing on this page say so."""
    chosen = kept([{**item, "_at": place} for place, item in found], query.get("filter", ""))
    told = page(chosen, query)
    items: dict[str, Any] = {}
    for each in told.pop("items"):
        shown = {key: value for key, value in each.items() if key != "_at"}
        items.setdefault(each["_at"], {}).setdefault(name, []).append(shown)
    for place in places:
        if place not in items:
            data = [{"key": "scope", "value": place}]
            words = f"There are no results for scope '{place}' on this page."
            warning = {"code": "NO_RESULTS_ON_PAGE", "message": words, "data": data}
            items[place] = {"warning": warning}
    return {"items": items, **told}


def _bad(text: str) -> Problem:
    return Problem(
        400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
    )
