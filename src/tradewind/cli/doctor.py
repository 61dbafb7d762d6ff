"""`tradewind doctor`: is everything that runs stand on as it should be?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.errors import TradewindError

if TYPE_CHECKING:
    from tradewind.model.finding import Finding

_COLOURS = {"ok": "green", "warning": "yellow", "broken": "red"}


@click.command(
    "doctor",
    cls=Command,
    examples="""
    # everything: what is broken, what is missing for what
    tradewind doctor
    # only what is installed, without asking the store
    tradewind doctor parts
    """,
)
@click.option("--store", "store_url", metavar="URL", help="Where the runs live.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(store_url: str | None, as_json: bool) -> None:
    """Check the store, credentials, clocks, this computer, and whether anything was left behind."""
    from msgspec import to_builtins

    from tradewind.api import fleet
    from tradewind.upkeep.doctor import examine

    with render.busy("looking"):
        found = examine(store_url, fleet.providers)
    broken = [finding for finding in found if finding.level == "broken"]
    warnings = [finding for finding in found if finding.level == "warning"]
    if as_json:
        counts = {"broken": len(broken), "warnings": len(warnings)}
        render.print_json(counts | {"findings": [to_builtins(each) for each in found]})
    else:
        for finding in found:
            _show(finding)
        if not broken:
            words = render.count(len(warnings), "warning") if warnings else "all is well"
            click.echo(f"\n{words}")
    if broken:
        raise TradewindError(
            f"{render.count(len(broken), 'check is', 'checks are')} broken: {broken[0].what}",
            hint=broken[0].todo or None,
        )


def _show(finding: Finding) -> None:
    click.secho(f"{finding.level:<8}", fg=_COLOURS[finding.level], nl=False)
    click.echo(f" {finding.about:<12} {finding.what}")
    for label, words in (("why", finding.why), ("do", finding.todo)):
        if words:
            render.paragraph(f"{'':22}{label + ':':<4} {words}", indent=" " * 27, dim=True)
