"""Cases of one test: a few that stand for all run each time, the others now and then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def and_long(often: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Those of `cases` that are not among `often` are for `make test-long`. A tuple is several
    arguments, as parametrize has it."""
    return _marked(list(often), cases, pytest.mark.long)


def and_slow(often: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """The same, for `make test-slow`."""
    return _marked(list(often), cases, pytest.mark.slow)


def _marked(often: list[Any], cases: Iterable[Any], mark: pytest.MarkDecorator) -> list[Any]:
    others = (case if isinstance(case, tuple) else (case,) for case in cases if case not in often)
    return [*often, *(pytest.param(*each, marks=mark) for each in others)]
