"""Sustained-use discounts that the account file tells of, on a run's ways: what is recorded there
the ledger goes by, whatever becomes of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.base import clock

if TYPE_CHECKING:
    from tradewind.model.run import Way
    from tradewind.model.sustained import Steps


def told(ways: Sequence[Way]) -> list[Way]:
    from msgspec.structs import replace

    given = _given()
    return [
        replace(way, sustained=given.get((way.provider, way.region, way.instance_type), ()))
        if way.market == "on_demand"
        else way
        for way in ways
    ]


def _given() -> dict[tuple[str, ...], Steps]:
    """By provider, region and type: no provider gives it by zone."""
    from tradewind import catalog

    known = catalog.load()
    if known.account is None:
        return {}
    columns = [known.table.columns[name] for name in ("provider", "region", "instance_type")]
    return {
        tuple(column[row] for column in columns): steps
        for row, steps in known.account.sustained(known.table, clock.now().date()).items()
    }
