"""`tradewind plan`: the cheapest way to finish in time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind import workload
from tradewind.base import clock
from tradewind.base.errors import BadWorkload, InvalidValue, NotFound, TradewindError
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.workload import reader
from tradewind.workload.kinds import is_path

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.api.rented import On
    from tradewind.catalog import Catalog
    from tradewind.cli.plan.plantype import Named
    from tradewind.estimate.constants import Constants
    from tradewind.estimate.serving.points import Points
    from tradewind.model import Workload
    from tradewind.model.job import Job
    from tradewind.model.plan import Plan, Plans
    from tradewind.planning.planner import Planner

# What an option says, as a field of the workload file.
_FIELDS = {
    "model": "train.model",
    "tokens": "train.tokens",
    "samples": "train.samples",
    "steps": "train.steps",
    "epochs": "train.epochs",
    "dataset": "train.dataset",
    "seq": "train.sequence",
    "global_batch": "train.global_batch",
    "precision": "train.precision",
    "stack": "train.stack",
    "optimizer": "train.optimizer",
    "lora": "train.lora",
    "qlora": "train.qlora",
    "hours": "work.hours",
    "on": "work.on",
    "data_uri": "data.uri",
    "data_size": "data.size",
    "data_region": "data.region",
    "deadline": "limits.deadline",
    "late": "limits.late",
    "confidence": "limits.confidence",
    "budget": "limits.budget",
    "provider": "limits.providers",
    "exclude": "limits.exclude",
    "region": "limits.regions",
    "market": "limits.markets",
    "accelerator": "limits.accelerators",
    "max_nodes": "limits.max_nodes",
    "max_accelerators": "limits.max_accelerators",
    "commit": "limits.commit",
    "assume_capacity": "limits.assume_capacity",
    "carbon": "limits.carbon",
}
_LISTS = ("provider", "exclude", "region", "market", "accelerator", "assume_capacity")
_OPTIONS = {field: f"--{name.replace('_', '-')}" for name, field in _FIELDS.items()}
_NOUN = re.compile(r"[-_](?=(?:token|sample|sequence|image|example|step)s?$)", re.IGNORECASE)


def of_the_work(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that are fields of the workload file, in the order of its sections."""
    many = " Repeatable, or with commas."
    for name, metavar, words in reversed(
        (
            ("model", "MODEL", "A known name, a config.json, a shape or a profile."),
            ("tokens", "N", "Tokens to train on, e.g. 10B."),
            ("samples", "N", "Or samples (sequences, images)."),
            ("steps", "N", "Or optimizer steps."),
            ("epochs", "N", "Or passes over --dataset."),
            ("dataset", "N", "Size of the dataset, e.g. '1.28M samples' or 26B-tokens."),
            ("seq", "N", "Tokens in a sequence."),
            ("global-batch", "N", "Samples in an optimizer step, or tokens: 512, 4M-tokens."),
            ("precision", "NAME", "bf16, fp16, fp8, mxfp8, fp32 or pure-bf16. Default: bf16."),
            ("stack", "NAME", "The software that trains, e.g. fsdp-compiled or megatron."),
            ("optimizer", "NAME", "Default: adamw."),
            ("lora", "RANK", "Train adapters of that rank only."),
            ("qlora", "RANK", "The same, on weights of 4 bits."),
            ("hours", "N", "Measured work instead of a model: hours that it takes --on …"),
            ("on", "ACCELERATORS", "… these accelerators, e.g. 1xA100-80GB."),
            ("data-uri", "ADDRESS", "Where the data lies, e.g. s3://bucket/folder."),
            ("data-size", "SIZE", "How much, e.g. 40GB."),
            ("data-region", "PLACE", "In which region, e.g. aws/eu-west-1."),
            ("deadline", "TIME", "Done in 48h, or by 2026-12-01T08:00+01:00."),
            ("late", "MONEY/h", "What an hour past it costs you, e.g. '$20/h'. Default: nothing."),
            ("confidence", "SHARE", "Wanted chance of keeping deadline and budget. Default: 90%."),
            ("budget", "MONEY", "Maximum cost, e.g. '$2000'."),
            ("provider", "GLOB", f"Only these providers.{many}"),
            ("exclude", "GLOB", f"Not these providers or regions.{many}"),
            ("region", "GLOB", f"Only there: EU, US, Asia, DE; 'eu-*', aws/eu-west-1.{many}"),
            ("market", "NAME", f"spot, on_demand, reserved.{many}"),
            ("accelerator", "NAME", f"Only these accelerators.{many}"),
            ("max-nodes", "N", "Most machines at once."),
            ("max-accelerators", "N", "Most accelerators at once, of all machines together."),
            ("commit", "TERM", "Let commitments of 1y, or up to 3y, compete too."),
            (
                "assume-capacity",
                "SHARE",
                f"Chance to have machines: 90%, aws=90%, p5.48xlarge=50%.{many}",
            ),
            ("carbon", "LIMIT", "At most so much CO2e: 50kg; or a price in the ranking: '$100/t'."),
        )
    ):
        plain = name.replace("-", "_")
        option = click.option(
            f"--{name}", plain, metavar=metavar, help=words, multiple=plain in _LISTS
        )
        function = option(function)
    return function


