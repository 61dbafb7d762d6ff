"""Passes: what machines without an identity of their own are lent, so that they can read and write
one run's part of a store for a while.

A pass is a secret. It lies in the store below `passes/`, which no machine but those of its run can
read, and in one file of the machine that holds it (held.py): never in a journal, a log, a bundle,
an environment or what a machine is told at its launch. It ends by itself, and is renewed through
the store by whichever controller passes.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile
from tradewind.model import bounds


class Pass(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    store_url: str
    """What it is for: no other bucket is asked with it."""
    run_id: str
    for_s: int
    """How long it lasts from when it was lent. The holder counts by its own clock."""
    credentials: dict[str, str]
    """As obstore takes them: a key, its secret and a token; a token; or signatures."""

    @property
    def mark(self) -> str:
        """Which one it is, without telling anything of it."""
        return hashlib.sha256(json.encode(self.credentials, order="sorted")).hexdigest()

    def __repr__(self) -> str:
        """Nobody prints one by mistake."""
        return f"Pass(store_url={self.store_url!r}, run_id={self.run_id!r}, for_s={self.for_s})"

    __str__ = __repr__


class Lender(Protocol):
    """Who may lend, lends: as whom this computer is known to the store."""

    @property
    def longest_s(self) -> int:
        """The longest that a pass can last. It may ask who we are."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a machine finds the store. None of them is secret."""

    def lend(self, run_id: str, for_s: int) -> Pass:
        """It is asked for anew each time. NoAccess: we may not; SourceFailed: try again later."""


class LendPass(Struct, frozen=True):
    """As a step (base/steps.py): put a new pass there. The pass itself is seen by nobody who
    yields this."""

    run_id: str
    key: str
    for_s: int


def encoded(lent: Pass) -> bytes:
    return json.encode(lent)


def decoded(data: bytes) -> Pass:
    try:
        if len(data) <= bounds.PASS:
            return json.decode(data, type=Pass)
    except UNREADABLE:
        pass  # and what is in it is not repeated
    raise BadFile("what was to be a pass to the store is none")
