"""A pipe gets its tables without rich, and they are the same to the byte."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from tradewind.cli.render import Column, drawn, plain

words = st.text(st.sampled_from("ab ×…ü1.$"), max_size=12)
cells = st.one_of(words, words.map(lambda text: Text(text, style="red")))
columns = st.builds(
    Column,
    title=st.sampled_from(["name", "USD/h", "a longer title"]),
    right=st.booleans(),
    keep=st.integers(1, 9),
    grow=st.booleans(),
    least=st.integers(2, 6),
)


def by_rich(columns: list[Column], rows: list[list[Any]], width: int) -> str:
    out = Console(
        file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, no_color=True
    )
    out.print(drawn(columns, rows, width))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@settings(max_examples=50)
@given(st.data(), st.lists(columns, min_size=1, max_size=5), st.integers(4, 60))
def test_the_same_as_rich_draws(data: st.DataObject, columns: list[Column], width: int) -> None:
    row = st.lists(cells, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(row, max_size=4))
    lines = plain(columns, rows, width)
    if lines is not None:
        assert "".join(line + "\n" for line in lines) == by_rich(columns, rows, width)


def test_what_is_plain() -> None:
    lines = plain([Column("name"), Column("USD/h", right=True)], [["×8", Text("1.50")]], 40)
    assert lines is not None
    assert list(lines) == ["name  USD/h", "×8     1.50"]


@pytest.mark.parametrize(
    "cell", ["two\nlines", "a\ttab", "中文", "\x1b[31m", Text("x", no_wrap=True)]
)
def test_what_only_rich_can_draw(cell: Any) -> None:
    assert plain([Column("name")], [[cell]], 40) is None


def test_what_is_wrapped_or_too_wide_is_left_to_rich() -> None:
    assert plain([Column("name", wrap=True)], [["word"]], 40) is None
    assert plain([Column("name")], [["word" * 20]], 40) is None
    assert plain([Column("name")], [], 40) is None