@click.command(
    "plan",
    cls=Command,
    examples="""
    # the cheapest options for the work in the file
    tradewind plan work.yaml
    # without a file
    tradewind plan --model llama-3.1-8b --tokens 100M \\
        --seq 4096 --global-batch 64 --deadline 48h
    # why not that machine? what would do instead of it?
    tradewind plan work.yaml --why p5.48xlarge
    """,
)
@click.argument("file", metavar="[WORKLOAD.yaml]", required=False)
@of_the_work
@click.option("--top", type=click.IntRange(1, 100), default=5, show_default=True, help="Plans.")
@click.option(
    "--why", metavar="TYPE", help="Why this type was chosen or rejected, and its options."
)
@click.option("--all-losers", is_flag=True, help="Every rejected type, and why.")
@click.option(
    "--instead-of", metavar="TYPE", help="What does the same in no more time for less money?"
)
@click.option("--nodes", type=click.IntRange(min=1), help="How many of --instead-of.")
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Weigh what clusters and machines of yours that are set up for it have now, too, and"
    " what machines pay to keep checkpoints there.",
)
@click.option("--out", metavar="FILE", help="Save the best plan, for `tradewind run`.")
@click.option("--html", metavar="FILE", help="Write a page about the plans.")
@click.option("--plot", metavar="FILE", help="Draw time against money into FILE.png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str | None,
    top: int,
    why: str | None,
    all_losers: bool,
    instead_of: str | None,
    nodes: int | None,
    store_url: str | None,
    out: str | None,
    html: str | None,
    plot: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """The cheapest way to finish in time: where, on what, how, for how much.

    What is to be done stands in WORKLOAD.yaml (docs/workload.md), in options, or both: then options
    stand over the file. Every offer, number of machines, layout and market is weighed.
    """
    if nodes is not None and instead_of is None:
        raise click.UsageError("--nodes says how many of --instead-of; there is no --instead-of")
    if sum((why is not None, all_losers, instead_of is not None)) > 1:
        raise click.UsageError("--why, --all-losers and --instead-of exclude each other")
    if plot is not None and not plot.lower().endswith((".png", ".svg")):
        raise click.UsageError(f"--plot {plot}: a picture is FILE.png or FILE.svg")
    now = clock.now()
    catalog = catalogs.load()
    on = None
    if store_url is not None:
        on, catalog = _with_own(catalog, store_url, now)
    work = workload_of(file, given, catalog)

    if work.serve is not None:
        _serve(work, catalog, all_losers, html, as_json, {
            "--why": why, "--instead-of": instead_of, "--out": out, "--plot": plot,
        })  # fmt: skip
        return

    if work.machines is not None:
        _exact(work, catalog, top, out, as_json, {
            "--why": why, "--instead-of": instead_of, "--html": html, "--plot": plot,
            "--all-losers": "" if all_losers else None,
        })  # fmt: skip
        return

    from tradewind.api import planned
    from tradewind.cli.plan import plantype, planview
    from tradewind.planning.planner import Planner
    from tradewind.planning.words import what_binds

    rates = planned.rates(on)
    planner = Planner(work, catalog, now=now, constants=constants_of(work), rates=rates)
    if instead_of is not None:
        _instead_of(planner, catalog, instead_of, nodes, as_json)
        return
    named = None if why is None else plantype.types_called(catalog, why)
    with render.busy("weighing"):
        plans = planner.plans(closer=html is not None or plot is not None, top=top)
    _write(plans, out, html, plot)
    if named:
        plantype.why(plans, named, _ways(planner, named), planner.links(named), as_json)
        return
    if as_json:
        from tradewind.planning import document

        render.print_json(document.to_json(plans))
    elif all_losers:
        planview.losers(plans)
    else:
        planview.show(plans)
        if file is not None and work.run is not None:
            _not_sent(Path(file).absolute().parent, work.run)
    if plans.best is None:
        raise NotFound("no plan keeps every limit", hint=what_binds(plans))


def _with_own(catalog: Catalog, store_url: str, now: datetime) -> tuple[On, Catalog]:
    """And what the accounts that are set up for a store have besides, such as nodes of clusters."""
    from tradewind import store as stores
    from tradewind.api.rented import On

    on = On(stores.open(store_url))
    with render.busy("looking at what is set up"):
        found = on.catalog(catalog, now)
    for words in on.warnings:
        render.remark(f"warning: {words}")
    return on, found


def _exact(
    work: Workload, catalog: Catalog, top: int, out: str | None, as_json: bool,
    other: dict[str, str | None],
) -> None:  # fmt: skip
    """Machines that are named: where they are cheapest."""
    from tradewind.cli.plan import exactview
    from tradewind.planning import document, exact

    for option, value in other.items():
        if value is not None:
            raise InvalidValue(
                f"{option} is for machines that the plan chooses, and the workload names them",
                hint="`tradewind offers` and `tradewind compare` show others",
            )
    plans = exact.plans(work, catalog=catalog, now=clock.now())
    _write(plans, out, None, None)
    if as_json:
        render.print_json(document.to_json(plans))
    else:
        exactview.show(plans, top)


def _serve(
    work: Workload, catalog: Catalog, all_losers: bool, html: str | None, as_json: bool,
    other: dict[str, str | None],
) -> None:  # fmt: skip
    """A model to be served: replicas instead of a run."""
    from tradewind.cli.plan import serveview
    from tradewind.planning.serving import document
    from tradewind.planning.serving.planner import Planner as Serving

    for option, value in other.items():
        if value is not None:
            raise InvalidValue(
                f"{option} is for work that ends, and the workload is served",
                hint="--json, --html or --all-losers; docs/serving-plan.md",
            )
    if work.limits.carbon is not None:
        raise InvalidValue(
            "carbon is for work that ends, and the workload is served", hint="leave it out"
        )
    with render.busy("weighing"):
        planner = Serving(work, catalog, now=clock.now(), own=points_of(work))
        plans = planner.plans(changed=html is not None)
    if html is not None:
        from tradewind.catalog.files import replace as write
        from tradewind.web import serve_page

        write(Path(html), serve_page.render(plans).encode())
        render.remark(f"written: {html}")
    if as_json:
        render.print_json(document.to_json(plans))
    elif all_losers:
        serveview.losers(plans)
    else:
        serveview.show(plans)
    if plans.best is None:
        raise NotFound(
            "no replicas keep every target and limit",
            hint=serveview.hint(plans),
        )


def points_of(work: Workload) -> Points | None:
    """Measured on a stack of one's own, where the workload names them."""
    if work.serve is None or work.serve.measured is None:
        return None
    from tradewind.cli.plan.serving import own_points
    from tradewind.planning.serving.planner import model_of

    return own_points(Path(work.serve.measured).expanduser(), model_of(work.serve))


def _not_sent(folder: Path, job: Job) -> None:
    from tradewind.api import submit

    with suppress(TradewindError):  # what is wrong with the folder, `run` tells
        found = submit.not_sent(folder, job.include, job.outputs)
        if found is not None:
            render.note(f"Not sent with the job, because git ignores them: {found[0]}.")
            render.note(f"  {found[1]}")


def constants_of(work: Workload) -> Constants | None:
    """Of the estimate, where the workload names measurements of one's own."""
    if work.train is None or work.train.measured is None:
        return None
    from tradewind.cli.plan.estimate import sharpened

    return sharpened(work.train.measured)[0]


# -- what is to be done --------------------------------------------------------------------------


def workload_of(file: str | None, given: dict[str, Any], catalog: Catalog) -> Workload:
    flags = _flags(given, "" if file is None else str(Path(file).parent))
    known = workload.known_names(catalog)
    if file is None and not flags:
        raise InvalidValue(
            "what is to be done? There is neither a workload file nor an option",
            hint="tradewind plan work.yaml (docs/workload.md), or "
            "--model llama-3.1-8b --tokens 10B --seq 8192 --global-batch 512 --deadline 48h",
        )
    try:
        if file is None:
            return reader.read("{}", "options", now=clock.now(), known=known, flags=flags)
        return workload.load(file, now=clock.now(), known=known, flags=flags)
    except BadWorkload as error:
        raise _in_options(error, file) from None


def _flags(given: dict[str, Any], folder: str) -> reader.Flags:
    flags: dict[str, str | list[str]] = {}
    for name, value in given.items():
        if name in _LISTS:
            parts = [part.strip() for text in value for part in text.split(",")]
            if value:
                flags[_FIELDS[name]] = parts
        elif value is not None:
            text = _NOUN.sub(" ", value)
            if name == "model" and folder not in ("", ".") and is_path(text):
                # It starts where the command runs, and not at the file's folder.
                text = str(Path(text).expanduser().absolute())
            flags[_FIELDS[name]] = text
    return flags


def _in_options(error: BadWorkload, file: str | None) -> BadWorkload:
    """What is wrong with an option is told by the option's name; it has no line."""
    if not error.problems:
        return error
    lines = []
    for line, text in error.problems:
        if line and file is not None:
            lines.append(f"{file} line {line}: {text}")
            continue
        path, _, rest = text.partition(": ")
        named = _OPTIONS.get(path.partition("[")[0])
        if path == "train" and "is missing" in rest:
            text = "what is to be done? --model with --tokens, or --hours with --on"
        lines.append(f"{named}: {rest}" if named else text)
    in_file = file is not None and any(line for line, _ in error.problems)
    hint = (
        error.hint if in_file else "see `tradewind plan --help`; docs/workload.md has every field"
    )
    return BadWorkload("\n".join(dict.fromkeys(lines)), hint=hint, problems=error.problems)


# -- what else is made of it ---------------------------------------------------------------------


def _write(plans: Plans, out: str | None, html: str | None, plot: str | None) -> None:
    """Files that were asked for. Where there is no plan, there is none to save."""
    from tradewind.catalog.files import replace as write

    if out is not None and plans.best is not None:
        from tradewind.planning import document

        work = to_carry(plans.workload)
        text = document.save(plans.best, work, made_at=plans.made_at)
        write(Path(out), text.encode())
        render.remark(f"saved: {out}")
    if html is not None:
        from tradewind.web import plan_page

        write(Path(html), plan_page.render(plans).encode())
        render.remark(f"written: {html}")
    if plot is not None:
        from tradewind.pictures import front

        front.draw(plans, Path(plot))
        render.remark(f"drawn: {plot}")


def to_carry(work: Workload) -> Workload:
    """With nothing that stands in a file elsewhere: a saved plan may be run in another folder."""
    from tradewind.estimate import models
    from tradewind.model.shape import Shape, Work

    train = work.train
    if train is None:
        return work
    if train.measured is not None:
        train = replace(train, measured=str(Path(train.measured).expanduser().absolute()))
    if isinstance(train.model, str) and is_path(train.model):
        model = models.load(train.model)
        path = str(Path(train.model).expanduser().absolute())
        train = replace(train, model=model if isinstance(model, Shape | Work) else path)
    return replace(work, train=train)


def _ways(planner: Planner, named: Sequence[Named]) -> list[Plan]:
    """All that types could do, the cheapest of each number of machines and market."""
    return [way for kind in named for way in planner.ways(kind.provider, kind.instance_type)]


def _instead_of(
    planner: Planner, catalog: Catalog, text: str, nodes: int | None, as_json: bool
) -> None:
    from tradewind.cli.plan import plantype
    from tradewind.planning.rightsize import instead_of

    named = plantype.types_called(catalog, text)
    theirs, better = instead_of(planner, named[0].instance_type, nodes)
    if as_json:
        from tradewind.planning.document import plan_json

        render.print_json({"named": plan_json(theirs), "instead": [plan_json(p) for p in better]})
        return
    plantype.instead(planner.workload, theirs, better)
