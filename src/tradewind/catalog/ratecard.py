"""The rates that runs are charged by and plans are made with: `data/rates.csv`.

Columns as those of the compiled rates (docs/catalog-data.md). A row is the usual class and the
first step of a price. `region` is a name or a glob; of traffic between regions it may be
`FROM/TO`. A name comes before globs, and of globs the first that fits counts. What a machine costs
that is waited for is told by instance type, a name or a glob in `item`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.catalog.table import parse_date
from tradewind.model.rate import Rate
from tradewind.model.ratecard import BY_ITEM, CATEGORIES, RateCard

TABLE = Path(__file__).parent / "data" / "rates.csv"
_WORDS = ("category", "provider", "item", "unit", "region", "as_of", "source", "evidence", "note")
_NEEDED = ("provider", "region", "as_of", "source", "evidence")


@cache
def card() -> RateCard:
    return read(TABLE)


def read(path: Path) -> RateCard:
    rates: list[Rate] = []
    seen: dict[tuple[str, ...], int] = {}
    for line, cells in csvfile.rows(path):
        try:
            rate = _rate(cells)
            item = rate.item if rate.category in BY_ITEM else ""
            key = (rate.category, rate.provider, rate.region, item)
            if seen.setdefault(key, line) != line:
                raise InvalidValue(f"the same as in line {seen[key]}")
        except (InvalidValue, ValueError, KeyError) as error:
            raise BadFile(f"{path} line {line}: {error}") from None
        rates.append(rate)
    return RateCard(rates)


def _rate(cells: dict[str, str]) -> Rate:
    rate = Rate(
        **{name: cells[name].strip() for name in _WORDS}, value=csvfile.number(cells, "value")
    )
    if rate.category not in CATEGORIES:
        raise InvalidValue(f"no category is called {rate.category!r}")
    unit, _ = CATEGORIES[rate.category]
    if rate.unit.replace("GiB", "GB") != unit:
        raise InvalidValue(f"{rate.category} is in {unit}, not in {rate.unit!r}")
    if rate.value is None or not all(getattr(rate, name) for name in _NEEDED):
        raise InvalidValue(f"a rate has a value, {', '.join(_NEEDED)}")
    parse_date(rate.as_of)
    return rate
