"""`tradewind image`: images of exported Dockerfiles, built and pushed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tradewind.cli import render
from tradewind.cli.base import Group

_TOOLS = ("buildah", "podman", "docker")  # as export.building has them
_TOOL = click.option(
    "--tool", type=click.Choice(_TOOLS), help="Default: the first of these that is there."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    "image",
    cls=Group,
    examples="""
    # build what was exported, from the job's folder
    tradewind image build . --file image/Dockerfile
    # and hand it to a registry
    tradewind image push job:1a2b3c4d ghcr.io/me/job
    """,
)
def command() -> None:
    """Build images of exported Dockerfiles, and push them to a registry."""


@command.command(
    "build",
    examples="""
    # of what was exported into image/
    tradewind image build . --file image/Dockerfile
    """,
)
@click.argument("folder", metavar="JOB_FOLDER")
@click.option(
    "--file", "dockerfile", metavar="FILE", help="The Dockerfile. Default: JOB_FOLDER/Dockerfile."
)
@click.option("--name", metavar="NAME", help="Of the image. Default: that of the folder.")
@click.option("--platform", metavar="OS/ARCH", default="", help="Such as linux/arm64.")
@click.option(
    "--build-arg", "given", multiple=True, metavar="NAME=VALUE", help="As BASE=…. Repeatable."
)
@_TOOL
@_JSON
def build(
    folder: str,
    dockerfile: str | None,
    name: str | None,
    platform: str,
    given: Sequence[str],
    tool: str | None,
    as_json: bool,
) -> None:
    """Build an image, tagged by what it is made from: the same is not built again."""
    from tradewind.base.units import format_bytes
    from tradewind.export import building

    arguments = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.UsageError(f"--build-arg {text}: it is NAME=VALUE")
        arguments[key] = value
    context = Path(folder)
    built = building.build(
        Path(dockerfile) if dockerfile else context / "Dockerfile",
        context,
        name or context.absolute().name.lower(),
        arguments,
        named=tool,
        platform=platform,
    )
    if as_json:
        render.print_json(
            {"image": built.image, "tool": built.tool, "size_bytes": built.size_bytes,
             "fetch_s_at_least": built.fetch_s, "fresh": built.fresh}
        )  # fmt: skip
        return
    click.echo(f"{built.image}  {'built' if built.fresh else 'there already'}, by {built.tool}")
    click.echo(
        f"  {format_bytes(built.size_bytes)} unpacked: a cold start reads that much, which takes"
        f" {built.fetch_s:.1f} s at the least at {building.GBPS} Gbit/s"
    )


@command.command(
    "push",
    examples="""
    # the reference with its digest is for run.image
    tradewind image push job:1a2b3c4d ghcr.io/me/job:1
    """,
)
@click.argument("image", metavar="IMAGE")
@click.argument("to", metavar="REGISTRY/NAME[:TAG]")
@click.option("--insecure", is_flag=True, help="A registry without TLS, on this computer.")
@_TOOL
@_JSON
def push(image: str, to: str, insecure: bool, tool: str | None, as_json: bool) -> None:
    """Push an image, and print the reference with its digest, for `run.image`."""
    from tradewind.export import building

    reference = building.push(image, to, named=tool, insecure=insecure)
    if as_json:
        render.print_json({"image": reference})
        return
    click.echo(reference)


@command.command(
    "renew",
    examples="""
    # which PyTorch, engines and bases there are today
    tradewind image renew
    # only say what would change
    tradewind image renew --dry-run
    """,
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
@_JSON
def renew(dry_run: bool, as_json: bool) -> None:
    """Renew the table of images: versions of PyTorch and of engines, digests of bases.

    From PyPI, PyTorch's index of wheels and the bases' registries, into a table of yours, which
    exports then take."""
    from msgspec import json

    from tradewind.base import clock, ownfiles
    from tradewind.export import images, renewing

    known = images.table()
    with render.busy("asking PyPI, PyTorch and the registries"):
        renewal = renewing.Renewal(known)
        table = renewal.table(clock.now().date().isoformat())
    changed = renewing.changes(known, table)
    path = ownfiles.home() / images.OWN
    if not dry_run:
        ownfiles.make_folder(path.parent)
        ownfiles.replace(path, json.format(json.encode(table), indent=2))
    if as_json:
        render.print_json(
            {"as_of": table.as_of, "changes": changed, "notes": renewal.notes,
             "path": None if dry_run else str(path)}
        )  # fmt: skip
        return
    for each in changed:
        click.echo(each)
    if not changed:
        click.echo(f"nothing has changed since {known.as_of}")
    for each in renewal.notes:
        render.note(each)
    if not dry_run:
        click.echo(f"written: {path}")
