"""`tradewind run`: carry out a plan."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind import clock
from tradewind.cli import render
from tradewind.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tradewind.cli.fleet import ChaosWish
    from tradewind.model import Workload
    from tradewind.model.plan import Plan
    from tradewind.model.run import Spec
    from tradewind.store.base import Store

_MOST_LOCAL = 16


@click.command("run")
@click.argument("file", metavar="WORKLOAD|PLAN")
@click.option("--local", is_flag=True, help="On this computer, priced as the plan's machines.")
@click.option(
    "--nodes", type=click.IntRange(1, _MOST_LOCAL), help="With --local: so many machines."
)
@click.option("--folder", metavar="DIR", help="What the job needs. Default: the file's own folder.")
@click.option("--project", default="", metavar="NAME", help="Whose money it is.")
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="For reports. Repeatable.")
@click.option(
    "--chaos",
    metavar="LIFE",
    help="With --local: how long spot machines live.",
)
@click.option("--store", "store_url", metavar="URL", help="Where the run lives.")
@click.option("--detach", is_flag=True, help="Leave it to a process in the background.")
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the run's id and how it ended.")
def command(
    file: str,
    local: bool,
    nodes: int | None,
    folder: str | None,
    project: str,
    tags: tuple[str, ...],
    chaos: str | None,
    store_url: str | None,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Carry out a plan: rent, run, survive interruptions, finish, account for it.

    The plan is made from a workload file, or was saved by `tradewind plan --out`. Ctrl-C leaves the
    run to a process in the background, and says how to come back."""
    if not local and (nodes is not None or chaos is not None):
        raise click.UsageError("--nodes and --chaos go with --local")
    from tradewind import store as stores
    from tradewind.cli import fleet, follow
    from tradewind.units import parse_duration

    opened = stores.open(store_url)
    best, others, work = _planned(Path(file))
    spec = _spec(best, others, work, local=local, nodes=nodes, project=project, tags=tags)
    if not as_json:
        _show(best, spec)
    if not yes:
        _ask(spec)
    wish = None if chaos is None else fleet.ChaosWish(mean_life_s=parse_duration(chaos))
    run_id = submit(opened, spec, Path(folder) if folder else Path(file).absolute().parent, wish)
    if detach:
        follow.leave(opened, run_id, quiet=as_json)
        if as_json:
            render.print_json({"run": run_id, "store": opened.url, "outcome": None})
        return
    outcome = follow.until_over(opened, run_id, quiet=as_json)
    if as_json:
        render.print_json({"run": run_id, "store": opened.url, "outcome": outcome})
    if outcome != "succeeded":
        raise click.exceptions.Exit(1)


def submit(store: Store, spec: Spec, folder: Path, wish: ChaosWish | None = None) -> str:
    """Bundles the folder and records the run; returns its id."""
    from msgspec.structs import replace

    from tradewind import steps
    from tradewind.cli import fleet
    from tradewind.controller.drive import performer
    from tradewind.model import places
    from tradewind.supervisor import bundle

    run_id = clock.new_id(spec.name)
    with tempfile.TemporaryDirectory() as place:
        packed = bundle.pack(folder, Path(place) / "bundle.tar.gz")
        store.upload(places.bundle(run_id), packed.path)
    sent = {"bundle": places.bundle(run_id), "bundle_sha256": packed.sha256}
    spec = replace(spec, job=spec.job | sent)
    if wish is not None:
        fleet.wish_for(run_id, wish)
    loop = fleet.loop(store)
    if not steps.run(loop.controller.submit(run_id, spec), performer(store, {})):
        raise InvalidValue(
            f"submitting {run_id} took so long that it was given up", hint="run it again"
        )
    return run_id


def _planned(path: Path) -> tuple[Plan, Sequence[Plan], Workload]:
    """The best plan, others that keep the same limits, and what they are for."""
    from tradewind.plan import document

    text = _read(path)
    if text.lstrip().startswith("{"):
        saved = document.read(text, str(path))
        return saved.plan, (), saved.workload
    from tradewind import catalog as catalogs
    from tradewind import workload
    from tradewind.cli import planview
    from tradewind.plan.planner import Planner

    catalog = catalogs.load()
    now = clock.now()
    work = workload.load(str(path), now=now, known=workload.known_names(catalog))
    with render.busy("planning"):
        plans = Planner(work, catalog, now=now).plans()
    if plans.best is None:
        raise NotFound("no plan keeps every limit", hint=planview.what_binds(plans))
    return plans.best, [plan for plan in plans.plans if plan is not plans.best], work


def _read(path: Path) -> str:
    from tradewind.errors import NoAccess

    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InvalidValue(
            f"{path} is a folder", hint="name the workload or plan file; --folder is for the folder"
        ) from None
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path} is no text: {error}") from None


def _spec(
    best: Plan,
    others: Sequence[Plan],
    work: Workload,
    *,
    local: bool,
    nodes: int | None,
    project: str,
    tags: Sequence[str],
) -> Spec:
    import getpass

    from tradewind.plan import ways

    if not local:
        raise InvalidValue(
            f"machines of {best.provider} cannot be rented from here yet",
            hint="--local carries the plan out on this computer, priced as its machines are",
        )
    made = ways.spec(
        best, work, clock.now(), others=others, project=project, user=getpass.getuser(),
        tags=_tags(tags),
    )  # fmt: skip
    return here(made, nodes)


def here(spec: Spec, nodes: int | None) -> Spec:
    """The same on this computer: each way keeps its price, and its place becomes a zone of ours."""
    from msgspec.structs import replace

    from tradewind.cli import fleet

    moved = []
    for way in spec.ways:
        many = nodes or way.nodes
        if many > _MOST_LOCAL:
            raise InvalidValue(
                f"the plan has {many} machines, too many for this computer",
                hint="--nodes 2 tries it with two",
            )
        moved.append(
            replace(
                way,
                provider="local",
                region=way.provider,
                zone=way.zone or way.region,
                nodes=many,
                start_s=2.0,
                facts=fleet.facts("local"),
            )
        )
    return replace(spec, ways=tuple(moved))


def _tags(tags: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in tags:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"--tag {text}: it is NAME=VALUE")
        found[name] = value
    return found


def _show(best: Plan, spec: Spec) -> None:
    from tradewind.cli import plantable

    click.echo(plantable.in_words(best))
    first = spec.ways[0]
    click.echo(f"  machines  {first.words}, and {len(spec.ways) - 1} other ways")
    click.echo(f"  command   {spec.job['command']}")


def _ask(spec: Spec) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: add --yes")
    if not click.confirm("Start?"):
        raise click.exceptions.Exit(0)
