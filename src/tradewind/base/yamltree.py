"""YAML whose every node knows its line, so that a complaint can name file, line and field.

`parse` gives the root `Node`; readers walk it with `mapping`, `items`, `text`; what is wrong is
gathered in `Problems`, so that a user sees all of it at once. Imports PyYAML only when called.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tradewind.base.errors import BadFile, InvalidValue, TradewindError

LARGEST = 1_000_000  # characters; a file for people is far smaller
DEEPEST = 50
MOST_NODES = 100_000
T = TypeVar("T")


class Problems:
    """Everything wrong with one file."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        self.found.append((line, message))

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """What is raised inside is written down with the node's place, and the reading goes on."""
        try:
            yield
        except TradewindError as error:
            self.note(node, error)

    def note(self, node: Node, error: TradewindError) -> None:
        hint = f" ({error.hint})" if error.hint else ""
        self.add(node.line, f"{node.where}: {error.message}{hint}")

    def raise_if_any(self, hint: str | None = None) -> None:
        if self.found:
            lines = [f"{self.origin} line {line}: {text}" for line, text in sorted(self.found)]
            raise BadFile("\n".join(lines), hint=hint)


@dataclass(frozen=True, slots=True)
class Node:
    value: Any  # dict[str, Node], list[Node], str, or None
    line: int
    where: str  # `offers[2].accelerator`

    def mapping(
        self,
        allowed: Iterable[str],
        problems: Problems,
        advise: Callable[[str], str] = lambda name: "",
    ) -> Mapping[str, Node]:
        """The fields; unknown ones are refused with the nearest legal name, or with what `advise`
        knows of them."""
        legal = list(allowed)
        if not isinstance(self.value, dict):
            raise InvalidValue(f"expected fields ({', '.join(legal[:4])} …), found {self.kind}")
        for name, node in self.value.items():
            if name not in legal:
                close = difflib.get_close_matches(name, legal, n=1)
                nearest = f"did you mean {close[0]!r}?" if close else f"legal: {', '.join(legal)}"
                advice = advise(name) or nearest
                problems.add(node.line, f"{node.where}: there is no such field; {advice}")
        return {name: node for name, node in self.value.items() if name in legal}

    def items(self) -> list[Node]:
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise InvalidValue(f"expected a list, found {self.kind}")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise InvalidValue(f"expected a value, found {self.kind if self.value else 'none'}")
        if not self.value.isprintable():
            raise InvalidValue("it has characters that cannot be printed")
        return self.value.strip()

    def number(self) -> float:
        try:
            number = float(self.text())
        except ValueError:
            raise InvalidValue(f"{self.text()!r} is not a number") from None
        if not 0 <= number < 1e15:
            raise InvalidValue(f"{self.text()} cannot be")
        return number

    @property
    def kind(self) -> str:
        names = {dict: "fields", list: "a list", str: "a value", type(None): "nothing"}
        return names[type(self.value)]


def field(
    fields: Mapping[str, Node], name: str, read: Callable[[Node], T], problems: Problems
) -> T | None:
    """The field read by `read`, or None where it is absent or wrong (and then written down)."""
    node = fields.get(name)
    if node is None:
        return None
    try:
        return read(node)
    except TradewindError as error:
        problems.note(node, error)
        return None


def parse(text: str, origin: str) -> Node:
    import yaml

    if len(text) > LARGEST:
        raise BadFile(f"{origin} is larger than a million characters; is it the right file?")
    # Depth is bounded before composing: the parser itself recurses, and would end in a traceback.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise BadFile(f"{origin} is nested deeper than {DEEPEST} levels")
        root = yaml.compose(text, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise BadFile(f"{origin}{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadFile(f"{origin}: not YAML: {error}") from None
    if root is None:
        return Node({}, 1, "file")
    return _Converter(origin).convert(root, "", frozenset())


class _Converter:
    """PyYAML's nodes as ours. Aliases are written out, so their number is bounded."""

    def __init__(self, origin: str) -> None:
        self.origin, self.left = origin, MOST_NODES

    def convert(self, node: Any, where: str, above: frozenset[int]) -> Node:
        import yaml

        line = node.start_mark.line + 1
        self.left -= 1
        if self.left < 0:
            raise BadFile(f"{self.origin} line {line}: too many values; is it the right file?")
        if id(node) in above:
            raise BadFile(f"{self.origin} line {line}: an alias that contains itself")
        within = above | {id(node)}
        if isinstance(node, yaml.MappingNode):
            fields: dict[str, Node] = {}
            for key, value in node.value:
                name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
                if name in fields:
                    raise BadFile(
                        f"{self.origin} line {key.start_mark.line + 1}: "
                        f"{where or 'file'} has {name!r} twice"
                    )
                inner = self.convert(value, f"{where}.{name}" if where else name, within)
                # A field is where its name stands, also when its value begins a line below.
                fields[name] = Node(inner.value, key.start_mark.line + 1, inner.where)
            return Node(fields, line, where or "file")
        if isinstance(node, yaml.SequenceNode):
            inside = [
                self.convert(item, f"{where}[{number}]", within)
                for number, item in enumerate(node.value, start=1)
            ]
            return Node(inside, line, where or "file")
        plain_null = node.tag == "tag:yaml.org,2002:null"
        return Node(None if plain_null else node.value, line, where or "file")
