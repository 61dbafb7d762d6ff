"""`tradewind doctor`: is everything that runs stand on as it should be?"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.providers import registry
from tradewind.upkeep.about import ABOUT, HERE

if TYPE_CHECKING:
    from tradewind.model.finding import Finding

_COLOURS = {"ok": "green", "missing": "cyan", "warning": "yellow", "broken": "red"}


class _What(click.Choice[str]):
    """Says what was meant, where that can be guessed: the list is long."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        close = get_close_matches(str(value).lower(), self.choices, n=1)
        said = super().get_invalid_choice_message(value, ctx)
        return f"{said} Did you mean {close[0]}?" if close else said


@click.command(
    "doctor",
    cls=Command,
    examples="""
    # everything: what is broken, what is missing for what
    tradewind doctor
    # only what is installed, without asking the store
    tradewind doctor parts
    # could machines of a cloud be rented now?
    tradewind doctor aws
    """,
)
@click.argument("about", nargs=-1, type=_What((*ABOUT, registry.LOCAL)), metavar="[WHAT]...")
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(about: tuple[str, ...], store_url: str | None, as_json: bool) -> None:
    """Check this computer, the store, accounts and runs; what is installed; and whether machines or
    files were left behind.

    WHAT: computer, parts, gpus, prices, budgets, store, credentials, a cloud's name, clocks, runs,
    orphans; without it, all of them. The cloud "local" is computer, parts and gpus. "missing" marks
    an optional dependency that is not installed; it is not a warning."""
    from msgspec import to_builtins

    from tradewind.api import fleet
    from tradewind.upkeep.doctor import examine

    if registry.LOCAL in about:
        about = tuple(dict.fromkeys((*HERE, *(name for name in about if name != registry.LOCAL))))
    with render.busy("looking"):
        found = examine(store_url, fleet.providers, only=about or ABOUT, sources=_sources)
    broken, warnings, missing = (
        [finding for finding in found if finding.level == level]
        for level in ("broken", "warning", "missing")
    )
    if as_json:
        counts = {"broken": len(broken), "warnings": len(warnings), "missing": len(missing)}
        render.print_json(counts | {"findings": [to_builtins(each) for each in found]})
    else:
        for finding in found:
            _show(finding)
        if not broken:
            words = render.count(len(warnings), "warning") if warnings else "all is well"
            if missing:
                many = render.count(len(missing), "optional thing is", "optional things are")
                words += f"; {many} missing"
            click.echo(f"\n{words}")
    if broken:
        raise TradewindError(
            f"{render.count(len(broken), 'check is', 'checks are')} broken: {broken[0].what}",
            hint=broken[0].todo or None,
        )


def _sources() -> dict[str, Sequence[str]]:
    from tradewind.catalog.refresh import SOURCES, source

    return {name: source(name).credentials for name in SOURCES}


def _show(finding: Finding) -> None:
    what, reasons = finding.what, [("why", finding.why), ("do", finding.todo)]
    whole = "/" in what  # a path, to be copied
    if finding.level == "missing":  # nothing is wrong: a line will do
        what, reasons, whole = f"{what}: needed for {finding.why}: {finding.todo}", [], False
    line = f"{finding.level:<8} {finding.about:<12} {what}"
    first, *later = [line] if whole else render.wrapped(line, indent=" " * 22)
    click.secho(first[:8], fg=_COLOURS[finding.level], nl=False)
    click.echo("\n".join([first[8:], *later]))
    for label, words in reasons:
        if words:
            render.paragraph(f"{'':22}{label + ':':<4} {words}", indent=" " * 27, dim=True)
