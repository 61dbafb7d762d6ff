"""`tradewind catalog refresh`: prices from the providers' own sources."""

from __future__ import annotations

import os
from typing import Any

import click

from tradewind.base import clock
from tradewind.base.errors import NotFound, SourceFailed
from tradewind.base.units import parse_duration
from tradewind.catalog import files
from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "refresh",
    cls=Command,
    examples="""
    # all sources whose keys are set
    tradewind catalog refresh
    # these two, patiently
    tradewind catalog refresh -p aws -p azure --timeout 5m
    """,
)
@click.option(
    "-p", "--provider", multiple=True, metavar="NAME", help="Only this provider. Repeatable."
)
@click.option(
    "--timeout",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Longest silence of a source.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 10),
    default=4,
    show_default=True,
    help="How often to ask again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def refresh(provider: tuple[str, ...], timeout: str, retries: int, as_json: bool) -> int:
    """Renew prices from the providers' own sources.

    Without --provider, every source is asked that needs no key or whose key is in the environment.
    A provider that fails keeps its old rows. At the end the new catalog replaces the old one.
    """
    from urllib.request import getproxies

    from tradewind.catalog.refresh import apply, ask_all
    from tradewind.catalog.refresh.http import Http

    now = clock.now().replace(microsecond=0)
    env = os.environ
    asked, passed_over = _sources(provider)
    http = Http(
        retries=retries,
        read_timeout_s=max(1, parse_duration(timeout)),
        proxies=getproxies(),
    )
    facts = files.load(account=False).facts
    with render.bars(asked, quiet=as_json) as progress:
        answers = ask_all(facts, asked, http=http, env=env, now=now, progress=progress)
    home = files.home()
    if all(answer.outcome.failed for answer in answers):
        result = apply(facts, answers, now)
    else:
        with files.locked(home):
            # Read afresh: somebody else may have renewed other providers meanwhile.
            result = apply(files.load(account=False).facts, answers, now)
            files.save(result.facts, home / "catalog.json.gz")
        files.record(result.observations, home, now)
    if as_json:
        render.print_json([_outcome(o) for o in result.outcomes])
    else:
        _tell(result.outcomes, passed_over, renewed_at=str(files.home() / "catalog.json.gz"))
    failed = [o for o in result.outcomes if o.failed]
    return SourceFailed.exit_code if failed else 0


def _sources(wanted: tuple[str, ...]) -> tuple[list[str], list[tuple[str, str]]]:
    """The providers to ask, and those passed over with the variable they need."""
    from tradewind.catalog.names import nearest, provider_name
    from tradewind.catalog.refresh import SOURCES, source

    if wanted:
        names = [provider_name(name) for name in wanted]
        for name in names:
            if name not in SOURCES:
                close = nearest(name, SOURCES)
                raise NotFound(
                    f"there is no live price source for {name!r}",
                    hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(SOURCES)}",
                    choices=close,
                )
        return list(dict.fromkeys(names)), []
    asked, passed_over = [], []
    for name in SOURCES:
        missing = [c for c in source(name).credentials if not os.environ.get(c)]
        if missing:
            passed_over.append((name, missing[0]))
        else:
            asked.append(name)
    return asked, passed_over


def _tell(outcomes: list[Any], passed_over: list[tuple[str, str]], *, renewed_at: str) -> None:
    for outcome in outcomes:
        change = outcome.change
        if change:
            click.echo(
                f"{outcome.provider}: {change.renewed:,} prices renewed, {change.changed:,} moved; "
                f"{change.added:,} offers new, {change.delisted:,} no longer sold"
            )
        else:
            click.secho(f"{outcome.provider}: failed, its old rows stay", fg="red", err=True)
            click.echo(f"  {outcome.failed}".replace("\n", "\n  "), err=True)
        if change and change.unbelieved:
            click.secho(
                f"  {change.unbelieved:,} offers were not listed, too many at once to be believed; "
                "they stay as they were",
                fg="yellow",
            )
        for reason, number in outcome.skipped.most_common(5):
            render.note(f"  {number:,} × {reason}")
        if len(outcome.skipped) > 5:
            render.note(f"  … and {len(outcome.skipped) - 5} more reasons; --json shows all")
    if passed_over:
        names = ", ".join(f"{name} (${variable})" for name, variable in passed_over)
        render.note(f"Not asked, no key: {names}.")
    if any(o.change for o in outcomes):
        render.note(f"Written to {renewed_at}; doubtful prices: `tradewind catalog doctor`.")
    else:
        render.note("Nothing was renewed; the catalog is as it was.")


def _outcome(outcome: Any) -> dict[str, Any]:
    change = outcome.change
    return {
        "provider": outcome.provider,
        "ok": change is not None,
        "error": str(outcome.failed) if outcome.failed else None,
        "renewed": change.renewed if change else 0,
        "changed": change.changed if change else 0,
        "added": change.added if change else 0,
        "delisted": change.delisted if change else 0,
        "unbelieved": change.unbelieved if change else 0,
        "skipped": dict(outcome.skipped),
    }
