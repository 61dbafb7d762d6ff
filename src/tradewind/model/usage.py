"""What a machine asked of the store, as stores in buckets charge for it, and what that costs.

Requests are counted in the two classes that S3 has prices for. Bytes are those of objects: what
goes around them (headers, the text of listings and of errors) is not counted. A gigabyte is 2³⁰
bytes, as AWS reckons, and a month has 30 days; AWS's own have 28 to 31.
"""

from __future__ import annotations

from msgspec import Struct

GB = 1 << 30
MONTH_S = 30 * 86_400
_MILLION = 1_000_000


class Usage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    writes: int = 0
    """PUT, COPY, POST and LIST: each part of an upload, each page of a listing."""
    reads: int = 0
    """GET and HEAD. What deletes is free."""
    bytes_in: int = 0
    """To the store."""
    bytes_out: int = 0
    """From the store."""
    byte_s: int = 0
    """What was removed again: its bytes, times the seconds for which they were stored and paid."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            writes=self.writes + other.writes,
            reads=self.reads + other.reads,
            bytes_in=self.bytes_in + other.bytes_in,
            bytes_out=self.bytes_out + other.bytes_out,
            byte_s=self.byte_s + other.byte_s,
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


def cost(usage: Usage, rates: Rates) -> int:
    """Micro-dollars, rounded up once, when all is added up."""
    requests = usage.writes * rates.writes + usage.reads * rates.reads
    moved = usage.bytes_in * rates.gb_in + usage.bytes_out * rates.gb_out
    kept = usage.byte_s * rates.gb_month
    whole = _MILLION * GB * MONTH_S
    return -(-(requests * GB * MONTH_S + moved * _MILLION * MONTH_S + kept * _MILLION) // whole)
