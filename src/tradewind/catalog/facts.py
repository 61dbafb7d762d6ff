"""The public table of the catalog as one value, and how it is written to disk.

The file is gzipped JSON: columns for the offers, rows for the rest. It can be read with `zcat`.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from tradewind.base.errors import BadFile
from tradewind.catalog.names import Names
from tradewind.catalog.table import OfferTable
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


def made_at(data: bytes, origin: str) -> datetime:
    """When the facts in `data` were made, without reading the rest."""
    with _readable(origin):
        start = zlib.decompressobj(wbits=31).decompress(data, 100).decode("utf-8", "replace")
        found = re.match(r'\{"format": ?(\d+), ?"made_at": ?"([^"]+)"', start)
        if not found:
            raise ValueError("it does not begin as a catalog")
        return _moment(int(found[1]), found[2], origin)


def decode(data: bytes, origin: str) -> Facts:
    """The facts in `data`; BadFile, naming `origin`, for anything else."""
    with _readable(origin):
        document = json.loads(zlib.decompress(data, wbits=31))
        return Facts(
            made_at=_moment(document["format"], document["made_at"], origin),
            accelerators={a.name: a for a in _values(Accelerator, document["accelerators"])},
            offers=OfferTable.decoded(document["offers"]),
            make_instances=partial(_instances, document["instances"], origin),
            make_rates=partial(_rates, document["rates"], origin),
            refused=tuple(document["refused"]),
        )


def _moment(version: int, text: str, origin: str) -> datetime:
    if version > FORMAT:
        raise BadFile(
            f"{origin} was written by a newer Tradewind (format {version})",
            hint="upgrade Tradewind, or run `tradewind catalog reset`",
        )
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("made_at has no zone")
    return moment


@contextmanager
def _readable(origin: str) -> Iterator[None]:
    """What breaks in here breaks because the file is damaged."""
    try:
        yield
    except (
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise BadFile(
            f"{origin} is damaged: {type(error).__name__}: {error}",
            hint="run `tradewind catalog reset` to go back to the built-in catalog",
        ) from None


def _instances(table: Mapping[str, Any], origin: str) -> tuple[InstanceType, ...]:
    from tradewind.model import InstanceType

    with _readable(origin):
        return _values(InstanceType, table)


def _rates(table: Mapping[str, Any], origin: str) -> tuple[Rate, ...]:
    from tradewind.model import Rate

    with _readable(origin):
        return _values(Rate, table)


def _rows(kind: type[Any], values: Any) -> dict[str, Any]:
    names = [f.name for f in fields(kind)]
    return {"fields": names, "rows": [[getattr(v, name) for name in names] for v in values]}


def _values(kind: type[V], table: Mapping[str, Any]) -> tuple[V, ...]:
    names = table["fields"]
    # JSON knows no tuples, and a frozen value holds no lists.
    rows = ([tuple(v) if isinstance(v, list) else v for v in row] for row in table["rows"])
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in rows)
