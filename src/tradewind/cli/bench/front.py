"""`tradewind bench front`: what the front costs beside the engine alone."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "front",
    cls=Command,
    examples="""
    tradewind bench front --seconds 3
    """,
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=5.0,
    show_default=True,
    help="Of each load.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=3, show_default=True, help="How often."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(seconds: float, repeat: int, as_json: bool) -> None:
    """Overhead of the front (HAProxy) at p50 and p99, and requests/s on a core."""
    from tradewind.bench import front as bench

    with render.busy("asking a small server, alone and behind the front"):
        found = bench.measure(seconds, repeat)
    if as_json:
        render.print_json(found)
        return
    cores = render.count(found["cores"], "core")
    click.echo(f"{cores}, load {found['load']}, HAProxy {found['haproxy']}, one thread")
    click.echo(f"{'':<24}{'p50':>10}{'p99':>10}")
    for name, key in (("alone", "alone"), ("behind the front", "front"), ("overhead", "overhead")):
        click.echo(f"{name:<24}{found[f'{key}_p50_ms']:>7.3f} ms{found[f'{key}_p99_ms']:>7.3f} ms")
    over, limit = found["overhead_p99_ms"], bench.OVERHEAD_LIMIT_MS
    _verdict("overhead at p99", f"{over:.3f} ms", over <= limit, f"{limit:g} ms")
    rate, least = found["requests_per_cpu_s"], bench.RATE_LIMIT
    _verdict("requests a CPU-second", f"{rate:,}", rate >= least, f"{least:,} at least")
    click.echo(f"{'requests/s as they came':<28}{found['requests_per_s']:>10,}")
    if found["load"] > found["cores"]:
        render.remark(
            "other work takes this machine's cores: latencies are the scheduler's; as root, "
            "`chrt -r 1 tradewind bench front` goes before it"
        )
    if found["failed"]:
        render.remark(f"{render.count(found['failed'], 'request')} failed")


def _verdict(name: str, value: str, good: bool, limit: str) -> None:
    click.echo(f"{name:<28}{value:>10}  {'within' if good else 'OVER'} {limit}")
