"""The budgets file: what each project may spend in a month.

`$TRADEWIND_HOME/budgets.yaml`, written by the user, documented in docs/budgets.md. A wrong line is
refused with its place and reason, all of them at once. `read` takes text; `load` reads the file,
and there are no budgets where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.base import yamltree
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.ownfiles import home
from tradewind.base.units import Micros, parse_money
from tradewind.base.yamltree import Node, Problems, field
from tradewind.ledger.budgets import STOP, WARN, Budget, Budgets

NAME = "budgets.yaml"
_FIELDS = ("month", "what")


def load(env: Mapping[str, str] | None = None) -> Budgets:
    path = home(env) / NAME
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Budgets()
    except (OSError, UnicodeDecodeError) as error:
        raise NoAccess(f"{path} cannot be read: {error}") from None
    return read(text, str(path))


def read(text: str, origin: str) -> Budgets:
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    sections: Mapping[str, Node] = {}
    with problems.at(root):
        sections = root.mapping(("projects", "default"), problems)
    projects: dict[str, Budget] = {}
    if "projects" in sections:
        with problems.at(sections["projects"]):
            for name, node in _named(sections["projects"]).items():
                with problems.at(node):
                    projects[name] = _budget(node, problems)
    default = field(sections, "default", lambda node: _budget(node, problems), problems)
    problems.raise_if_any(hint="docs/budgets.md describes the file; nothing of it was used")
    return Budgets(projects=projects, default=default)


def _named(node: Node) -> Mapping[str, Node]:
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        raise InvalidValue(f"expected projects with their budgets, found {node.kind}")
    return node.value


def _budget(node: Node, problems: Problems) -> Budget:
    fields = node.mapping(_FIELDS, problems)
    if "month" not in fields:
        raise InvalidValue("month is missing: how much, for example month: $500")
    month = field(fields, "month", _money, problems)
    what = field(fields, "what", _what, problems)
    return Budget(month=month or 0, what=what or STOP)


def _money(node: Node) -> Micros:
    return parse_money(node.text())


def _what(node: Node) -> str:
    if node.text() not in (STOP, WARN):
        raise InvalidValue(f"{node.text()!r} is not what can happen; {STOP} or {WARN}")
    return node.text()
