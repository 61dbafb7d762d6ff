"""The euro in dollars, for the providers that ask for euros.

The European Central Bank's reference rate of the day, from
https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml; `$TRADEWIND_ECB_URL` puts a mirror in
its place. A rate that is old or cannot be true would make every price wrong without anybody
noticing, so it is SourceFailed like no rate at all: those providers then keep their old prices.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal

from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Context

_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
_DAY = re.compile(r"""\btime=['"](\d{4}-\d\d-\d\d)['"]""")
_USD = re.compile(r"""\bcurrency=['"]USD['"]\s+rate=['"](\d+(?:\.\d+)?)['"]""")
_OLDEST = timedelta(days=10)  # the bank rests on weekends and feasts, not for longer
_HINT = "the prices are in EUR; the old ones stay in place"


def dollars_per_euro(context: Context) -> Decimal:
    url = context.env.get("TRADEWIND_ECB_URL") or _URL
    try:
        text = "".join(context.http.lines(url))
    except SourceFailed as error:
        # Without its status: that the bank refuses us says nothing of the provider's key.
        raise SourceFailed(error.message, hint=_HINT) from None
    day, found = _DAY.search(text), _USD.search(text)
    if not day or not found:
        raise SourceFailed(f"{url}: no reference rate of the US dollar in the answer", hint=_HINT)
    rate = Decimal(found[1])
    try:
        age = context.today - date.fromisoformat(day[1])
    except ValueError:
        raise SourceFailed(f"{url}: {day[1]} is no date", hint=_HINT) from None
    if age > _OLDEST or not Decimal("0.5") < rate < 2:
        raise SourceFailed(f"{url}: {rate} USD of {day[1]} is not today's rate", hint=_HINT)
    return rate
