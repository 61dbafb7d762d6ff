"""YAML, or plain data, to a Workload. Pure: names and the time come as arguments.

Whatever is wrong is a BadWorkload that names file, line and field, everything at once; no text, be
it YAML or not, gives anything else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tradewind.base import yamltree
from tradewind.base.errors import BadFile, BadWorkload, InvalidValue, TradewindError
from tradewind.base.yamltree import DEEPEST, Node, Problems
from tradewind.model import buckets
from tradewind.model.limits import Limits
from tradewind.model.workload import Workload
from tradewind.workload import fields, shapes, synonyms
from tradewind.workload.fields import SECTIONS
from tradewind.workload.kinds import Context, Faulty, is_path, within
from tradewind.workload.known import Known
from tradewind.workload.sections import MODEL, Field, Section

HINT = "docs/workload.md describes the file"
_TOP = (
    "name",
    *(
        name
        for section in SECTIONS
        for name in ([field.name for field in section.fields] if section.flat else [section.name])
    ),
)
Flags = Mapping[str, str | Sequence[str]]
# Fields that say the same in different ways: amounts of work, and adapters.
_SAME: dict[str, tuple[tuple[frozenset[str], ...], ...]] = {
    "train": (
        tuple(map(frozenset, (("tokens",), ("samples",), ("steps",), ("epochs", "dataset")))),
        tuple(map(frozenset, (("lora",), ("qlora",)))),
    ),
    "serve": (tuple(map(frozenset, (("trace",), ("rate", "curve", "input", "output", "burst")))),),
    "work": (tuple(map(frozenset, (("hours",), ("step", "steps")))),),
}


def read(
    text: str,
    origin: str,
    *,
    now: datetime | None = None,
    known: Known | None = None,
    folder: str = "",
    flags: Flags | None = None,
) -> Workload:
    """The workload that `text` describes.

    `flags` (`{"limits.deadline": "24h", "limits.regions": ["eu-*", "us-*"]}`) stand over what the
    file says; an amount of work takes the place of all that the file says of it. Relative paths
    start at `folder`. Without `now` a deadline may be past; without `known` any name will do.
    """
    try:
        root = yamltree.parse(text, origin)
    except (BadFile, UnicodeError) as error:
        # A lone surrogate cannot even be handed to the parser.
        message = error.message if isinstance(error, BadFile) else f"{origin}: not YAML: {error}"
        raise BadWorkload(_printable(message), hint=HINT) from None
    reader = _Reader(origin, Context(now, known, folder))
    return reader.workload(root, flags or {})


def of(
    document: Mapping[str, Any],
    *,
    origin: str = "workload",
    now: datetime | None = None,
    known: Known | None = None,
    folder: str = "",
) -> Workload:
    """The same from data: `of({"train": {"model": "llama-3.1-8b", "tokens": "10B", …}})`."""
    reader = _Reader(origin, Context(now, known, folder))
    try:
        root = _node(document, "", 0)
    except InvalidValue as error:
        raise BadWorkload(f"{origin}: {error.message}", hint=HINT) from None
    return reader.workload(root, {})


def _node(value: Any, where: str, depth: int) -> Node:
    if depth > DEEPEST:
        raise InvalidValue(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        inner = {
            str(name): _node(item, f"{where}.{name}" if where else str(name), depth + 1)
            for name, item in value.items()
        }
        return Node(inner, 0, where or "file")
    if isinstance(value, list | tuple):
        items = [_node(v, f"{where}[{n}]", depth + 1) for n, v in enumerate(value, start=1)]
        return Node(items, 0, where)
    if value is None or isinstance(value, str):
        return Node(value, 0, where)
    if isinstance(value, bool):
        return Node("true" if value else "false", 0, where)
    if isinstance(value, datetime):
        return Node(value.isoformat(), 0, where)
    if isinstance(value, int | float):
        return Node(str(value), 0, where)
    raise InvalidValue(f"{where}: a {type(value).__name__} is no value of a workload")


def _flag(given: str | Sequence[str], path: str) -> Node:
    if isinstance(given, str):
        return Node(given, 0, path)
    return Node([Node(text, 0, f"{path}[{n}]") for n, text in enumerate(given, start=1)], 0, path)


def _replaced(path: str, flags: Flags) -> set[str]:
    """Fields of a section that say in another way what this flag says; not those of flags."""
    name, _, inner = path.partition(".")
    others: set[str] = set()
    for ways in _SAME.get(name, ()):
        if any(inner in way for way in ways):
            others |= {field for way in ways if inner not in way for field in way}
    return {field for field in others if f"{name}.{field}" not in flags}


_WRONG = object()  # in place of a value; what is wrong with it is written down


def _nearly(node: Node, legal: Sequence[str], section: str) -> set[str]:
    """Fields that are there under a name with a typing error, or under another's name for them:
    they are not missing too. Of one that belongs into another section, that section."""
    names = node.value if isinstance(node.value, dict) else ()
    wrong = [name for name in names if name not in legal]
    close = (difflib.get_close_matches(name, legal, n=1) for name in wrong)
    places = (synonyms.place_of(name) for name in wrong)
    meant = (place.path.partition(".") for place in places if place)
    others = {field if within == section else within for within, _, field in meant}
    return {found[0] for found in close if found} | (others & set(legal))


def _flat(section: Section, top: Mapping[str, Node]) -> Node | None:
    """Those of its fields that stand at the top of the file; None where there are none."""
    given = {field.name: top[field.name] for field in section.fields if field.name in top}
    line = min((node.line for node in given.values()), default=0)
    return Node(given, line, section.name) if given else None


class _Problems(Problems):
    """What is wrong with one workload; a problem of no line is a flag's, or of data."""

    def raise_any(self) -> None:
        if not self.found:
            return
        found = sorted(set(self.found))
        lines = [
            f"{self.origin} line {line}: {text}" if line else f"{self.origin}: {text}"
            for line, text in found
        ]
        raise BadWorkload(_printable("\n".join(lines)), hint=HINT, problems=found)


