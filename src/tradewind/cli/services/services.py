"""`tradewind services …`: services, and how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_money
from tradewind.cli import render
from tradewind.cli.base import Group

if TYPE_CHECKING:
    from tradewind.api.services import Service

_EVENTS = 30
_POLL_S = 1.0

_store = click.option("--store", "store_url", metavar="URL", help="Store of the service.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _opened(name: str, store_url: str | None) -> Service:
    from tradewind import store as stores
    from tradewind.api.services import Service

    return Service(name, stores.open(store_url))


@click.group(
    "services",
    cls=Group,
    invoke_without_command=True,
    examples="""
    # those that are up
    tradewind services
    # what one does, and why
    tradewind services show chat
    # what it has cost, by replica and by key
    tradewind services cost chat
    """,
)
@click.option("--all", "every", is_flag=True, help="Also list services that have ended.")
@_store
@_json
@click.pass_context
def command(context: click.Context, every: bool, store_url: str | None, as_json: bool) -> None:
    """Services: those that are up, and what each does, costs and says."""
    if context.invoked_subcommand is not None:
        return
    from tradewind import store as stores
    from tradewind.api.services import services
    from tradewind.cli.services import serviceview

    opened = stores.open(store_url)
    rows = [serviceview.row(each) for each in services(opened, live=not every)]
    if as_json:
        render.print_json({"store": opened.url, "services": rows})
        return
    if not rows:
        click.echo("no services" if every else "no services are up; --all shows those that ended")
        return
    columns = [
        render.Column("service", keep=9),
        render.Column("state", keep=8),
        render.Column("ready", right=True, keep=5),
        render.Column("wanted", right=True),
        render.Column("url", grow=True),
    ]
    render.table(
        columns,
        [[r["service"], r["state"], str(r["ready"]), str(r["wanted"]), r["url"]] for r in rows],
    )


@command.command(
    "show",
    examples="""
    tradewind services show chat
    """,
)
@click.argument("service")
@_store
@_json
def show(service: str, store_url: str | None, as_json: bool) -> None:
    """One service: its replicas, its load, and its events with their reasons."""
    from msgspec import to_builtins

    from tradewind.cli.services import serviceview

    found = _opened(service, store_url)
    load = found.load()
    if as_json:
        events = []
        for at, event in found.events:
            told = to_builtins(event)
            told.pop("spec", None)
            events.append({"at": at.isoformat(), **told})
        replicas = [serviceview.replica(each) for each in found.replicas]
        render.print_json(
            {
                **serviceview.row(found),
                "replicas": replicas,
                "fronts": [serviceview.front(each) for each in found.fronts],
                "load": load,
                "events": events,
            }
        )
        return
    serviceview.head(found)
    drawn = serviceview.bars(load)
    if drawn:
        render.labelled("load      ", f"{drawn}  at most {max(load[-60:]):.2f} replicas")
    serviceview.fronts(found)
    serviceview.replicas(found)
    click.echo()
    for at, event in found.events[-_EVENTS:]:
        click.echo(f"{at.astimezone():%m-%d %H:%M:%S}  {serviceview.line(event)}")
    if found.state.tail and not found.ready:
        click.echo("\nthe last lines of the engine that failed:")
        for each in serviceview.tail(found.state.tail):
            click.echo(f"  | {each}")


@command.command(
    "logs",
    examples="""
    # what the engines of all its replicas have printed
    tradewind services logs chat
    # one of them, as it comes
    tradewind services logs chat --replica r2 -f
    """,
)
@click.argument("service")
@click.option(
    "--replica",
    metavar="NAME",
    help="Only this one, such as r2; f1 is a rented front. Default: all.",
)
@click.option("-f", "--follow", is_flag=True, help="Follow until the service ends.")
@_store
@_json
def logs(
    service: str, replica: str | None, follow: bool, store_url: str | None, as_json: bool
) -> None:
    """What the engines of its replicas have printed, each line with its replica."""
    from tradewind.api.follow import Sight
    from tradewind.api.logs import Reader
    from tradewind.base.plaintext import visible

    found = _opened(service, store_url)
    known = _runs(found)
    if replica is not None and replica not in known:
        names = ", ".join(known) or "none yet"
        raise NotFound(f"{found.id} has no replica {replica}", hint=f"it has had {names}")
    readers: dict[str, tuple[Sight, Reader]] = {}
    while True:
        over = not follow or found.state.phase == "closed"
        for name, run_id in _runs(found).items():
            if replica not in (None, name):
                continue
            if run_id not in readers:
                reader = Reader(found.store, run_id, leg=None, rank=0)
                readers[run_id] = (Sight(found.store, run_id), reader)
            sight, reader = readers[run_id]
            sight.look()
            for each in reader.lines(sight.state, last=over):
                if as_json:
                    render.print_line({"replica": name, "run": run_id, "text": each.text})
                else:
                    click.echo(f"{name} | {visible(each.text)}")
        if over:
            return
        clock.sleep(_POLL_S)
        found.refresh()


def _runs(found: Service) -> dict[str, str]:
    """Of its replicas and rented fronts, by their names."""
    every = {f"r{number}": run_id for run_id, number in found.state.every.items()}
    return every | {f"f{number}": run_id for run_id, number in found.state.every_front.items()}


@command.command(
    "scale",
    examples="""
    # never fewer than two, never more than six
    tradewind services scale chat --fewest 2 --most 6
    """,
)
@click.argument("service")
@click.option("--fewest", type=click.IntRange(min=0), help="So many are always up.")
@click.option("--most", type=click.IntRange(1, 1000), help="And never more than so many.")
@_store
@_json
def scale(
    service: str, fewest: int | None, most: int | None, store_url: str | None, as_json: bool
) -> None:
    """Say how many replicas there may be; within that they follow the load."""
    if fewest is None and most is None:
        raise click.UsageError("how many? --fewest N, --most N, or both")
    found = _opened(service, store_url)
    high = most if most is not None else None
    if fewest is not None and high is not None and fewest > high:
        raise click.UsageError(f"--fewest {fewest} is more than --most {high}")
    if found.state.phase != "up":
        raise InvalidValue(f"{found.id} is not up: {found.outcome or found.state.phase}")
    found.scale(fewest, most)
    told = {"service": found.id, "fewest": found.state.fewest, "most": found.state.most}
    if as_json:
        render.print_json(told)
    else:
        click.echo(f"{found.id}: from {told['fewest']} to {told['most']} replicas")


@command.command(
    "stop",
    examples="""
    # running answers finish, machines are given back
    tradewind services stop chat
    """,
)
@click.argument("service")
@click.option("--no-wait", is_flag=True, help="Ask, and do not wait until it has stopped.")
@_store
@_json
def stop(service: str, no_wait: bool, store_url: str | None, as_json: bool) -> None:
    """End a service: its port closes, running answers finish, every machine is given back."""
    from tradewind.cli.services.serve import Teller

    found = _opened(service, store_url)
    if found.state.phase == "closed":
        if not as_json:
            click.echo(f"{found.id} has ended already: {found.outcome}")
    else:
        found.stop(timeout=0)
        if not no_wait:
            teller = Teller(as_json=False)
            teller.skip(found)
            found.wait(
                lambda each: each.state.phase == "closed",
                on_progress=(lambda _: None) if as_json else teller.tell,
            )
        elif not as_json:
            click.echo(f"{found.id} was asked to stop; the next controller pass stops it")
    if as_json:
        render.print_json({"service": found.id, "state": found.state.phase})


@command.command(
    "cost",
    examples="""
    tradewind services cost chat
    """,
)
@click.argument("service")
@_store
@_json
def cost(service: str, store_url: str | None, as_json: bool) -> None:
    """What a service has cost: by replica, by API key, and for a million tokens.

    The sum of the ledgers of its replicas' runs, to the micro-dollar."""
    from dataclasses import asdict

    from tradewind.base.units import usd

    found = _opened(service, store_url)
    bill = found.cost()
    assert found.spec is not None
    if as_json:
        keys = {name: {**asdict(each), "usd": usd(each.micros)} for name, each in bill.keys.items()}
        render.print_json(
            {
                "service": found.id, "model": found.spec.model, "usd": usd(bill.micros),
                "micros": bill.micros, "requests": bill.requests, "failed": bill.failed,
                "tokens_in": bill.tokens_in, "tokens_out": bill.tokens_out,
                "usd_per_million_tokens": bill.usd_per_million,
                "usd_per_thousand_requests": bill.usd_per_thousand,
                "replicas": [{**asdict(each), "usd": usd(each.micros)} for each in bill.replicas],
                "keys": keys,
            }
        )  # fmt: skip
        return
    show_bill(found)


