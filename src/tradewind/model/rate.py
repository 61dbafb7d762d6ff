"""A price for anything but machine time: storage, egress, surcharges, commitments, on-premises."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    category: str
    provider: str
    item: str
    value: float | None
    unit: str
    region: str
    as_of: str
    source: str
    evidence: str
    note: str
