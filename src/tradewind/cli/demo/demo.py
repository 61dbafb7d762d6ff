"""`tradewind demo`: plan, run, interrupt, kill, resume, prove, account; on this computer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Group
from tradewind.cli.demo import demostory

if TYPE_CHECKING:
    from tradewind.demo.alone import Alone
    from tradewind.model.plan import Plan
    from tradewind.report.figures import Report


_WHY = (
    "A start takes seconds here, nearly an hour of that world, and every zone went away: it is"
    " harder than clouds are. On measured traces the same policy pays 4.5 % more than perfect"
    " foresight (tradewind bench spot, docs/benchmarks.md)."
)


@click.group(
    "demo",
    cls=Group,
    invoke_without_command=True,
    examples="""
    # all of it, and pages to look at in ./demo
    tradewind demo
    # keep the run, to look around in
    tradewind demo --keep
    # a service instead: load, more replicas, a preemption
    tradewind demo serve
    """,
)
@click.option(
    "--folder",
    default="demo",
    metavar="DIR",
    show_default=True,
    help="Where report.html and plan.html are written.",
)
@click.option(
    "--steps",
    type=click.IntRange(400, 100_000),
    default=1000,
    show_default=True,
    help="How long the training is.",
)
@click.option("--keep", is_flag=True, help="Keep the run, to look around in.")
@click.pass_context
def command(context: click.Context, folder: str, steps: int, keep: bool) -> None:
    """Plan a training, run a small one through interruptions and kills, prove that nothing was
    lost, and account for it.

    Two to three minutes, no cloud account, no network. It trains a small GPT with PyTorch in two
    processes, on machines that are processes of this computer."""
    if context.invoked_subcommand is not None:
        return
    from tradewind.base.errors import NoAccess

    _check()
    pages = Path(folder)
    try:
        pages.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoAccess(
            f"{folder} cannot be written: {error.strerror or error}", hint="--folder DIR"
        ) from None
    with _own_home(keep) as home:
        _journey(home, pages, steps)
    if keep:
        click.echo(f"\nTo look around: TRADEWIND_HOME={home} {_own_name()} show demo")


@command.command(
    "serve",
    examples="""
    tradewind demo serve
    """,
)
def serve() -> None:
    """Plan a service, bring two replicas up, load them until there are more, preempt one, and
    account for it.

    About three minutes, no cloud account, no network. It needs HAProxy; what is served is a small
    model with random weights."""
    from tradewind.cli.demo import demoserve
    from tradewind.providers.local.processes import need_linux

    need_linux()
    with _own_home(keep=False) as home:
        demoserve.journey(home)


def _own_name() -> str:
    """As it can be typed here: `make demo` installs it where no shell looks."""
    found = shutil.which("tradewind", path=os.environ.get("PATH", ""))
    beside = Path(sys.executable).with_name("tradewind")
    return "tradewind" if found or not beside.exists() else str(_short(beside))


def _check() -> None:
    from importlib.util import find_spec

    from tradewind.base.errors import MissingExtra
    from tradewind.providers.local.processes import need_linux

    need_linux()
    if find_spec("torch") is None:
        raise MissingExtra(
            "the demo trains with PyTorch, which is not installed",
            hint="pip install 'tradewind[torch]'; without a GPU the smaller build is enough:"
            " add --extra-index-url https://download.pytorch.org/whl/cpu",
        )


@contextmanager
def _own_home(keep: bool) -> Iterator[Path]:
    """Nobody's own runs, settings or prices are touched."""
    from tradewind.upkeep import demos

    for each in demos.left():
        demos.remove(each)
        ran = f"{len(each.pids)} processes ended, " if each.pids else ""
        click.echo(f"A demo that was killed had left {each.home}: {ran}removed.")
    before = dict(os.environ)
    try:
        with demos.lived_in(keep=keep) as home:
            for name in [name for name in os.environ if name.startswith("TRADEWIND_")]:
                if name not in ("TRADEWIND_NOW", "TRADEWIND_DEBUG"):
                    del os.environ[name]
            os.environ["TRADEWIND_HOME"] = str(home)
            os.environ["OMP_NUM_THREADS"] = "1"
            (home / "temporary").mkdir()
            os.environ["TMPDIR"] = str(home / "temporary")  # torchrun leaves folders when killed
            # torchrun stands beside the Python that runs us, whatever the shell would find.
            beside = str(Path(sys.executable).parent)
            os.environ["PATH"] = os.pathsep.join([beside, os.environ["PATH"]])
            yield home
    finally:
        os.environ.clear()
        os.environ.update(before)


