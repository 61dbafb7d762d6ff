"""The budgets file: what each project may spend in a month.

`$TRADEWIND_HOME/budgets.yaml`, written by the user, documented in docs/budgets.md. A wrong line is
refused with its place and reason, all of them at once. `read` takes text; `load` reads the file,
and there are no budgets where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tradewind.base import yamltree
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.ownfiles import home
from tradewind.base.units import Micros, parse_money
from tradewind.base.yamltree import Node, Problems, field
from tradewind.ledger.budgets import STOP, WARN, Budget, Budgets
from tradewind.model import secrets
from tradewind.model.channels import NONE, SECURITIES, STARTTLS, TLS, Channels, Mail

NAME = "budgets.yaml"
_FIELDS = ("month", "what")
_MAIL = ("to", "from", "server", "security", "user", "password")
_EXAMPLES = {
    "to": "to: [ml@example.org]",
    "from": "from: tradewind@example.org",
    "server": "server: smtp.example.org:587",
}
_TLS_PORT = 465


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
        sections = root.mapping(("projects", "default", "tell"), problems)
    projects: dict[str, Budget] = {}
    if "projects" in sections:
        with problems.at(sections["projects"]):
            for name, node in _named(sections["projects"]).items():
                with problems.at(node):
                    projects[name] = _budget(node, problems)
    default = field(sections, "default", lambda node: _budget(node, problems), problems)
    tell = field(sections, "tell", lambda node: _channels(node, problems), problems)
    problems.raise_if_any(hint="docs/budgets.md describes the file; nothing of it was used")
    return Budgets(projects=projects, default=default, tell=tell or Channels())


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


def _channels(node: Node, problems: Problems) -> Channels:
    fields = node.mapping(("webhook", "mail"), problems)
    webhook = field(fields, "webhook", _reference, problems)
    mail = field(fields, "mail", lambda node: _mail(node, problems), problems)
    return Channels(webhook=webhook or "", mail=mail)


def _mail(node: Node, problems: Problems) -> Mail | None:
    fields = node.mapping(_MAIL, problems)
    missing = [name for name in ("to", "from", "server") if name not in fields]
    if missing:
        raise InvalidValue(f"{' and '.join(missing)} missing: for example {_EXAMPLES[missing[0]]}")
    security = field(fields, "security", _security, problems)
    to = field(fields, "to", _addresses, problems)
    sender = field(fields, "from", _address, problems)
    server = field(fields, "server", lambda node: _server(node, security), problems)
    user = field(fields, "user", Node.text, problems)
    password = field(fields, "password", _reference, problems)
    if (user is None) != (password is None):
        raise InvalidValue("user and password go together, or neither is needed")
    if to is None or sender is None or server is None:
        return None  # and written down
    return Mail(
        to=to,
        sender=sender,
        host=server[0],
        port=server[1],
        security=security or (TLS if server[1] == _TLS_PORT else STARTTLS),
        user=user or "",
        password=password or "",
    )


def _reference(node: Node) -> str:
    """What is wrong is not repeated: it may be the secret itself."""
    secrets.parse(node.text())
    return node.text()


def _addresses(node: Node) -> tuple[str, ...]:
    nodes = node.items() if isinstance(node.value, list) else [node]
    if not nodes:
        raise InvalidValue(f"nobody is named, for example {_EXAMPLES['to']}")
    return tuple(_address(each) for each in nodes)


def _address(node: Node) -> str:
    if not re.fullmatch(r"[^\s@<>,;]+@[^\s@<>,;]+", node.text()):
        raise InvalidValue(f"{node.text()!r} is no address of mail")
    return node.text()


def _security(node: Node) -> str:
    if node.text() not in SECURITIES:
        raise InvalidValue(f"{node.text()!r} is none of {', '.join(SECURITIES)}")
    return node.text()


def _server(node: Node, security: str | None) -> tuple[str, int]:
    host, _, port = node.text().partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65_536)):
        raise InvalidValue(f"{node.text()!r} is no server, for example smtp.example.org:587")
    usual = {TLS: _TLS_PORT, NONE: 25}.get(security or "", 587)
    return host, int(port) if port else usual


def _money(node: Node) -> Micros:
    return parse_money(node.text())


def _what(node: Node) -> str:
    if node.text() not in (STOP, WARN):
        raise InvalidValue(f"{node.text()!r} is not what can happen; {STOP} or {WARN}")
    return node.text()
