"""Which types are paid less the longer they are up in a month, and by how much:
`data/sustained.csv`. A type that no line names has no such discount (A2, A3, A4, G2 and TPUs of
Google have none). Whether an account gets it, its file says (account.py)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.catalog import globs
from tradewind.catalog.table import parse_date
from tradewind.model.sustained import WHOLE, Steps

TABLE = Path(__file__).parent / "data" / "sustained.csv"


@cache
def steps(provider: str, instance_type: str) -> Steps:
    """Empty: its price is the same all month."""
    for (whose, glob), found in _schedules().items():
        if whose == provider and globs.fits(instance_type.lower(), glob):
            return found
    return ()


@cache
def _schedules() -> dict[tuple[str, str], Steps]:
    return read(TABLE)


def read(path: Path) -> dict[tuple[str, str], Steps]:
    found: dict[tuple[str, str], Steps] = {}
    for line, cells in csvfile.rows(path):
        try:
            start, pays = (_share(cells, name) for name in ("from", "pays"))
            key = cells["provider"], cells["type"]
            before = found.get(key, ())
            if before and start <= before[-1][0]:
                raise InvalidValue("the steps of a type begin at rising shares of the month")
            if not before and start:
                raise InvalidValue("the first step of a type begins at 0")
            if not cells["source"] or not cells["evidence"]:
                raise InvalidValue("a step has a source, and evidence")
            parse_date(cells["as_of"])
        except (InvalidValue, ValueError, KeyError) as error:
            raise BadFile(f"{path} line {line}: {error}") from None
        found[key] = (*before, (start, pays))
    return found


def _share(cells: dict[str, str], name: str) -> int:
    value = csvfile.number(cells, name)
    if value is None or value > 1:
        raise InvalidValue(f"{name} is a share from 0 to 1")
    return round(value * WHOLE)
