"""A text in Terraform's language as blocks, attributes and expressions.

A block and an attribute stay apart, which the forms of it that are JSON lose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hcl2.api import parses_to_tree
from lark import Token, Tree


@dataclass(frozen=True)
class Literal:
    kind: str
    """string, number or boolean."""
    text: str = ""


@dataclass(frozen=True)
class Listed:
    items: list[Expression]


@dataclass(frozen=True)
class Mapped:
    items: dict[str, Expression]


@dataclass(frozen=True)
class Called:
    name: str
    given: list[Expression]


@dataclass(frozen=True)
class Template:
    """A text with expressions in it."""

    parts: list[Expression]


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Part:
    of: Expression
    name: str


@dataclass(frozen=True)
class Item:
    of: Expression
    key: Expression


Expression = Literal | Listed | Mapped | Called | Template | Name | Part | Item


@dataclass(frozen=True)
class Block:
    kind: str
    labels: list[str]
    attributes: dict[str, Expression] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def read(text: str) -> Block:
    """The file as one block."""
    (body,) = _trees(parses_to_tree(text))
    return _filled(Block("file", []), body)


def _filled(made: Block, body: Tree[Token]) -> Block:
    for each in _trees(body):
        first, *rest = _trees(each)
        if each.data == "attribute":
            assert _word(first) not in made.attributes, f"{_word(first)} is there twice"
            made.attributes[_word(first)] = _expression(rest[0])
        else:
            inner = Block(_word(first), [_word(label) for label in rest[:-1]])
            made.blocks.append(_filled(inner, rest[-1]))
    return made


def _expression(tree: Tree[Token]) -> Expression:
    match tree.data:
        case "expr_term":
            (inner,) = _trees(tree)
            return _expression(inner)
        case "string" if list(tree.find_data("interpolation")):
            return Template([_piece(part) for part in _trees(tree)])
        case "string":
            return Literal("string", _word(tree))
        case "int_lit" | "float_lit":
            return Literal("number", _word(tree))
        case "literal_value":
            assert _word(tree) != "null", "null is not read"
            return Literal("boolean", _word(tree))
        case "identifier":
            return Name(_word(tree))
        case "tuple":
            return Listed([_expression(each) for each in _trees(tree)])
        case "object":
            pairs = [_trees(each) for each in _trees(tree)]
            return Mapped({_word(key): _expression(value) for key, value in pairs})
        case "function_call":
            name, *given = _trees(tree)
            return Called(_word(name), [_expression(e) for list_ in given for e in _trees(list_)])
        case "get_attr_expr_term":
            of, name = _trees(tree)
            return Part(_expression(of), _word(name))
        case "index_expr_term":
            of, index = _trees(tree)
            (key,) = _trees(index)
            return Item(_expression(of), _expression(key))
    # Read as something it is not, a fault in it would go unseen.
    raise AssertionError(f"{tree.data} is not read: let tf_text.py read it")


def _piece(part: Tree[Token]) -> Expression:
    found = list(part.find_data("interpolation"))
    if not found:
        return Literal("string", _word(part))
    return _expression(_trees(found[0])[0])


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    """What a tree is made of, but for commas, braces, line ends and comments."""
    inner = [each for each in tree.children if isinstance(each, Tree)]
    return [each for each in inner if each.data != "new_line_or_comment"]


def _word(tree: Tree[Token]) -> str:
    """The one word or text that a tree is about."""
    plain = {"string", "string_part", "identifier", "keyword", "literal_value", "int_lit",
             "float_lit", "object_elem_key", "expr_term", "get_attr"}  # fmt: skip
    assert tree.data in plain, f"{tree.data} is not read: let tf_text.py read it"
    words = [_word(each) if isinstance(each, Tree) else str(each) for each in tree.children]
    return "".join(word for word in words if word not in ('"', "."))
