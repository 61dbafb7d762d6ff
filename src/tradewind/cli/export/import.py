"""`tradewind import`: a workload file from a file of somebody else's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.export.foreign.found import Found

_KINDS = ("sky", "dstack", "sbatch", "dockerfile", "estimator")  # as export.foreign has them


@click.command(
    "import",
    cls=Command,
    examples="""
    # what was a task of SkyPilot
    tradewind import sky.yaml --out work.yaml
    # where the file does not say on what
    tradewind import Dockerfile --accelerator 8xH100
    """,
)
@click.argument("file", metavar="FILE")
@click.option("--from", "kind", type=click.Choice(_KINDS), help="Default: as the file looks.")
@click.option(
    "--accelerator", metavar="[N]xNAME", help="On what it runs, where the file does not say."
)
@click.option("--out", metavar="FILE", help="Default: printed.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def command(
    file: str, kind: str | None, accelerator: str | None, out: str | None, overwrite: bool
) -> None:
    """A workload file from a file of SkyPilot, dstack, Slurm, Docker or SageMaker.

    What could not be carried over is said on standard error."""
    from tradewind import catalog as catalogs
    from tradewind import workload
    from tradewind.base import plaintext
    from tradewind.base.errors import InvalidValue
    from tradewind.export import commented
    from tradewind.export.foreign import found as foreign
    from tradewind.export.foreign import kinds
    from tradewind.workload import files

    text = files.text(file)
    found = kinds.read(kind or kinds.guessed(file, text), text)
    catalog = catalogs.load()
    machines = _machines(catalog, found, accelerator)
    made = f"# Made of {plaintext.one_line(Path(file).name)} by `tradewind import`.\n"
    made += commented.text(foreign.document(found, machines))
    # What it says is as wrong here as there.
    workload.read(made, file, known=workload.known_names(catalog))
    if out is None:
        click.echo(made, nl=False)
    elif Path(out).exists() and not overwrite:
        raise InvalidValue(f"{out} is there already", hint="--overwrite, or another name")
    else:
        Path(out).write_text(made, "utf-8")
    for each in found.left:
        render.note(f"not carried over: {plaintext.one_line(each)}")


def _machines(catalog: Catalog, found: Found, named: str | None) -> dict[str, str]:
    """The machines that it names; empty where processors and memory are all that it asks for."""
    from tradewind.base.errors import NotFound

    if named is None and found.instance_type and not found.accelerator:
        if any(found.instance_type in catalog.instance_types(p) for p in catalog.providers):
            return {"type": found.instance_type}
        raise NotFound(
            f"what {found.instance_type} has is not known", hint="--accelerator NAME says it"
        )
    if named is None and not found.accelerator:
        if found.cpus or found.ram_gb:
            return {}
        raise NotFound("the file does not say on what it runs", hint="--accelerator 8xH100")
    match, _ = catalog.names.variant(named or found.accelerator)
    if len(match.names) > 1:
        others = ", ".join(match.names[1:])
        found.left.append(f"{found.accelerator or named} may also be {others}: --accelerator NAME")
    return {"gpus": f"{match.names[0]}:{int(match.count) if match.count else found.count}"}