def _journey(home: Path, pages: Path, steps: int) -> None:
    from tradewind import catalog as catalogs
    from tradewind import store as stores
    from tradewind.demo import alone, jobs, world
    from tradewind.demo.rehearsal import Rehearsal

    _heading(1, "A 1.3B model on 26B tokens, done in three days: what should be rented?")
    plans = _plan(pages)

    _heading(2, "A small GPT, trained once without interruption, to compare with")
    click.echo(f"$ {alone.COMMAND.format(steps=steps)}")
    job = jobs.copied("tiny-gpt", home / "alone")
    with demostory.live() as live:
        single = alone.train(
            job, steps, dict(os.environ), lambda step: live(f"step {step:,} of {steps:,}")
        )
    click.echo(
        f"Started in {single.start_s:.1f} s, trained in {single.work_s:.1f} s."
        f" Its weights: {single.weights}"
    )

    made = world.made(plans, catalogs.load(), single, steps)
    _heading(3, "The same training on machines that are interrupted")
    demostory.introduce(made, single)
    store = stores.open()
    with Rehearsal(store, made, jobs.copied("tiny-gpt", home / "job"), home / "watch.log") as run:
        with demostory.live() as live:
            demostory.watch(run, live, steps)
        report = run.report()
        weights = run.weights()
    _heading(4, "Is it the same model?")
    same = _compare(single, weights)
    _heading(5, "What did it cost?")
    _account(report, pages)
    if not same or report.state != "succeeded":
        from tradewind.base.errors import TradewindError

        raise TradewindError(
            "the demo did not end as it should",
            hint="please report it, with the output above and what --keep keeps",
        )


def _heading(number: int, text: str) -> None:
    click.echo()
    click.secho(f"{number}  {text}", bold=True)
    click.echo()


def _plan(pages: Path) -> list[Plan]:
    """Shows it, and gives the plans, the best first, and then those on spot."""
    from tradewind import catalog as catalogs
    from tradewind.api import submit
    from tradewind.api.planned import on_spot
    from tradewind.cli.plan import plan as planning
    from tradewind.demo import jobs

    file = jobs.example("pretrain-1.3b") / "work.yaml"
    page = pages / "plan.html"
    click.echo(f"$ tradewind plan {_short(file)} --html {page}")
    planning.command.main([str(file), "--html", str(page)], standalone_mode=False)
    wanted = submit.wanted(file)
    return [wanted.plan, *wanted.others, *on_spot(wanted.workload, catalogs.load()).plans]


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _compare(alone: Alone, weights: str) -> bool:
    click.echo(f"  without interruption  {alone.weights}")
    click.echo(f"  through all of that   {weights or 'none'}")
    if weights == alone.weights:
        click.secho("  Yes: every weight is equal, bit for bit.", fg="green")
        return True
    click.secho("  No: they differ.", fg="red")
    return False


def _account(report: Report, pages: Path) -> None:
    from tradewind.base.ownfiles import replace
    from tradewind.cli.runs.report import show
    from tradewind.report.words import money
    from tradewind.web import report_page

    show(report, events=False)
    page = pages / "report.html"
    replace(page, report_page.render(report).encode("utf-8", "replace"), public=True)
    click.echo()
    purse = report.money
    rows = (
        ("paid", purse.micros),
        ("on demand alone it would have been", purse.alone),
        ("with perfect foresight", purse.foresight),
    )
    for what, micros in rows:
        click.echo(f"  {what:<36}{'not known' if micros is None else money(micros):>10}")
    click.echo()
    render.paragraph(_WHY)
    click.echo(f"\nOpen {page} in a browser: the whole story, one file. Then {pages}/plan.html.")
    click.echo("Next: make your own training resumable, docs/torch.md; all commands: tradewind -h")
