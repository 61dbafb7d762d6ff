"""`tradewind export`: a plan as files that do the same without us."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.export.asked import Asked
    from tradewind.export.exported import Exported
    from tradewind.export.folder import Change
    from tradewind.export.reading import Where


@click.command(
    "export",
    cls=Command,
    examples="""
    # what there is
    tradewind export --list
    # the commands of a plan, for one machine
    tradewind export script work.yaml --out deploy
    # planned for one cloud first
    tradewind export terraform w.yaml --provider aws --out tf
    """,
)
@click.argument("kind", metavar="[KIND]", required=False)
@click.argument("file", metavar="[WORKLOAD|PLAN]", required=False)
@click.option("--out", metavar="DIR", help="Folder to write into.")
@click.option(
    "--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the kind. Repeatable."
)
@click.option(
    "--folder",
    metavar="DIR",
    help="Folder of the job, whose requirements are looked at. Default: that of the file.",
)
@click.option(
    "--provider", multiple=True, metavar="GLOB", help="Plan only these. Repeatable, or with commas."
)
@click.option("--region", multiple=True, metavar="GLOB", help="Plan only these regions.")
@click.option("--market", multiple=True, metavar="NAME", help="Plan only spot, or on_demand.")
@click.option("--accelerator", multiple=True, metavar="NAME", help="Plan only these accelerators.")
@click.option("--max-nodes", metavar="N", help="Plan no more machines than these.")
@click.option("--overwrite", is_flag=True, help="Replace also what was edited by hand.")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit code 1 if something would be written."
)
@click.option("--list", "listed", is_flag=True, help="The kinds and their settings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    kind: str | None,
    file: str | None,
    out: str | None,
    given: tuple[str, ...],
    folder: str | None,
    provider: tuple[str, ...],
    region: tuple[str, ...],
    market: tuple[str, ...],
    accelerator: tuple[str, ...],
    max_nodes: str | None,
    overwrite: bool,
    check: bool,
    listed: bool,
    as_json: bool,
) -> None:
    """Write a plan as files that do the same without us: images, manifests, scripts.

    Of a workload file, which is planned first, or of a plan that `tradewind plan` has saved (--out)
    or printed (--json). A second export into the same folder shows what differs, and keeps what
    was edited by hand.
    """
    if listed:
        _list(as_json)
        return
    if kind is None or file is None or out is None:
        raise click.UsageError("what, of which file, into which folder? KIND WORKLOAD --out DIR")
    if overwrite and check:
        raise click.UsageError("--overwrite and --check exclude each other")
    from tradewind.export import folder as folders
    from tradewind.export import making, reading, registry

    registry.kind(kind)  # before anything is planned
    settings = _settings(given)
    said = [kind, file, "--out", out]
    said += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    said += ["--folder", folder] if folder is not None else []
    limits = {
        "provider": provider, "region": region, "market": market, "accelerator": accelerator,
        "max_nodes": max_nodes,
    }  # fmt: skip
    said += _again(limits)
    where = Path(folder) if folder is not None else Path(file).absolute().parent
    asked = _asked(file, limits, reading.again(said), reading.Where(where, Path(out), Path(file)))
    exported = making.made(kind, asked, settings)
    changes = folders.compared(Path(out), kind, exported)
    if not check:
        folders.write(Path(out), kind, changes, overwrite=overwrite)
    _show(out, exported, changes, overwrite=overwrite, check=check, as_json=as_json)
    if check and any(change.what != folders.SAME for change in changes):
        raise click.exceptions.Exit(1)


def _settings(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"--set {text}: it is NAME=VALUE")
        if name in found:
            raise click.UsageError(f"--set {name} is there twice")
        found[name] = value
    return found


def _again(limits: dict[str, Any]) -> list[str]:
    """As options."""
    return [
        part
        for name, value in limits.items()
        for each in (value if isinstance(value, tuple) else (value,))
        if each is not None
        for part in (f"--{name.replace('_', '-')}", each)
    ]


def _asked(file: str, limits: dict[str, Any], again: str, where: Where) -> Asked:
    from tradewind import catalog as catalogs
    from tradewind.export import reading
    from tradewind.workload import files

    catalog = catalogs.load()
    text = files.text(file)
    if reading.is_saved(text):
        if given := _again(limits):
            raise click.UsageError(f"{file} is a plan already: {given[0]} is for workload files")
        return reading.of_saved(text, file, catalog, again, where)
    from tradewind.base import clock
    from tradewind.cli.plan.plan import constants_of, points_of, to_carry, workload_of

    now = clock.now()
    work = to_carry(workload_of(file, limits, catalog))
    with render.busy("planning"):
        if work.serve is not None:
            from tradewind.planning.serving.planner import Planner as Serving

            served = Serving(work, catalog, now=now, own=points_of(work)).plans()
            return reading.of_serving(served, catalog, again, where)
        from tradewind.api import planned
        from tradewind.planning.planner import Planner

        rates = planned.rates()
        planner = Planner(work, catalog, now=now, constants=constants_of(work), rates=rates)
        plans = planner.plans()
        return reading.of_plans(plans, catalog, again, where)


def _show(
    out: str,
    exported: Exported,
    changes: Sequence[Change],
    *,
    overwrite: bool,
    check: bool,
    as_json: bool,
) -> None:
    from tradewind.export import folder as folders

    kept = [c.path for c in changes if c.what == folders.EDITED and not overwrite]
    if as_json:
        rows = [{"path": c.path, "what": c.what, "kept": c.path in kept} for c in changes]
        render.print_json({"out": out, "files": rows, "notes": list(exported.notes)})
        return
    words = {
        folders.NEW: "written",
        folders.SAME: "the same",
        folders.CHANGED: "renewed",
        folders.GONE: "removed",
        folders.EDITED: "overwritten" if overwrite else "kept as edited",
    }
    would = {**words, folders.NEW: "would be written", folders.CHANGED: "would be renewed",
             folders.GONE: "would be removed"}  # fmt: skip
    for change in changes:
        if change.what in (folders.CHANGED, folders.EDITED, folders.GONE):
            _show_diff(change)
    for change in changes:
        click.echo(f"{(would if check else words)[change.what]:<16}{out}/{change.path}")
    if kept:
        render.note("--overwrite replaces what was edited by hand")
    for note in exported.notes:
        render.note(note)


def _show_diff(change: Change) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in change.diff.splitlines():
        click.secho(line, fg=colours.get(line[:1]))


def _list(as_json: bool) -> None:
    from tradewind.export import registry

    kinds = {name: registry.kind(name) for name in registry.KINDS}
    if as_json:
        render.print_json(
            [
                {
                    "kind": name,
                    "words": registry.KINDS[name],
                    "takes": list(kind.TAKES),
                    "settings": {
                        s.name: {"words": s.words, "choices": list(s.choices)}
                        for s in kind.SETTINGS
                    },
                }
                for name, kind in kinds.items()
            ]
        )
        return
    for name, kind in kinds.items():
        click.secho(f"{name}", bold=True, nl=False)
        click.echo(f"  of {' and '.join(kind.TAKES)}")
        render.paragraph(f"  {registry.KINDS[name]}", indent="  ")
        for each in kind.SETTINGS:
            values = "|".join(each.choices) if each.choices else each.example
            render.paragraph(f"    --set {each.name}={values}  {each.words}", indent=" " * 8)