def show_bill(found: Service) -> None:
    bill = found.cost()
    assert found.spec is not None
    click.secho(f"{found.id}: {format_money(bill.micros, digits=6)}", bold=True)
    render.labelled("model     ", found.spec.model)
    asked = f"{bill.requests:,}"
    if bill.failed is not None:
        asked += f", {bill.failed:,} of them not answered well"
    if bill.usd_per_thousand is not None:
        asked += f": ${bill.usd_per_thousand:.4g} a thousand"
    render.labelled("requests  ", asked)
    per_million = bill.usd_per_million
    tokens = f"{bill.tokens_in:,} in, {bill.tokens_out:,} out"
    if per_million is not None:
        tokens += f": ${per_million:.4g} a million"
    else:
        tokens = "its engines do not count them"
    render.labelled("tokens    ", tokens)
    _by_replica(bill.replicas)
    if any(bill.keys):
        _by_key(bill.keys)


def _by_replica(replicas: Any) -> None:
    columns = [
        render.Column("replica", keep=4),
        render.Column("market"),
        render.Column("seconds", right=True),
        render.Column("tokens out", right=True),
        render.Column("cost", right=True, keep=10),
    ]
    render.table(
        columns,
        [
            [
                each.name,
                each.market.replace("_", "-"),
                f"{each.seconds:,}",
                f"{each.tokens_out:,}",
                format_money(each.micros, digits=6),
            ]
            for each in replicas
        ],
    )


