"""`tradewind exporter`: metrics of runs and their GPUs for Prometheus."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "exporter",
    cls=Command,
    examples="""
    # for a Prometheus on this computer
    tradewind exporter --store s3://my-bucket/tradewind
    # the dashboard, to be imported into Grafana
    tradewind exporter --dashboard > tradewind.json
    """,
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9477,
    show_default=True,
    help="0: any free one.",
)
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(1, 3600),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks at the store, however often it is asked.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--once", is_flag=True, help="Print the metrics and exit.")
@click.option("--dashboard", is_flag=True, help="Print a Grafana dashboard as JSON and exit.")
def command(
    host: str, port: int, every_s: float, store_url: str | None, once: bool, dashboard: bool
) -> None:
    """Metrics of runs for Prometheus: progress, money, speed, GPUs; and a dashboard for Grafana."""
    if once and dashboard:
        raise click.UsageError("--once and --dashboard exclude each other")
    if dashboard:
        from tradewind.telemetry import dashboard as dashboards

        render.print_json(dashboards.dashboard())
        return
    from tradewind import store as stores
    from tradewind.api import exporter

    found = exporter.Exporter(stores.open(store_url), every_s=every_s)
    if once:
        click.echo(found.text(), nl=False)
        return
    with exporter.server(found, host, port) as server:
        at, number = server.server_address[:2]
        shown = f"[{at!s}]" if ":" in str(at) else str(at)
        click.echo(f"http://{shown}:{number}/metrics, until Ctrl-C")
        if str(at) not in ("127.0.0.1", "::1"):
            render.note("whoever reaches this port reads names, costs and progress of all runs")
        server.serve_forever()
