"""`tradewind init`: where runs will live, tried before it is trusted."""

from __future__ import annotations

from dataclasses import asdict

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "init",
    cls=Command,
    examples="""
    # try a bucket, and keep runs there from now on
    tradewind init s3://my-bucket/tradewind
    # is the store that serves now to be trusted?
    tradewind init
    """,
)
@click.argument("url", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(url: str | None, as_json: bool) -> None:
    """Choose the store for runs, and check that it is safe (conditional writes, listing).

    URL is a folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix. Without one,
    the current store is checked."""
    from tradewind import store
    from tradewind.base import clock
    from tradewind.base.errors import InvalidValue, SourceFailed
    from tradewind.store.probe import probe

    opened = store.open(url)
    with render.busy("trying the store"):
        checks = probe(opened, clock.new_id("probe"))
    if as_json:
        render.print_json({"store": opened.url, "checks": [asdict(check) for check in checks]})
    else:
        click.echo(opened.url)
        for check in checks:
            mark = "ok  " if check.kept else "BAD "
            click.secho(f"  {mark}", fg="green" if check.kept else "red", nl=False)
            first, *later = render.wrapped(
                f"{'':6}{check.promise:<28} {check.saw}", indent=" " * 35
            )
            click.echo("\n".join([first[6:], *later]))
    broken = [check for check in checks if not check.kept]
    if broken:
        raise SourceFailed(
            f"{opened.url} cannot hold runs: {broken[0].saw}",
            hint="two controllers could both believe that they own a run there; choose another"
            " store, or ask its maker about conditional writes (If-None-Match)",
        )
    if url is not None:
        if opened.url.startswith("memory:"):
            raise InvalidValue(
                "a store in memory ends with the process that has it",
                hint="name a folder or a bucket",
            )
        path = store.remember(opened.url)
        render.remark(f"runs are kept there from now on ({path})")
