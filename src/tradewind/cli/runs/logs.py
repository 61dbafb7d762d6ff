"""`tradewind logs`: what a run's job has printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tradewind.base import clock
from tradewind.base.plaintext import Colours
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.terminal import unguarded

if TYPE_CHECKING:
    from tradewind.api.logs import Reader
    from tradewind.lifecycle.state import RunState

_POLL_S = 1.0


@click.command(
    "logs",
    cls=Command,
    examples="""
    # what it prints, until it ends
    tradewind logs finetune -f
    # the second machine's, of the first leg
    tradewind logs finetune --leg 1 --rank 1
    """,
)
@click.argument("run")
@click.option("-f", "--follow", is_flag=True, help="Follow until the run ends.")
@click.option("--leg", type=click.IntRange(min=1), help="Only this leg. Default: all.")
@click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, help="Machine.")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each line.")
@click.option(
    "--raw", is_flag=True, help="Byte for byte on a terminal too, whatever it does there."
)
def command(
    run: str,
    follow: bool,
    leg: int | None,
    rank: int,
    store_url: str | None,
    as_json: bool,
    raw: bool,
) -> None:
    """Print the output of a run's job, leg after leg, byte for byte.

    On a terminal, colours and progress bars are shown; other control characters are not sent to it,
    because they could do more than print."""
    from tradewind import store as stores
    from tradewind.api.follow import Sight
    from tradewind.api.logs import Reader, check_leg, check_rank
    from tradewind.cli.runs import runview

    opened = stores.open(store_url)
    sight = Sight(opened, runview.named(opened, run))
    sight.look()
    check_leg(sight.run_id, sight.state, leg)
    check_rank(sight.run_id, sight.state, rank)
    reader = Reader(opened, sight.run_id, leg=leg, rank=rank)
    with _shown(raw=raw) as show:
        while True:
            # Not when it has ended: until its machines are off they may have something to say.
            over = not follow or sight.state.phase in ("closed", "")
            if as_json:
                _print_lines(reader, sight.state, over)
            else:
                show(chunk for _, _, chunk in reader.chunks(sight.state))
            if over:
                return
            clock.sleep(_POLL_S)
            sight.look()


def _bytes(chunks: Iterable[bytes]) -> None:
    out = unguarded(sys.stdout)
    for data in chunks:
        out.buffer.write(data)
    out.flush()


@contextmanager
def _shown(*, raw: bool) -> Iterator[Callable[[Iterable[bytes]], None]]:
    """How chunks of a job's output are printed."""
    if raw or not sys.stdout.isatty():
        yield _bytes
        return
    out, colours = unguarded(sys.stdout), Colours()

    def show(chunks: Iterable[bytes]) -> None:
        for data in chunks:
            out.write(colours.feed(data))
        out.flush()

    try:
        yield show
    finally:
        out.write(colours.end())
        out.flush()


def _print_lines(reader: Reader, state: RunState, last: bool) -> None:
    from msgspec import to_builtins

    for line in reader.lines(state, last=last):
        render.print_line(to_builtins(line))
