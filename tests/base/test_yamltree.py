from __future__ import annotations

import pytest

from tradewind.base import yamltree
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.yamltree import Node, Problems


def test_every_node_knows_its_place() -> None:
    root = yamltree.parse("a:\n  - b: 1\n    c: x\n  - b: 2\n", "f.yaml")
    second = root.value["a"].value[1].value["b"]
    assert (second.line, second.where, second.text()) == (4, "a[2].b", "2")


def test_unknown_fields_are_refused_with_the_nearest() -> None:
    problems = Problems("f.yaml")
    fields = yamltree.parse("provder: aws\nregion: x\n", "f.yaml").mapping(
        ["provider", "region"], problems
    )
    assert list(fields) == ["region"]
    with pytest.raises(BadFile, match=r"f.yaml line 1: provder: .*did you mean 'provider'"):
        problems.raise_if_any()


def test_all_problems_are_told_at_once_in_order() -> None:
    root = yamltree.parse("b: x\na: y\n", "f.yaml")
    problems = Problems("f.yaml")
    for name in ("a", "b"):
        yamltree.field(root.value, name, Node.number, problems)
    with pytest.raises(BadFile) as caught:
        problems.raise_if_any()
    assert [line.split(":")[0] for line in caught.value.message.splitlines()] == [
        "f.yaml line 1",
        "f.yaml line 2",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1, 2\n", "f.yaml line 2: not YAML"),
        ("a: 1\na: 2\n", "line 2: file has 'a' twice"),
        ("a: \x01", "not YAML"),
        ("[" * 5000, "nested deeper"),
        ("&x [*x]", "contains itself"),
        ("- " + "x" * 1_000_001, "larger than a million"),
    ],
)
def test_what_is_no_yaml_for_us(text: str, words: str) -> None:
    with pytest.raises(BadFile, match=words):
        yamltree.parse(text, "f.yaml")


def test_an_alias_bomb_does_no_harm() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{n}: &{n} [{','.join([f'*{p}'] * 9)}]\n" for p, n in zip("abcde", "bcdef", strict=True)
    )
    with pytest.raises(BadFile, match="too many"):
        yamltree.parse(bomb, "f.yaml")


def test_wrong_kinds() -> None:
    root = yamltree.parse("list: [1]\nnothing:\nnumber: -3\n", "f.yaml")
    with pytest.raises(InvalidValue, match="expected a value, found a list"):
        root.value["list"].text()
    with pytest.raises(InvalidValue, match="expected a value, found none"):
        root.value["nothing"].text()
    with pytest.raises(InvalidValue, match="cannot be"):
        root.value["number"].number()
    with pytest.raises(InvalidValue, match="expected a list, found a value"):
        root.value["number"].items()
    assert root.value["nothing"].items() == []
    assert yamltree.parse("", "f.yaml").value == {}
