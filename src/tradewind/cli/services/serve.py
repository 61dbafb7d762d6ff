"""`tradewind serve`: bring a service up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.base.plaintext import visible
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.api.services import Service
    from tradewind.model.serveplan import ServingPlans
    from tradewind.model.service import ServiceSpec
    from tradewind.store.base import Store


@click.command(
    "serve",
    cls=Command,
    examples="""
    # plan it, ask, and bring it up on this computer
    tradewind serve chat.yaml --local
    # leave it to a controller in the background
    tradewind serve chat.yaml --local --detach --yes
    # on rented machines, its front too
    tradewind serve chat.yaml --on aws --detach
    """,
)
@click.argument("file", metavar="WORKLOAD")
@click.option(
    "--local",
    is_flag=True,
    help="On this computer, at the prices of the plan's machines. The default.",
)
@click.option(
    "--on",
    "named",
    multiple=True,
    metavar="CLOUD",
    help="Rent machines there, for replicas and front. Repeatable, or with commas.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="REGION",
    help="Rent only in this region (with --on).",
)
@click.option(
    "--folder",
    metavar="DIR",
    help="Folder to send to the replicas. Default: that of the workload file.",
)
@click.option("--project", default="", metavar="NAME", help="Project to charge, for cost reports.")
@click.option("--store", "store_url", metavar="URL", help="Store of the service.")
@click.option("--detach", is_flag=True, help="Leave it to a controller in the background.")
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each event.")
def command(
    file: str,
    local: bool,
    named: tuple[str, ...],
    regions: tuple[str, ...],
    folder: str | None,
    project: str,
    store_url: str | None,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Bring a service up and keep it up: replicas behind one address, as many as its load needs.

    The workload has a section `serve` (what asks, and what is promised), `run` (the command of the
    engine) and `service` (port, keys, limits). Ctrl-C leaves it to a controller in the background;
    `tradewind services stop` ends it."""
    from tradewind import store as stores
    from tradewind.api import clouds, served, servedon, submit
    from tradewind.api.services import Service
    from tradewind.cli.plan.serving import own_points
    from tradewind.providers import registry

    names = registry.chosen(named)
    if names and local:
        raise click.UsageError("--local is this computer, --on rents machines: one of them")
    if regions and not names:
        raise click.UsageError("--region goes with --on")
    for name in names:
        if name != registry.LOCAL:
            clouds.check_library(registry.rentable(name))
    opened = stores.open(store_url)
    on = servedon.on(opened, names, regions) if names else None
    with render.busy("planning"):
        plans = served.planned(file, own_points, on)
    with render.busy("looking at what is available"):
        spec = served.spec_of(plans, project=project, on=on)
    served.check(spec)
    where = Path(folder) if folder else Path(file).absolute().parent
    if not as_json:
        show(plans, spec)
        for words in on.warnings if on is not None else ():
            click.echo(f"note: {visible(words)}", err=True)
    kept_back = submit.not_sent(where, spec.engine.job.get("include"))
    if kept_back is not None:
        click.echo(f"not sent, because git ignores them: {kept_back[0]}; {kept_back[1]}", err=True)
    if not yes:
        _ask()
    service = Service(served.submit(opened, spec, where), opened)
    if detach:
        _left(service, opened, as_json)
        return
    try:
        _attend(service, as_json)
    except KeyboardInterrupt:
        _left(service, opened, as_json)


def _ask() -> None:
    import sys

    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal, cannot ask: add --yes")
    if not click.confirm("Bring it up?"):
        raise click.exceptions.Exit(0)


def _left(service: Service, store: Store, as_json: bool) -> None:
    log = service.detach()
    if as_json:
        told = {"service": service.id, "url": service.url or None, "store": store.url}
        render.print_line(told)
        return
    click.echo(f"\n{service.id} is left to a controller in the background ({log})")
    where = service.url or "its address comes with its front:"
    click.echo(f"{where}  `tradewind services show {service.id}` shows how it stands,")
    click.echo("`tradewind services stop` ends it")


def _attend(service: Service, as_json: bool) -> None:
    """Until it is closed."""
    teller = Teller(as_json)
    service.wait(lambda each: False, on_progress=teller.tell)
    if service.outcome != "stopped":
        raise click.exceptions.Exit(1)


class Teller:
    """Each event once, as it comes; that it is up, when it is; and what goes wrong, once."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._told, self._is_up, self._trouble = 0, False, ""

    def skip(self, service: Service) -> None:
        """What has happened until now is known."""
        self._told, self._is_up = len(service.events), True

    def tell(self, service: Service) -> None:
        from msgspec import to_builtins

        from tradewind.cli.services import serviceview
        from tradewind.model.service import ReplicaGone, ServiceEnded

        for at, event in service.events[self._told :]:
            if self._as_json:
                told = to_builtins(event)
                told.pop("spec", None)
                render.print_line({"service": service.id, "at": at.isoformat(), **told})
                continue
            click.echo(f"{at.astimezone():%H:%M:%S}  {serviceview.line(event)}")
            if isinstance(event, ReplicaGone | ServiceEnded) and event.tail:
                for each in serviceview.tail(event.tail):
                    click.echo(f"          | {each}")
        self._told = len(service.events)
        if service.trouble != self._trouble:
            self._trouble = service.trouble
            if self._trouble:
                click.echo(f"{service.id}: {visible(self._trouble)}", err=True)
        if not self._is_up and service.ready and service.url and not service.outcome:
            self._is_up = True
            if self._as_json:
                render.print_line({"service": service.id, "url": service.url, "up": True})
            else:
                click.secho(f"          up at {', '.join(service.urls)}", bold=True)


def show(plans: ServingPlans, spec: ServiceSpec) -> None:
    from tradewind.base.units import format_money
    from tradewind.web import serve_words as words

    best = plans.best
    assert best is not None
    click.secho(f"{spec.name}: {words.traffic(plans)}", bold=True)
    render.labelled("targets   ", words.targets(plans))
    way = spec.ways[0]
    many = render.count(spec.start, "replica")
    render.labelled(
        "plan      ",
        f"{many} on {way.instance_type} of {way.region}, {words.money(best.cost)} a month",
    )
    if spec.rented:
        _show_rented(spec)
        return
    render.labelled(
        "here      ",
        f"machines are processes of this computer, paid at"
        f" {format_money(way.price, digits=4)} an hour each; from {spec.fewest} to {spec.most}",
    )
    render.labelled("front     ", f"{spec.front.address}:{spec.front.port}")


def _show_rented(spec: ServiceSpec) -> None:
    from tradewind.base.units import format_money

    each = "; ".join(
        f"{way.market.replace('_', '-')} {format_money(way.price, digits=4)} an hour"
        for way in {way.market: way for way in reversed(spec.ways)}.values()
    )
    zones = len({way.zone for way in spec.ways})
    render.labelled(
        "replicas  ",
        f"{each}; in {render.count(zones, 'zone')}; from {spec.fewest} to {spec.most}",
    )
    front, ranges = spec.front_ways[0], ", ".join(spec.front.ranges)
    render.labelled(
        "front     ",
        f"{render.count(spec.fronts, 'machine')}, {front.instance_type} or the like at"
        f" {format_money(front.price, digits=4)} an hour; port {spec.front.port} is open to"
        f" {ranges or 'its own network (service.allow opens it to others)'}",
    )
