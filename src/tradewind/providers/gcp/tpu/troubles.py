"""What errors of tpu.googleapis.com mean. It has few codes: whether there is no capacity, or no
quota, or whether it was asked too often, only the words tell. Pure."""

from __future__ import annotations

from msgspec import Struct

from tradewind.base.errors import TradewindError
from tradewind.providers.base import Refused
from tradewind.providers.gcp.troubles import of_operation

CODES = {
    1: "CANCELLED",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}
"""google.rpc.Code, as operations have it."""
_QUOTA = "tradewind doctor gcp names the quotas of TPUs, and the page to raise them"
_CAPACITY = ("no more capacity", "not enough capacity", "insufficient capacity", "stockout")
_RATES = ("per minute", "queries", "requests")


class Told(Struct, frozen=True):
    """An error, with its code as the table has it (../troubles.py)."""

    code: str
    message: str


def failed(doing: str, code: int, message: str) -> TradewindError:
    """Of an operation that was accepted, or of a queued resource."""
    name = CODES.get(code, str(code))
    return meant(of_operation(doing, [Told(name, message)]))


def meant(error: TradewindError) -> TradewindError:
    """The same, by its words."""
    words = error.message.lower()
    if any(each in words for each in _CAPACITY):
        return Refused("no_capacity", error.message)
    quota = "quota" in words and not any(each in words for each in _RATES)
    if quota and isinstance(error, Refused):
        return Refused("no_quota", error.message, hint=_QUOTA)
    return error
