"""A service in words: its events as lines, its replicas as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.base.plaintext import visible
from tradewind.base.units import format_money, usd
from tradewind.cli import render
from tradewind.model.service import (
    FrontGone,
    FrontLeaves,
    FrontOrdered,
    FrontReady,
    ReplicaGone,
    ReplicaLeaves,
    ReplicaOrdered,
    ReplicaReady,
    ReplicasWanted,
    RuleChosen,
    Scaled,
    ServiceClosed,
    ServiceEnded,
    ServiceEvent,
    ServiceStopAsked,
    ServiceSubmitted,
    SpotGone,
)

if TYPE_CHECKING:
    from tradewind.api.services import FrontView, ReplicaView, Service

_BAR = " ▁▂▃▄▅▆▇█"
_TAIL = 12


def line(event: ServiceEvent) -> str:
    """What happened, with its reason."""
    return visible(_line(event))


def _line(event: ServiceEvent) -> str:
    if isinstance(event, ServiceSubmitted):
        return f"submitted: {event.spec.start} to begin with"
    if isinstance(event, ReplicaOrdered):
        market = event.market.replace("_", "-")
        return f"r{event.number} ordered, {market}: {event.reason}"
    if isinstance(event, ReplicaReady):
        # Who came after it was ordered does not know how long its machine took.
        machine = f"machine {event.machine_s:.1f} s, " if event.machine_s else ""
        told = f"engine {event.answered_s:.1f} s, warming up {event.warm_s:.1f} s"
        return f"{_name(event.run_id)} ready: {machine}{told}"
    if isinstance(event, ReplicaLeaves):
        how = "is given up" if event.lost else "drains"
        return f"{_name(event.run_id)} {how}: {event.reason}"
    if isinstance(event, ReplicaGone):
        return f"{_name(event.run_id)} gone: {event.reason}"
    if isinstance(event, ReplicasWanted):
        return f"{render.count(event.count, 'replica')} wanted: {event.reason}"
    if isinstance(event, RuleChosen):
        return f"rule chosen: replicas filled to {event.fill:.0%}, {event.reason}"
    if isinstance(event, SpotGone):
        return f"on demand for a while: {event.reason}"
    if isinstance(event, Scaled):
        return f"from {event.fewest} to {event.most} replicas: {event.reason}"
    if isinstance(event, FrontOrdered):
        return f"f{event.number} ordered, a front: {event.reason}"
    if isinstance(event, FrontReady):
        return f"{_name(event.run_id)} ready, a front at {event.public or event.host}"
    if isinstance(event, FrontLeaves):
        return f"{_name(event.run_id)} leaves: {event.reason}"
    if isinstance(event, FrontGone):
        return f"{_name(event.run_id)} gone: {event.reason}"
    if isinstance(event, ServiceStopAsked):
        return f"stopping: {event.reason}"
    if isinstance(event, ServiceEnded):
        return f"{event.outcome}: {event.reason}"
    assert isinstance(event, ServiceClosed)
    return f"closed: {event.reason}"


def _name(run_id: str) -> str:
    return run_id.rpartition("-")[2]


def tail(text: str) -> list[str]:
    """The last lines of an engine."""
    return [visible(each) for each in text.rstrip().splitlines()[-_TAIL:]]


def state(service: Service) -> str:
    return service.outcome or service.state.phase or "new"


def row(service: Service) -> dict[str, Any]:
    assert service.spec is not None
    return {
        "service": service.id,
        "name": service.spec.name,
        "state": state(service),
        "model": service.spec.model,
        "ready": len(service.ready),
        "wanted": service.state.wanted,
        "fewest": service.state.fewest,
        "most": service.state.most,
        "url": service.url,
        "urls": service.urls,
        "in_front": None if service.front is None else service.front.current,
        "reason": service.state.reason,
    }


def replica(each: ReplicaView) -> dict[str, Any]:
    serving = each.told.serving
    return {
        "replica": each.name,
        "run": each.run_id,
        "market": each.market,
        "state": each.state,
        "running": serving.running if serving else None,
        "waiting": serving.waiting if serving else None,
        "cache": serving.cache if serving else None,
        "tokens_out": serving.tokens_out if serving else None,
        "why": each.told.lost or each.told.refused,
        "cost_usd": usd(each.cost),
    }


def front(each: FrontView) -> dict[str, Any]:
    return {
        "front": each.name,
        "run": each.run_id,
        "state": each.state,
        "host": each.host,
        "public": each.public,
        "why": each.told.lost or each.told.refused,
        "cost_usd": usd(each.cost),
    }


def fronts(service: Service) -> None:
    """Those that are rented."""
    columns = [
        render.Column("front", keep=4),
        render.Column("state", keep=9),
        render.Column("in its network"),
        render.Column("in the world"),
        render.Column("cost", right=True, keep=8),
        render.Column("why", grow=True),
    ]
    rows = [
        [
            each.name,
            each.state,
            each.host,
            each.public,
            format_money(each.cost, digits=4),
            visible(each.told.lost or each.told.refused),
        ]
        for each in service.fronts
    ]
    if rows:
        render.table(columns, rows)


def replicas(service: Service) -> None:
    columns = [
        render.Column("replica", keep=4),
        render.Column("state", keep=9),
        render.Column("market"),
        render.Column("running", right=True),
        render.Column("waiting", right=True),
        render.Column("cache", right=True),
        render.Column("cost", right=True, keep=8),
        render.Column("why", grow=True),
    ]
    rows = []
    for each in service.replicas:
        told = replica(each)
        cache = told["cache"]
        rows.append(
            [
                each.name,
                each.state,
                each.market.replace("_", "-"),
                _number(told["running"]),
                _number(told["waiting"]),
                "" if cache is None else f"{cache:.0%}",
                format_money(each.cost, digits=4),
                visible(told["why"]),
            ]
        )
    if rows:
        render.table(columns, rows)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def head(service: Service) -> None:
    spec = service.spec
    assert spec is not None
    click.secho(f"{service.id}: {state(service)}", bold=True)
    told = f"{len(service.ready)} ready, {service.state.wanted} wanted"
    told += f", from {service.state.fewest} to {service.state.most}"
    render.labelled("replicas  ", told)
    if not service.outcome:
        keys = f", {render.count(len(spec.front.keys), 'API key')}" if spec.front.keys else ""
        render.labelled("front     ", f"{', '.join(service.urls) or 'none is up'}{keys}")
    if service.front is not None:
        seen = service.front
        words = f"{seen.current} in it, {seen.queued} queued, {seen.held} held"
        render.labelled("requests  ", f"{words}, {seen.total:,} so far, {seen.denied:,} refused")
    if service.state.reason:
        render.labelled("because   ", visible(service.state.reason))


def bars(values: list[float], wide: int = 60) -> str:
    """The last of them, as a line of bars."""
    last = values[-wide:]
    top = max(last, default=0.0)
    if not top:
        return ""
    return "".join(_BAR[min(round(each / top * (len(_BAR) - 1)), 8)] for each in last)
