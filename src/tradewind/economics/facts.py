"""Dated figures about everything beside rented machines, as they lie in `data/`: own hardware,
electricity, managed services, serverless, edge devices, published break-evens.

Each table is gzipped JSON of its own, read when it is first asked for. A figure has a source, the
day it was true and, where it is not beyond doubt, a reason: whoever uses one hands the three on.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from tradewind.base.errors import BadFile, InvalidValue, NotFound

FORMAT = 1
EVIDENCE = ("seen", "derived", "recall", "gap")
ALWAYS = ("as_of", "source", "evidence", "doubt", "note")
"""Columns that every table has; `doubt` is made when tables are compiled."""
OLD_YEARS = 3
"""A figure that was true longer ago than that, when the table was made, is doubtful for it."""


@dataclass(frozen=True)
class Table:
    """How a table is called in a folder of facts, what names its rows, and what is a number."""

    file: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    may_be_negative: bool = False


TABLES = {
    "own": Table("own_hardware", ("category", "item"), ("low", "typical", "high"), True),
    "electricity": Table(
        "electricity",
        ("kind", "iso3", "place", "provider", "region"),
        ("usd_per_kwh", "gco2_per_kwh", "cfe_share"),
    ),
    "managed": Table("managed", ("category", "provider", "service", "item"), ("value",)),
    "serverless": Table(
        "serverless", ("provider", "service", "kind", "accelerator", "item", "region"), ("value",)
    ),
    "edge": Table(
        "edge",
        ("device",),
        (
            "memory_bandwidth_gbps",
            "power_w_min",
            "power_w_max",
            "int8_tops_dense",
            "fp16_tflops",
            "price_usd",
        ),
    ),
    "edge_benchmarks": Table(
        "edge_benchmarks",
        ("device", "workload", "precision", "scenario", "unit", "batch"),
        ("value", "power_w"),
    ),
    "latency": Table(
        "latency",
        ("provider_a", "region_a", "provider_b", "region_b", "kind"),
        ("rtt_ms", "rtt_p90_ms"),
    ),
    "transfer": Table("transfer", ("provider", "direction", "from", "to", "tier"), ("usd_per_gb",)),
    "notices": Table(
        "notices",
        ("provider", "service"),
        ("notice_seconds", "min_guaranteed_seconds"),
    ),
    "factors": Table("decision_factors", ("factor", "direction", "context"), ("value",), True),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One row. Cells are text; the numbers of its table are numbers, or absent where unknown."""

    cells: Mapping[str, str]
    numbers: Mapping[str, float]

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "")

    def number(self, name: str) -> float | None:
        return self.numbers.get(name)

    @property
    def provenance(self) -> str:
        """Source, date and doubt in one line."""
        words = f"{self['source']}, {self['as_of']}"
        return f"{words} (doubtful: {self['doubt']})" if self["doubt"] else words


@dataclass(frozen=True)
class Facts:
    """One table."""

    name: str
    made_at: str
    rows: tuple[Fact, ...]
    refused: tuple[str, ...] = ()

    def where(self, **wanted: str) -> list[Fact]:
        return [row for row in self.rows if all(row[k] == v for k, v in wanted.items())]

    def one(self, **wanted: str) -> Fact:
        """The row with these cells; NotFound, with the nearest, where there is none."""
        found = self.where(**wanted)
        if found:
            return found[0]
        *rest, last = wanted
        near = [row[last] for row in self.where(**{name: wanted[name] for name in rest})]
        known = ", ".join(dict.fromkeys(near)) or "none"
        raise NotFound(f"no {last} is called {wanted[last]!r}", hint=f"known: {known}")


def day_of(text: str) -> date:
    """The first day of `2026-09-19`, `2026-09`, `2026`, `2025H2`; of `2017-22`, the last year's."""
    found = re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?|H([12]))?", text.strip())
    if not found:
        raise InvalidValue(f"as_of is {text!r}, not a day, a month or a year")
    year, month, day, half = (int(part) if part else 0 for part in found.groups())
    try:
        if month > 12 and not day and month > year % 100:
            return date(year // 100 * 100 + month, 1, 1)
        return date(year, month or (7 if half == 2 else 1), day or 1)
    except ValueError:
        raise InvalidValue(f"as_of is {text!r}, which no calendar has") from None


def encode(facts: Facts) -> bytes:
    """The same facts give the same bytes."""
    table = TABLES[facts.name]
    columns = list(dict.fromkeys(name for row in facts.rows for name in row.cells))
    document = {
        "format": FORMAT,
        "table": facts.name,
        "made_at": facts.made_at,
        "refused": facts.refused,
        "columns": columns,
        "numbers": table.numbers,
        "rows": [
            [row[name] for name in columns] + [row.numbers.get(name) for name in table.numbers]
            for row in facts.rows
        ],
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def decode(data: bytes, origin: str) -> Facts:
    try:
        document = json.loads(zlib.decompress(data, wbits=31))
        if document["format"] > FORMAT:
            raise BadFile(f"{origin} was written by a newer Tradewind", hint="upgrade Tradewind")
        columns, numbers = document["columns"], document["numbers"]
        wide = len(columns)
        return Facts(
            name=document["table"],
            made_at=document["made_at"],
            refused=tuple(document["refused"]),
            rows=tuple(
                Fact(
                    dict(zip(columns, row[:wide], strict=True)),
                    {k: v for k, v in zip(numbers, row[wide:], strict=True) if v is not None},
                )
                for row in document["rows"]
            ),
        )
    except (zlib.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadFile(f"{origin} is damaged: {type(error).__name__}: {error}") from None


@cache
def table(name: str) -> Facts:
    """The built-in one."""
    if name not in TABLES:
        raise NotFound(f"no table is called {name!r}", hint=f"one of {', '.join(TABLES)}")
    path = files("tradewind.economics") / "data" / f"{name}.json.gz"
    return decode(path.read_bytes(), str(path))