def _by_key(keys: Any) -> None:
    columns = [
        render.Column("key", keep=4),
        render.Column("requests", right=True),
        render.Column("failed", right=True),
        render.Column("cost", right=True, keep=10),
    ]
    render.table(
        columns,
        [
            [name or "none", f"{each.requests:,}", f"{each.failed:,}",
             format_money(each.micros, digits=6)]
            for name, each in sorted(keys.items())
        ],
    )  # fmt: skip


@command.command(
    "top",
    examples="""
    tradewind services top chat
    """,
)
@click.argument("service")
@click.option("--once", is_flag=True, help="Print it once. The default where it is no terminal.")
@_store
@_json
def top(service: str, once: bool, store_url: str | None, as_json: bool) -> None:
    """A service as it is now, again and again: its front, and what each engine says of itself."""
    import sys

    from tradewind.cli.services import serviceview

    found = _opened(service, store_url)
    while True:
        if as_json:
            replicas = [serviceview.replica(each) for each in found.replicas]
            render.print_line({**serviceview.row(found), "replicas": replicas})
        else:
            if not once and sys.stdout.isatty():
                click.clear()
            serviceview.head(found)
            serviceview.fronts(found)
            serviceview.replicas(found)
        if once or as_json or not sys.stdout.isatty() or found.state.phase == "closed":
            return
        clock.sleep(_POLL_S)
        found.refresh()


@command.command(
    "watch",
    examples="""
    tradewind services watch chat
    """,
)
@click.argument("service")
@_store
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each event.")
def watch(service: str, store_url: str | None, as_json: bool) -> None:
    """Run a controller for a service until it ends; any number may run at once."""
    from tradewind.cli.services.serve import Teller

    found = _opened(service, store_url)
    found.wait(lambda each: False, on_progress=Teller(as_json).tell)
    if found.outcome == "failed":
        raise click.exceptions.Exit(1)
