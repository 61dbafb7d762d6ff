"""Words that readers had to look up do not come back on our pages and in our messages.

The field's word stands beside each. `ALLOWED` names phrases in which the word is right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind
from tests.docs import blocks

SOURCE = Path(tradewind.__file__).parent
INSTEAD = {
    r"(goes|going|go|went) on (from|with|to the bit|in the background|elsewhere)": "resume",
    r"to the bit": "bit-exact",
    r"(was|were|be|are|is) taken away": "interrupted",
    r"machines? (that )?(was|were|is|are) taken": "interrupted, reclaimed",
    r"ended (well|badly)": "succeeded, failed",
    r"look(s|ed|ing)? after": "a controller controls",
    r"(nobody|somebody) (is there|looks?|knows)": "no controller, unknown",
    r"what holds (it|them) up": "bottleneck",
    r"(can|could|to) be had": "available",
    r"for want of": "lack of",
    r"nought": "0",
    r"heed(s|ed)?": "obey",
    r"mend(s|ed)?": "fix",
    r"foret(ell|ells|old)": "predict",
}
ALLOWED = {
    "docs/benchmarks.md": r"mended, below|as they look after the fact|could be had|foretold",
    "CHANGELOG.md": r".",  # what was written when it changed
}
PAGES = [page for page in blocks.pages() if "design" not in page.parts]


def found(text: str) -> Iterator[str]:
    for pattern, instead in INSTEAD.items():
        for match in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE):
            yield f"{match[0]!r}: say {instead!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(blocks.ROOT)))
def test_pages_are_in_the_fields_words(page: Path) -> None:
    text = blocks.FENCE.sub("", page.read_text())  # what commands print is looked at below
    allowed = ALLOWED.get(str(page.relative_to(blocks.ROOT)), r"(?!)")
    lines = [line for line in text.splitlines() if not re.search(allowed, line)]
    assert [each for line in lines for each in found(line)] == []


def test_messages_are_in_the_fields_words() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}: {each}"
        for path in sorted(SOURCE.rglob("*.py"))
        for text in messages(path)
        for each in found(text)
    ]
    assert wrong == []


def test_explanations_are_in_the_fields_words() -> None:
    files = [*SOURCE.rglob("topics/*.txt"), *SOURCE.rglob("topics/*.list")]
    assert len(files) > 15
    assert {f.name: list(found(f.read_text())) for f in files if list(found(f.read_text()))} == {}


def test_a_word_that_comes_back_is_found() -> None:
    assert len(list(found("It goes on to the bit, and nobody looks after it."))) == 4


def messages(path: Path) -> Iterator[str]:
    """Texts of the code, without docstrings; parts that are put together are one text."""
    tree = ast.parse(path.read_text())
    quiet = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            quiet |= {id(part) for part in node.values}
            parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in quiet:
            yield str(node.value)
