"""Compiles a folder of CSV tables (`TABLES` of facts.py) into the files of `data/`.

A row that cannot be read, or that nobody vouches for, is refused with its line and reason, and the
reasons go into the file. What is doubtful is kept and marked: by the table's own `quality`, because
it is from memory, or because it is old.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.economics.facts import EVIDENCE, OLD_YEARS, TABLES, Fact, Facts, Table, day_of


def build(folder: Path, name: str, *, made_on: date) -> Facts:
    table = TABLES[name]
    paths = (folder / f"{table.file}.csv", folder / f"{table.file}.csv.gz")
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        raise NoAccess(
            f"{folder} has no {table.file}.csv or {table.file}.csv.gz",
            hint="docs/economics-data.md has the tables",
        )
    rows: list[Fact] = []
    refused: list[str] = []
    seen: dict[tuple[str, ...], int] = {}
    for line, cells in csvfile.rows(path):
        try:
            fact = _fact(cells, table, made_on)
            key = (*(fact[k] for k in table.keys), fact["as_of"], fact["source"], _values(fact))
            if seen.setdefault(key, line) != line:
                raise InvalidValue(f"the same as in line {seen[key]}")
        except InvalidValue as error:
            refused.append(f"{path.name} line {line}: {error.message}")
        else:
            rows.append(fact)
    if 2 * len(refused) > len(rows) + len(refused) or not rows:
        first = refused[0] if refused else "it has no rows"
        raise BadFile(f"{path}: most of it cannot be used, the first: {first}")
    return Facts(name, made_on.isoformat(), tuple(rows), tuple(refused))


def _fact(cells: Mapping[str, str], table: Table, made_on: date) -> Fact:
    if None in cells or None in cells.values():
        raise InvalidValue("the row has too many or too few cells")
    for column in (*table.keys, *table.numbers, "as_of", "source", "evidence"):
        if column not in cells:
            raise BadFile(f"{table.file}: there is no column {column!r}")
    text = {k: v.strip() for k, v in cells.items() if k not in (*table.numbers, "quality")}
    if not text[table.keys[0]]:
        raise InvalidValue(f"{table.keys[0]} is empty")
    if not text["source"]:
        raise InvalidValue("it has no source")
    if text["evidence"] not in EVIDENCE:
        raise InvalidValue(f"evidence is {text['evidence']!r}, not one of {', '.join(EVIDENCE)}")
    day = day_of(text["as_of"])
    if day > made_on:
        raise InvalidValue(f"as_of is {text['as_of']}, which is to come")
    numbers = {name: _number(cells, name, table) for name in table.numbers}
    known = {name: value for name, value in numbers.items() if value is not None}
    ordered = [known[name] for name in ("low", "typical", "high") if name in known]
    if ordered != sorted(ordered):
        raise InvalidValue("low, typical and high are not in that order")
    doubts = [cells.get("quality", "").strip()]
    if text["evidence"] == "recall" and "memory" not in doubts[0]:
        doubts.append("from memory")
    if (made_on - day).days > 365.25 * OLD_YEARS:
        doubts.append(f"of {text['as_of']}")
    return Fact(text | {"doubt": "; ".join(filter(None, doubts))}, known)


def _number(cells: Mapping[str, str], name: str, table: Table) -> float | None:
    sign = -1.0 if table.may_be_negative and (cells[name] or "").strip().startswith("-") else 1.0
    value = csvfile.number(
        {name: cells[name].strip().removeprefix("-")} if sign < 0 else cells, name
    )
    return None if value is None else sign * value


def _values(fact: Fact) -> str:
    return repr(sorted(fact.numbers.items()))
