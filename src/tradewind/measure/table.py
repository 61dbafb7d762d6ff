"""Points of serving as a file: CSV in the schema of docs/serving-estimate.md."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tradewind.base import csvfile, ownfiles
from tradewind.measure.figures import COLUMNS


def read(path: Path) -> list[dict[str, str]]:
    """Nothing of a file that is not there yet."""
    return [cells for _, cells in csvfile.rows(path)] if path.exists() else []


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    more = {name for row in rows for name in row if name} - set(COLUMNS)
    text = io.StringIO()
    table = csv.DictWriter(
        text, [*COLUMNS, *sorted(more)], restval="", lineterminator="\n", extrasaction="ignore"
    )
    table.writeheader()
    table.writerows(rows)
    ownfiles.replace(path, text.getvalue().encode(), public=True)
