"""`tradewind top`: what trainings do now, and what holds them up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.base.errors import BadFile, NotFound, TradewindError, bug
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.cli.runs.topview import View
    from tradewind.model.figures import Figures

Look = Callable[[], "list[View]"]


@click.command(
    "top",
    cls=Command,
    examples="""
    # all active runs, until Ctrl-C
    tradewind top
    # a training that you started yourself, by its folder
    tradewind top checkpoints/
    """,
)
@click.argument("run", required=False)
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between updates.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, once.")
def command(
    run: str | None, once: bool, every_s: float, store_url: str | None, as_json: bool
) -> None:
    """Live metrics of trainings: speed, loss, GPU use, and the bottleneck.

    RUN is a run, or the folder of a training that runs by itself, such as checkpoints/. Without
    it, all active runs."""
    if run is not None and Path(run).is_dir():
        look = _of_folder(Path(run))
    elif run is not None and "/" in run:
        raise NotFound(
            f"there is no folder {run}",
            hint="a training makes it when it begins; runs are named by their id",
        )
    else:
        look = _of_runs(run, store_url)
    if as_json:
        render.print_json({"trainings": [view.told() for view in look()]})
        return
    out = render.console()
    if once or not out.is_terminal:
        _print_once(look())
        return
    _stay(look, every_s)


def _of_folder(folder: Path) -> Look:
    from tradewind.cli.runs.topview import View
    from tradewind.telemetry.files import FOLDER

    places = [folder / FOLDER, folder, folder / "checkpoints" / FOLDER]

    def look() -> list[View]:
        figures = next((found for place in places if (found := _living(place))), [])
        if not figures:
            raise NotFound(
                f"no training has told anything of itself in {folder}",
                hint="name the folder of checkpoints of one that uses tradewind.torch.session",
            )
        return [View(str(folder), figures=figures)]

    return look


def _living(place: Path) -> list[Figures]:
    """Those whose process was killed cannot say so themselves."""
    import platform

    from msgspec.structs import replace

    from tradewind.base import clock
    from tradewind.telemetry import files

    found = []
    for each in files.read(place, clock.epoch()):
        here = each.host == platform.node()[:64] and Path("/proc/self").exists()
        gone = here and each.pid > 0 and not Path(f"/proc/{each.pid}").exists()
        found.append(replace(each, over=True) if gone else each)
    return found


def _of_runs(run: str | None, store_url: str | None) -> Look:
    from tradewind import store as stores
    from tradewind.api.follow import Sight
    from tradewind.cli.runs import runview
    from tradewind.cli.runs.topview import View
    from tradewind.journal import runs_store

    opened = stores.open(store_url)
    named = None if run is None else runview.named(opened, run)
    sights: dict[str, Sight] = {}

    def view(run_id: str) -> View:
        sight = sights.setdefault(run_id, Sight(opened, run_id))
        sight.look()
        with suppress(TradewindError):  # then what was recorded must do
            sight.feel()
        return View.of(sight)

    def contained(run_id: str) -> View:
        """What is wrong with one run shall not hide the others."""
        try:
            return view(run_id)
        except BadFile as error:
            return View(run_id, figures=[], status=error.message, over=True)
        except TradewindError:
            raise
        except Exception as error:
            return View(run_id, figures=[], status=bug(run_id, error).message, over=True)

    def look() -> list[View]:
        return [view(named)] if named else [contained(e) for e in runs_store.live_ids(opened)]

    return look


def _print_once(views: list[View]) -> None:
    if not views:
        render.paragraph("no runs are running; to look at any other training, name its folder")
    out = render.console()
    for number, view in enumerate(views):
        if number:
            out.print()
        out.print(view.drawn(out.width))


def _stay(look: Look, every_s: float) -> None:
    """In place, until it is over or Ctrl-C is pressed."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from tradewind.base import clock

    out = render.console()
    with suppress(KeyboardInterrupt), Live(console=out, auto_refresh=False) as live:
        while True:
            try:
                views = look()
                parts = [part for view in views for part in (view.drawn(out.width), Text(""))]
                shown = Group(*parts) if views else Text("no runs are running")
            except NotFound:
                raise
            except TradewindError as error:  # a store that does not answer: the next look may
                views, shown = [], Text(error.message)
            live.update(shown, refresh=True)
            if views and all(view.over for view in views):
                return
            clock.sleep(every_s)