def _printable(text: str) -> str:
    """A file's words in a message must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)


class _Reader:
    def __init__(self, origin: str, context: Context) -> None:
        self.context = context
        self.problems = _Problems(origin)

    def workload(self, root: Node, flags: Flags) -> Workload:
        top: dict[str, Node] = {}
        with self.problems.at(root):
            top = self._top(root)
        self._lay_over(top, flags)
        made: dict[str, Any] = {}
        if "name" in top:
            made["name"] = self._value(fields.NAME, top["name"])
        for section in SECTIONS:
            node = _flat(section, top) if section.flat else top.get(section.name)
            if node is not None:
                made[section.name] = self._section(section, node)
        given = {name: value for name, value in made.items() if value is not _WRONG}
        wrong = {name for name, value in made.items() if value is _WRONG} | _nearly(root, _TOP, "")
        # A file that is no mapping is told that, and not also what it lacks.
        if top or not self.problems.found:
            for fault in Workload.faults(given, wrong):
                self._add(top.get(fault.field, root), fault.field, fault.message, fault.hint)
        if isinstance(given.get("limits"), Limits):
            self._somewhere_left(given["limits"], top["limits"])
        self.problems.raise_any()
        return Workload(**given)

    def _top(self, root: Node) -> dict[str, Node]:
        """The sections; one of one's own machines is told where those belong."""
        if isinstance(root.value, dict) and "own" in root.value:
            node = root.value["own"]
            self.problems.add(
                node.line,
                "own: machines of your own are offers like any other: "
                "describe them in account.yaml (docs/account.md)",
            )
            root = Node({k: v for k, v in root.value.items() if k != "own"}, root.line, root.where)
        return dict(root.mapping(_TOP, self.problems, synonyms.advice))

    def _lay_over(self, top: dict[str, Node], flags: Flags) -> None:
        for path, given in flags.items():
            node = _flag(given, path)
            name, dot, inner = path.partition(".")
            if not dot:
                top[name] = node
                continue
            section = top.get(name)
            below = section.value if section and isinstance(section.value, dict) else {}
            kept = {n: v for n, v in below.items() if n not in _replaced(path, flags)}
            line = section.line if section else 0
            top[name] = Node({**kept, inner: node}, line, name)

    def _section(self, section: Section, node: Node) -> Any:
        """The value, or _WRONG where something is wrong with it, which is written down."""
        before = len(self.problems.found)
        given: Mapping[str, Node] = {}
        node = self._without_split_numbers(node)
        try:
            legal = [f.name for f in section.fields]
            given = node.mapping(
                legal, self.problems, lambda name: synonyms.advice(name, section.name)
            )
        except TradewindError as error:
            self.problems.note(node, error)
            return _WRONG
        values: dict[str, Any] = {}
        wrong = _nearly(node, legal, section.name)
        for name, inner in given.items():
            described = section.of(name)
            found = self._value(described, inner)
            if found is _WRONG:
                wrong.add(name)
            elif len(described.attributes) > 1:
                values |= dict(zip(described.attributes, found, strict=True))
            else:
                values[described.attributes[0]] = found
        values = {name: value for name, value in values.items() if value is not None}
        if section is fields.DATA:
            self._whose(values, given)
        for fault in section.make.faults(values, wrong):
            if fault.field not in wrong:
                place = given.get(fault.field, node)
                self._add(place, section.path(fault.field), fault.message, fault.hint)
        return section.make(**values) if len(self.problems.found) == before else _WRONG

    def _without_split_numbers(self, node: Node) -> Node:
        """`{budget: $2,000}` is a budget of $2 and a field `000`, and easily written."""
        fields = node.value if isinstance(node.value, dict) else {}
        for name in [name for name in fields if name.isdigit()]:
            self._add(
                fields[name],
                fields[name].where,
                "a comma inside braces begins a new field",
                "write 2000, or the field on a line of its own",
            )
        left = {name: inner for name, inner in fields.items() if not name.isdigit()}
        return Node(left, node.line, node.where) if fields else node

    def _value(self, described: Field, node: Node) -> Any:
        try:
            if described.kind is MODEL:
                return self._model(node)
            found = described.kind.read(node, self.context)
        except TradewindError as error:
            self.problems.note(node, error)
            return _WRONG
        if isinstance(found, Faulty):
            for inner, fault in found.faults:
                self.problems.note(inner, fault)
            return _WRONG
        return found

    def _model(self, node: Node) -> Any:
        if isinstance(node.value, dict):
            return shapes.read(node, self.problems)
        text = node.text()
        if is_path(text):
            return within(self.context.folder, text)
        if self.context.known and self.context.known.model:
            self.context.known.model(text)
        return text

    def _whose(self, values: dict[str, Any], given: Mapping[str, Node]) -> None:
        """A region without a provider is the address's: s3 is of AWS. Then both are checked."""
        if "region" not in values:
            return
        if "provider" not in values:
            provider = buckets.home(str(values.get("uri", "")))
            if provider is None:
                return
            values["provider"] = provider
        if self.context.known:
            with self.problems.at(given["region"]):
                self.context.known.region(f"{values['provider']}/{values['region']}")

    def _somewhere_left(self, limits: Limits, node: Node) -> None:
        known = self.context.known
        if known is None or not any(known.regions.values()):
            return
        regions = (
            (provider, region) for provider in known.regions for region in known.regions[provider]
        )
        if not any(limits.allows(*place, known.country_of(*place)) for place in regions):
            named = [
                name
                for name in ("providers", "regions", "exclude")
                if getattr(limits, name) is not None
            ]
            self._add(node, "limits", f"{' and '.join(named)} leave no region anywhere", "")

    def _add(self, node: Node, where: str, message: str, hint: str) -> None:
        self.problems.add(node.line, f"{where}: {message}" + (f" ({hint})" if hint else ""))
