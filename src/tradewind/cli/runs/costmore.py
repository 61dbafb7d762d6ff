"""What `tradewind cost` is asked for besides its table, reckoned and not yet told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradewind.journal.runs_store import Loaded
    from tradewind.ledger.chargeback import Charged, Shared
    from tradewind.ledger.idle import IdleLine
    from tradewind.ledger.outlook import Forecast, Unusual
    from tradewind.ledger.postings import RunCost
    from tradewind.ledger.units import UnitCost
    from tradewind.store import Store
    from tradewind.upkeep.unread import Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Each as the option of its name says it."""

    forecast: bool
    unusual: bool
    units: bool
    idle: bool
    chargeback: str | None
    unread: str | None

    @property
    def tables(self) -> bool:
        """Is there a table besides the first? CSV has room for one."""
        return bool(self.units or self.idle or self.chargeback or self.unread)

    def rules(self) -> list[Shared]:
        from tradewind.api import chargefile

        return chargefile.load(Path(self.chargeback)) if self.chargeback else []


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """None is what was not asked for."""

    now_s: float
    asked: Asked
    by: str
    forecast: Forecast | None = None
    unusual: Sequence[Unusual] | None = None
    units: Sequence[UnitCost] | None = None
    services_left_out: bool = False
    idle: Sequence[IdleLine] | None = None
    idle_by: str = ""
    """Whose idle time is told."""
    charges: Charged | None = None
    unread: Sequence[Unread] | None = None


def make(
    asked: Asked,
    store: Store,
    loaded: Sequence[Loaded],
    costs: Sequence[RunCost],
    rules: Sequence[Shared],
    *,
    by: str,
    since_s: int | None,
    until_s: int | None,
    now: datetime,
    named: bool,
) -> More:
    """`named`: `loaded` are the runs that were asked for, and not all of the store."""
    from tradewind.base.units import parse_duration
    from tradewind.ledger import chargeback, idle, outlook
    from tradewind.upkeep import unread

    now_s = now.timestamp()
    posted = [posting for cost in costs for posting in cost.postings]
    charges = left = lines = None
    idle_by = "user" if by == "run" else by  # a run is nobody
    if asked.chargeback:
        charges = chargeback.charged(costs, rules, int(now_s), since_s, until_s)
    if asked.idle:
        from tradewind.ledger.report import key_of

        commits = {each.run_id: each.commits for each in loaded}
        every = [
            part for cost in costs for part in idle.idle_of(cost, commits[cost.run_id], now)
        ]  # fmt: skip
        lines = idle.lines(every, posted, key_of(idle_by), since_s, until_s)
    if asked.unread:
        left = unread.find(store, loaded, now_s, parse_duration(asked.unread))
    part = named or since_s is not None or until_s is not None
    counted = _units(store, costs, by, since_s, until_s, part) if asked.units else (None, False)
    return More(
        now_s=now_s,
        asked=asked,
        by=by if _whole(by) else "run",
        forecast=outlook.forecast(posted, int(now_s)) if asked.forecast else None,
        unusual=outlook.unusual(costs) if asked.unusual else None,
        units=counted[0],
        services_left_out=counted[1],
        idle=lines,
        idle_by=idle_by,
        charges=charges,
        unread=left,
    )


def _whole(by: str) -> bool:
    from tradewind.ledger.report import WHOLE

    return by.partition(":")[0] in WHOLE


def _units(
    store: Store,
    costs: Sequence[RunCost],
    by: str,
    since_s: int | None,
    until_s: int | None,
    part: bool,
) -> tuple[list[UnitCost], bool]:
    """Of whole runs: what a run has done in a part of its time, its journal does not tell. And
    whether services are left out: of a part of their replicas' time nobody knows the requests."""
    from tradewind.api.billed import asked_of
    from tradewind.ledger.periods import between
    from tradewind.ledger.report import key_of
    from tradewind.ledger.units import unit_costs

    whole = [
        cost
        for cost in costs
        if cost.postings and all(between(p, since_s, until_s) is p for p in cost.postings)
    ]
    key = key_of(by if _whole(by) else "run")
    services = sorted({cost.spec.tags.get("service", "") for cost in whole if cost.spec} - {""})
    asked = [] if part else [(service, asked_of(store, service)) for service in services]
    found = unit_costs(whole, lambda cost: key(cost.postings[0]), asked)
    cut = (
        cost.spec is not None
        and cost.spec.tags.get("service")
        and any(between(p, since_s, until_s) for p in cost.postings)
        for cost in costs
    )
    return found, part and any(cut)
