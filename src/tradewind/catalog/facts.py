"""The public table of the catalog as one value, and how it is written to disk.

The file is gzipped JSON: columns for the offers, rows for the rest. It can be read with `zcat`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from tradewind.catalog.names import Names
from tradewind.catalog.table import OfferTable
from tradewind.errors import BadFile
from tradewind.model import Accelerator

if TYPE_CHECKING:
    from tradewind.model import InstanceType, Rate

FORMAT = 1
V = TypeVar("V")


@dataclass(frozen=True)
class Facts:
    """What anybody may know: chips, types, rates and public prices, each with its source and date.

    Types and rates are many and seldom asked for, so they are made when first looked at.
    """

    made_at: datetime
    accelerators: Mapping[str, Accelerator]
    offers: OfferTable
    make_instances: Callable[[], tuple[InstanceType, ...]]
    make_rates: Callable[[], tuple[Rate, ...]]
    refused: tuple[str, ...] = ()

    @cached_property
    def instances(self) -> tuple[InstanceType, ...]:
        return self.make_instances()

    @cached_property
    def rates(self) -> tuple[Rate, ...]:
        return self.make_rates()

    @cached_property
    def names(self) -> Names:
        return Names(self.accelerators)


def encode(facts: Facts) -> bytes:
    from tradewind.model import InstanceType, Rate

    document = {
        "format": FORMAT,
        "made_at": facts.made_at.isoformat(),
        "refused": facts.refused,
        "offers": facts.offers.encoded(),
        "accelerators": _rows(Accelerator, facts.accelerators.values()),
        "instances": _rows(InstanceType, facts.instances),
        "rates": _rows(Rate, facts.rates),
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    # No time stamp in the header: the same facts give the same bytes.
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def decode(data: bytes, origin: str) -> Facts:
    """The facts in `data`; BadFile, naming `origin`, for anything else."""
    try:
        document = json.loads(zlib.decompress(data, wbits=31))
        if document["format"] > FORMAT:
            raise BadFile(
                f"{origin} was written by a newer Tradewind (format {document['format']})",
                hint="upgrade Tradewind, or run `tradewind catalog reset`",
            )
        return Facts(
            made_at=datetime.fromisoformat(document["made_at"]),
            accelerators={a.name: a for a in _values(Accelerator, document["accelerators"])},
            offers=OfferTable.decoded(document["offers"]),
            make_instances=partial(_instances, document["instances"]),
            make_rates=partial(_rates, document["rates"]),
            refused=tuple(document["refused"]),
        )
    except (zlib.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadFile(
            f"{origin} is damaged: {type(error).__name__}: {error}",
            hint="run `tradewind catalog reset` to go back to the built-in catalog",
        ) from None


def _instances(table: Mapping[str, Any]) -> tuple[InstanceType, ...]:
    from tradewind.model import InstanceType

    return _values(InstanceType, table)


def _rates(table: Mapping[str, Any]) -> tuple[Rate, ...]:
    from tradewind.model import Rate

    return _values(Rate, table)


def _rows(kind: type[Any], values: Any) -> dict[str, Any]:
    names = [f.name for f in fields(kind)]
    return {"fields": names, "rows": [[getattr(v, name) for name in names] for v in values]}


def _values(kind: type[V], table: Mapping[str, Any]) -> tuple[V, ...]:
    names = table["fields"]
    # JSON knows no tuples, and a frozen value holds no lists.
    rows = ([tuple(v) if isinstance(v, list) else v for v in row] for row in table["rows"])
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in rows)
