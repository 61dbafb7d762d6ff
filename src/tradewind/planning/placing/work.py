"""Ways to do work that ends, a training for example, again and again: planned for each place.

A run is asked for as a long request: what it costs at one place is that place's cheapest plan.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tradewind.base.units import usd
from tradewind.catalog import alternatives, places
from tradewind.economics import facts
from tradewind.economics.placing import MONTH_S, RUNS, Asked, Way
from tradewind.planning.placing import managed, owned, requests
from tradewind.planning.planner import Planner

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.catalog import Catalog
    from tradewind.estimate.constants import Constants
    from tradewind.model import Workload
    from tradewind.model.plan import Plan
    from tradewind.planning.rates import Rates

_NO_PLAN = "no plan keeps every limit"


class Places:
    """Plans of one workload, under narrower limits each."""

    def __init__(
        self,
        work: Workload,
        catalog: Catalog,
        *,
        now: datetime,
        constants: Constants | None = None,
        rates: Rates | None = None,
    ) -> None:
        self.work, self.catalog, self.now, self.constants = work, catalog, now, constants
        self.rates = rates

    @cache  # noqa: B019  lives as long as one command
    def best(self, **limits: Any) -> Plan | None:
        work = replace(self.work, limits=replace(self.work.limits, **limits))
        planner = Planner(
            work, self.catalog, now=self.now, constants=self.constants, rates=self.rates
        )
        return planner.plans(explain=False, top=1).best

    def asked(self, runs_month: float, keep: str, offline: bool) -> Asked:
        plan = self.best() or self.best(budget=None, within_s=None, deadline=None)
        deadline = self.work.limits.deadline_at(self.now)
        return Asked(
            requests_day=runs_month / RUNS.days, seconds=3600 * plan.hours if plan else 3600.0,
            peak=1.0, keep=keep, offline=offline, unit=RUNS,
            latency_s=(deadline - self.now).total_seconds() if deadline else None,
            accelerator=plan.accelerator if plan else "accelerators",
        )  # fmt: skip

    def ways(self, api_price: str | None = None, cpu_s: float | None = None) -> list[Way]:
        """Those of which something is known: the rest has the reason why it cannot be."""
        limits = self.work.limits
        rented = limits.markets
        found = [
            _rented("cloud machine", self.best(markets=("on_demand",))),
            _rented("spot machine", self.best(markets=("spot",))),
            self._managed(), self._serverless(), self._own(), self._edge(),
        ]  # fmt: skip
        if rented is not None:  # the file says how machines are to be rented
            barred = {
                kind
                for kind, market in (("cloud machine", "on_demand"), ("spot machine", "spot"))
                if market not in rented
            }
            found = [
                replace(way, reason=f"limits.markets has {', '.join(rented)} alone")
                if way.kind in barred
                else way
                for way in found
            ]
        found += requests.api(api_price, 0.0)
        found += requests.cpu(self.catalog, cpu_s, None, None)
        return found

    def _managed(self) -> Way:
        best: tuple[float, Plan, managed.Surcharge] | None = None
        for provider in sorted(managed.providers()):
            if not self.work.limits.allows(provider, "any"):
                continue
            plan = self.best(markets=("on_demand",), providers=(provider,))
            more = plan and managed.surcharge(provider, plan.instance_type)
            if plan is None or not more:
                continue
            cost = usd(plan.cost) + (more.ratio - 1) * usd(_of_machines(plan))
            if best is None or cost < best[0]:
                best = cost, plan, more
        if best is None:
            return Way(kind="managed service", words="", reason=f"{_NO_PLAN} with one")
        cost, plan, more = best
        words = f"{more.service}: {_machines(plan)}, {more.ratio:g}× their price"
        return replace(
            _rented("managed service", plan), words=words, usd_request=cost, source=more.source,
            doubt=more.doubt,
        )  # fmt: skip

    def _serverless(self) -> Way:
        """One container with one or several accelerators, paid by the second."""
        best: tuple[float, Plan, alternatives.Serverless] | None = None
        for offer in alternatives.serverless():
            if not places.allows(self.work.limits, offer.provider, offer.region or "any"):
                continue
            plan = self._on_one_container(offer.accelerator, offer.most_accelerators)
            if plan is None:
                continue
            cost = 3600 * plan.hours * plan.accelerators * offer.usd_per_s
            if best is None or cost < best[0]:
                best = cost, plan, offer
        if best is None:
            return Way(
                kind="serverless GPU", words="", leaves="any",
                reason="no container is large enough, in time" if self.best() else _NO_PLAN,
            )  # fmt: skip
        cost, plan, offer = best
        return Way(
            kind="serverless GPU",
            words=f"{offer.provider} {offer.service}, {plan.accelerators}× {offer.accelerator}",
            usd_request=cost, seconds=3600 * plan.hours, leaves="any",
            source=f"{offer.source}, {offer.as_of}", doubt=_calls(offer.provider, plan.hours),
        )  # fmt: skip

    def _on_one_container(self, accelerator: str, most: int) -> Plan | None:
        if not self.work.limits.allows_accelerator(accelerator):
            return None
        return self.best(
            markets=("on_demand",), accelerators=(accelerator,), max_nodes=1, max_accelerators=most,
            budget=None, providers=None, regions=None,
        )  # fmt: skip

    def _own(self) -> Way:
        """Servers that could be bought; those that the account file has are in plans already."""
        best: tuple[float, Plan, int] | None = None
        for chip in filter(self.work.limits.allows_accelerator, owned.SERVERS):
            plan = self.best(markets=("on_demand",), accelerators=(chip,), providers=None,
                             regions=None, budget=None)  # fmt: skip
            if plan is None:
                continue
            many = owned.servers(chip, plan.accelerators)
            month = owned.month(self.catalog, chip, many)
            if best is None or month < best[0]:
                best = month, plan, many
        if best is None:
            return Way(kind="own machines", words="", leaves="own", reason="no server with a known"
                       " price does it in time")  # fmt: skip
        month, plan, many = best
        each = owned.SERVERS[plan.accelerator][0]
        return Way(
            kind="own machines", words=f"{many} server{'s' * (many > 1)} with {each}× "
            f"{plan.accelerator}, bought", always_month=month, seconds=3600 * plan.work_hours,
            at_once=many * each // plan.accelerators,
            leaves="own", online=False, source=f"tradewind own, {owned.YEARS} years",
            doubt="paid whether or not they work",
        )  # fmt: skip

    def _edge(self) -> Way:
        """The cheapest device that holds what one accelerator of a plan does, in time: as fast as
        its peak is, by that of the accelerator."""
        plan = self.best(markets=("on_demand",), max_nodes=1, max_accelerators=1, budget=None,
                         deadline=None, within_s=None)  # fmt: skip
        if plan is None:
            return Way(kind="edge device", words="", leaves="own", online=False,
                       reason="it does not fit one accelerator")  # fmt: skip
        chip = self.catalog.accelerators[plan.accelerator]
        peak = chip.training_tflops or 0.0
        need = plan.memory_gb
        ways = [
            Way(
                kind="edge device", words=row["device"], always_month=month,
                seconds=3600 * plan.work_hours * peak / speed, leaves="own", online=False,
                source=row.provenance, doubt=f"by its peak, against that of a {plan.accelerator}"
                + ("" if need else "; what memory it takes is not known"),
            )
            for row, month, memory in requests.devices()
            if (speed := row.number("fp16_tflops")) and 0.8 * memory >= need
        ]  # fmt: skip
        if not ways or not peak:
            return Way(kind="edge device", words="", leaves="own", online=False,
                       reason=f"no device has the {need:.0f} GB that it takes")  # fmt: skip
        deadline = self.work.limits.deadline_at(self.now)
        least_s = (deadline - self.now).total_seconds() if deadline else MONTH_S
        in_time = [way for way in ways if (way.seconds or 0) <= least_s]
        if in_time:
            return min(in_time, key=lambda way: way.always_month)
        return min(ways, key=lambda way: way.seconds or 0.0)


def _rented(kind: str, plan: Plan | None) -> Way:
    if plan is None:
        return Way(kind=kind, words="", reason=_NO_PLAN)
    return Way(
        kind=kind, words=_machines(plan), usd_request=usd(plan.cost), seconds=3600 * plan.hours,
        once=usd(plan.bring_once), source=f"{plan.price_source}, {plan.price_as_of}",
        leaves="own" if plan.own else "cloud", online=not plan.own,
        doubt="" if plan.had > 0.5 else f"available in {plan.had:.0%} of tries",
    )  # fmt: skip


def _machines(plan: Plan) -> str:
    return f"{plan.nodes}× {plan.instance_type} at {plan.place}"


def _of_machines(plan: Plan) -> int:
    """Micro-dollars for machines alone."""
    return sum(plan.costs.get(market, 0) for market in ("on_demand", "spot", "reserved"))


def _calls(provider: str, hours: float) -> str:
    """A call that lasts no longer than its limit has to be made again."""
    for row in facts.table("serverless").where(provider=provider, kind="limit"):
        limit = row.number("value")
        if limit and ("timeout maximum" in row["item"] or "maximum timeout" in row["item"]
                      or "job TTL" in row["item"]):  # fmt: skip
            calls = -(-hours * 3600 // limit)
            if calls > 1:
                return f"a call lasts {limit / 3600:g} h: it resumes {calls - 1:.0f} times"
            return ""
    return "how long a call may last is not known"
