"""What a machine asked of the store, as stores in buckets charge for it, and what that costs.

Requests are counted in the two classes that S3 has prices for. Bytes are those of objects: what
goes around them (headers, the text of listings and of errors) is not counted. A gigabyte is 2³⁰
bytes, as AWS reckons, and a month has 30 days; AWS's own have 28 to 31.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from tradewind.model.plausible import Count
from tradewind.model.timing import EACH_S

GB = 1 << 30
MONTH_S = 30 * 86_400
_MILLION = 1_000_000
ASKED_HOUR = 2 * (2 * 3600 // EACH_S + 1200 + 360)
"""Requests of each class that a machine's supervisor may make: a report and a look at its orders
every few seconds, its job's output and figures, and as much again."""
LIKELY = 0.5
"""Of that, what is expected: as much again is not asked as a rule."""


class Usage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    writes: Count = 0
    """PUT, COPY, POST and LIST: each part of an upload, each page of a listing."""
    reads: Count = 0
    """GET and HEAD. What deletes is free."""
    bytes_in: Count = 0
    """To the store."""
    bytes_out: Count = 0
    """From the store."""
    byte_s: Count = 0
    """Of what was removed again: its bytes, times the seconds for which they lay there."""
    gone: Count = 0
    """Bytes that were removed or replaced: as older versions they stay for a while."""

    def __ge__(self, other: Usage) -> bool:
        """Whether nothing of it is less."""
        return all(getattr(self, name) >= getattr(other, name) for name in self.__struct_fields__)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            writes=self.writes + other.writes,
            reads=self.reads + other.reads,
            bytes_in=self.bytes_in + other.bytes_in,
            bytes_out=self.bytes_out + other.bytes_out,
            byte_s=self.byte_s + other.byte_s,
            gone=self.gone + other.gone,
        )


class Rates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the store costs whoever uses it from one region. Micro-dollars."""

    writes: int = 0
    """For a million."""
    reads: int = 0
    """For a million."""
    gb_in: int = 0
    """From the machine's region into the store's."""
    gb_out: int = 0
    """From the store's region into the machine's."""
    gb_month: int = 0
    """For keeping it."""
    kept_s: int = 0
    """For so long what was removed or replaced is still kept, and paid: older versions."""


class Line(Struct, frozen=True, kw_only=True, gc=False):
    """Of a bill: so much, at so much."""

    what: str
    moved: bool = False
    """It is for traffic, and not for the store."""
    amount: int
    unit: str
    """Requests, GB, GB-Months"""
    each: int = 1
    """So many of what is counted make up one unit."""
    price: int
    """Micro-dollars for `per` units."""
    per: int = 1

    @property
    def micros(self) -> int:
        """A fraction of one is paid whole."""
        return -(-self.amount * self.price // (self.each * self.per))


def lines(usage: Usage, rates: Rates) -> list[Line]:
    """What it costs: a line for each thing that has a price of its own."""
    byte_s = usage.byte_s + usage.gone * rates.kept_s
    made = [
        Line(what="PUT, COPY, POST and LIST requests", amount=usage.writes, unit="Requests",
             price=rates.writes, per=_MILLION),
        Line(what="GET and HEAD requests", amount=usage.reads, unit="Requests",
             price=rates.reads, per=_MILLION),
        Line(what="traffic to the store's region", moved=True, amount=usage.bytes_in, unit="GB",
             each=GB, price=rates.gb_in),
        Line(what="traffic from the store's region", moved=True, amount=usage.bytes_out,
             unit="GB", each=GB, price=rates.gb_out),
        Line(what="objects that were removed again", amount=byte_s, unit="GB-Months",
             each=GB * MONTH_S, price=rates.gb_month),
    ]  # fmt: skip
    return [line for line in made if line.micros]


def kept(byte_s: int, rates: Rates) -> Line:
    return Line(
        what="objects of the run", amount=byte_s, unit="GB-Months", each=GB * MONTH_S,
        price=rates.gb_month,
    )  # fmt: skip


def asked(rates: Rates) -> int:
    """Micro-dollars that a machine's supervisor may ask for in an hour. What the job asks itself,
    its checkpoints among it, nobody knows before."""
    return cost(Usage(writes=ASKED_HOUR, reads=ASKED_HOUR), rates)


@lru_cache(maxsize=4096)
def cost(usage: Usage, rates: Rates) -> int:
    """Micro-dollars. Asked of each machine several times a decision, and mostly of those that are
    gone."""
    return sum(line.micros for line in lines(usage, rates))
