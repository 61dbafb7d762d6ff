"""The file of shared costs and how they are split, documented in docs/chargeback.md.

A wrong line is refused with its place and reason, all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tradewind.base import yamltree
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.units import parse_money
from tradewind.base.yamltree import Node, Problems, field
from tradewind.ledger.chargeback import COST, SPLITS, Shared, check

_FIELDS = ("name", "of", "month", "split")


def load(path: Path) -> list[Shared]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NoAccess(
            f"{path} cannot be read: {why}", hint="docs/chargeback.md describes the file"
        ) from None
    return read(text, str(path))


def read(text: str, origin: str) -> list[Shared]:
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    rules: list[Shared] = []
    with problems.at(root):
        sections = root.mapping(("shared",), problems)
        if "shared" not in sections:
            raise InvalidValue("shared is missing: a list of costs, each with how it is split")
        with problems.at(sections["shared"]):
            for node in sections["shared"].items():
                with problems.at(node):
                    rules.append(_rule(node, problems))
            if not problems.found:
                check(rules)
    problems.raise_if_any(hint="docs/chargeback.md describes the file; nothing of it was used")
    return rules


def _rule(node: Node, problems: Problems) -> Shared:
    fields = node.mapping(_FIELDS, problems)
    if "name" not in fields:
        raise InvalidValue("name is missing: what is shared, for example name: support")
    name = fields["name"].text()
    of = field(fields, "of", _projects, problems)
    month = field(fields, "month", lambda node: parse_money(node.text()), problems)
    split = field(fields, "split", _split, problems)
    if "of" not in fields and "month" not in fields:
        raise InvalidValue("say what is shared: of: [PROJECT, …], or month: $500")
    return Shared(name=name, of=of or (), month=month or 0, split=split or COST)


def _projects(node: Node) -> tuple[str, ...]:
    return tuple(each.text() for each in node.items())


def _split(node: Node) -> str | Mapping[str, float]:
    if isinstance(node.value, dict):
        return {name: _share(each) for name, each in node.value.items()}
    if node.text() not in SPLITS:
        raise InvalidValue(
            f"{node.text()!r} is not how it can be split: {', '.join(SPLITS)}, or"
            " {nlp: 60%, vision: 40%}"
        )
    return node.text()


def _share(node: Node) -> float:
    text = node.text().removesuffix("%").strip()
    try:
        share = float(text) / (100 if node.text().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidValue(f"{node.where}: {node.text()!r} is not a share: 60% or 0.6")
    return share
