from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.catalog.small import REAL, TODAY, facts, row
from tradewind.catalog import account
from tradewind.catalog.catalog import Catalog
from tradewind.model import Limits, Market, Measured, Workload
from tradewind.model.plan import Plan
from tradewind.planning.planner import plan

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
ROWS = (
    row("gcp", "T4", 1, instance_type="n1-standard-8+1xT4", on_demand=1.0, spot=0.9),
    row("gcp", "L4", 1, instance_type="g2-standard-4", on_demand=1.0),
)
LINES = "discounts:\n  - {match: {provider: gcp}, sustained: true}\n"


def planned(hours: float, text: str, now: datetime = FIRST, market: Market = "on_demand") -> Plan:
    public = facts(*ROWS, judged=False)
    read = account.read(text, "account.yaml", REAL.names, ["gcp"])
    catalog = Catalog(public, read.applied(public.offers, TODAY), "test", read)
    work = Workload(
        work=Measured(accelerator="T4", hours=hours, memory_bytes=10**9),
        limits=Limits(markets=(market,), accelerators=("T4",), max_accelerators=1),
    )
    found = plan(work, catalog=catalog, now=now).best
    assert found is not None
    return found


def machine(one: Plan) -> float:
    return one.costs.get("on_demand", 0) / 1e6


def test_long_work_on_demand_costs_less() -> None:
    for hours, share in ((100, 1.0), (360, 0.9), (700, 0.708)):
        usual, less = planned(hours, ""), planned(hours, LINES)
        assert less.hours == usual.hours
        assert less.price_hour == usual.price_hour
        assert machine(less) / machine(usual) == pytest.approx(share, abs=0.003)


def test_each_month_begins_anew() -> None:
    late = FIRST.replace(day=26)  # five days of November, and half of December
    share = machine(planned(492, LINES, late)) / machine(planned(492, "", late))
    assert share == pytest.approx((120 + 0.9 * 372) / 492, abs=0.003)


def test_spot_has_none() -> None:
    assert planned(600, LINES, market="spot").cost == planned(600, "", market="spot").cost
