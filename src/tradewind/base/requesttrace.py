"""Traces of requests to a model: a CSV file, gzipped or not, a row a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tradewind.base import csvfile
from tradewind.base.csvfile import number
from tradewind.base.errors import BadFile, InvalidValue

COLUMNS = ("t_s", "input_tokens", "output_tokens")


class Request(NamedTuple):
    at: float  # seconds
    input: float  # tokens
    output: float
    cached: float  # tokens of the prompt that another has had before, where the trace says so


def read(path: Path) -> Iterator[Request]:
    """As they stand in the file, which need not be in order."""
    for line, row in csvfile.rows(path):
        lacking = [name for name in COLUMNS if name not in row]
        if lacking:
            raise BadFile(f"{path} has no column {lacking[0]}", hint=", ".join(COLUMNS))
        try:
            at, first, second = (number(row, name) for name in COLUMNS)
            cached = number(row, "prefix_hit_tokens") or 0.0
        except InvalidValue as error:
            raise BadFile(f"{path}:{line}: {error.message}") from None
        if at is None or first is None or second is None:
            raise BadFile(f"{path}:{line}: a number is missing", hint=", ".join(COLUMNS))
        yield Request(at, max(first, 1.0), max(second, 1.0), min(cached, first))
