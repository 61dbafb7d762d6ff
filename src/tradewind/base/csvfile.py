"""CSV tables, gzipped or not: rows with their line numbers, and cells that must be numbers."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path

from tradewind.base.errors import BadFile, InvalidValue, NoAccess

_LONGEST_CELL = 2**27
"""A series is one cell, and Python's own limit of 128 KiB is a month of prices."""


def rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row and the line it ends on. BadFile if it is damaged, NoAccess if out of reach."""
    csv.field_size_limit(_LONGEST_CELL)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            for cells in reader:
                yield reader.line_num, cells
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise BadFile(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None


def cell(text: str) -> str:
    """As it is, or after an apostrophe: what begins so is a formula to spreadsheets."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def number(cells: Mapping[str, str], name: str, *, most: float = 1e18) -> float | None:
    """The cell as a number from 0 to `most`; None where it is empty or there is no such column."""
    text = (cells.get(name) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise InvalidValue(f"{name} is {text!r}, not a number") from None
    if not 0 <= value < most:
        raise InvalidValue(f"{name} is {text}, which cannot be")
    return value
