"""Prices that a source gives in another currency than it says, and what they are in dollars.

`data/currencies.csv` names the provider, the source whose figures are meant, the currency, what one
unit of it was worth in dollars and on which day, and how we know. A catalog that is compiled from
tables (`build.py`) has them converted, and each price's source says by which rate. Fresh prices
(`refresh/`) are converted by the rate of their own day.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue

TABLE = Path(__file__).parent / "data" / "currencies.csv"


class Rate(NamedTuple):
    source: str
    currency: str
    usd: float
    as_of: str
    rate_source: str

    @property
    def words(self) -> str:
        return f"{self.currency} at {self.usd:g} USD, {self.rate_source} of {self.as_of}"


def rate_of(provider: str, source: str) -> Rate | None:
    """By which the prices of that very source are to be converted; None where they are dollars, or
    were converted already: then their source says so."""
    return next((rate for rate in _rates().get(provider, ()) if rate.source == source), None)


@cache
def _rates() -> dict[str, list[Rate]]:
    found: dict[str, list[Rate]] = {}
    for line, cells in csvfile.rows(TABLE):
        try:
            usd = csvfile.number(cells, "usd")
        except InvalidValue as error:
            raise BadFile(f"{TABLE} line {line}: {error.message}") from None
        if not usd or not cells["as_of"]:
            raise BadFile(f"{TABLE} line {line}: a rate has usd and as_of")
        rate = Rate(cells["source"], cells["currency"], usd, cells["as_of"], cells["rate_source"])
        found.setdefault(cells["provider"], []).append(rate)
    return found
