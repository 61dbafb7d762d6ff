"""`tradewind explain`: what an error, an exit code, a state of a run or a term means."""

from __future__ import annotations

import re

import click

from tradewind.base.errors import NotFound
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.help import topics
from tradewind.cli.help.topics import terms

EXIT_CODES = {
    0: "done",
    1: "a run did not succeed, verify found a difference, doctor found something broken, sweep"
    " could not do everything; or a bug of ours: TRADEWIND_DEBUG=1 shows the traceback",
    2: "bad usage: an unknown option, a value that cannot be understood, or a workload that is"
    " wrong, in options or in a file",
    3: "no such name, or nothing matches; for `tradewind plan`, no plan keeps every limit",
    4: "a file is damaged or malformed: the catalog, the account file, budgets, a saved plan, a"
    " run's journal",
    5: "no access: a file or folder is missing or cannot be read or written, or a bucket or cloud"
    " account refuses the credentials, or there are none",
    6: "an outside source or a store failed; the data that it would have updated is unchanged",
    7: "an optional dependency is not installed; the hint names the extra",
    130: "interrupted",
}
_WIDEST = 80
_FEWEST = 4  # letters of a word that says something


@click.command(
    "explain",
    cls=Command,
    examples="""
    # a topic, or an exit code
    tradewind explain no-plan
    # a term, of ours or of another tool
    tradewind explain preemption
    # an error, as it was printed
    tradewind explain "no plan keeps every limit"
    """,
)
@click.argument("what", nargs=-1, metavar="[TOPIC|TERM|EXIT_CODE|ERROR]...")
def command(what: tuple[str, ...]) -> None:
    """Explain an error, an exit code, a state of a run or a term, and what to do.

    Without an argument, the topics are listed. The text of an error finds its topic; so do the
    usual terms (preemption, quota, OOM, autostop …)."""
    asked = " ".join(what).strip()
    if not asked:
        _list(topics.every())
        click.echo("\nalso exit codes: tradewind explain 3")
        click.echo("and terms: tradewind explain preemption")
    elif asked in topics.names():
        _show(topics.load(asked))
    elif re.fullmatch(r"-?\d{1,2}|130", asked):
        _code(int(asked))
    elif term := terms.find(asked):
        _define(term)
    else:
        _show(_meant(asked))


def _meant(asked: str) -> topics.Topic:
    found = topics.known_by(asked)
    if found:
        return found
    from difflib import get_close_matches

    known = topics.every()
    names = [topic.name for topic in known]
    close = get_close_matches(asked.lower().replace(" ", "-"), names, n=1, cutoff=0.7)
    if close:
        return topics.load(close[0])
    words = {word for word in re.findall(r"\w+", asked.lower()) if len(word) >= _FEWEST}
    score = {topic.name: sum(_found(word, topic) for word in words) for topic in known}
    best = max(names, key=lambda name: score[name])
    if score[best]:
        return topics.load(best)
    raise NotFound(
        f"no topic mentions {asked!r}",
        hint="`tradewind explain` lists the topics; docs/glossary.md has the words of other tools",
        choices=names,
    )


def _found(word: str, topic: topics.Topic) -> int:
    """A word in the title says much of what a topic is about, and in the text a little."""
    title, text = f"{topic.name} {topic.title}".lower(), topic.text.lower()
    return 10 * (word in title) + bool(re.search(rf"\b{word}", text))


def _define(term: terms.Term) -> None:
    if not term.text:
        assert term.topic
        _show(topics.load(term.topic))
        return
    _paragraph(term.text)
    click.echo()
    for command in term.commands:
        click.secho(f"    {command}", fg="cyan")
    click.echo()
    if term.topic:
        click.echo(f"more: tradewind explain {term.topic}")
    if term.page:
        click.echo(f"page: {term.page}")


def _code(code: int) -> None:
    if code not in EXIT_CODES:
        known = ", ".join(map(str, EXIT_CODES))
        raise NotFound(f"no command of ours ends with {code}", hint=f"exit codes are {known}")
    _paragraph(f"Exit code {code}: {EXIT_CODES[code]}.")
    about = [topic for topic in topics.every() if topic.exit_code == code]
    if about:
        click.echo()
        _list(about)


def _list(found: list[topics.Topic]) -> None:
    width = max(len(topic.name) for topic in topics.every())
    for topic in found:
        _paragraph(f"{topic.name:<{width}}  {topic.title}", indent=" " * (width + 2))


def _show(topic: topics.Topic) -> None:
    click.secho(topic.title, bold=True)
    click.echo()
    for line in topic.text.splitlines():
        if line.startswith("    "):
            click.secho(line, fg="cyan")
        else:
            _paragraph(line)


def _paragraph(text: str, indent: str = "") -> None:
    click.echo("\n".join(render.wrapped(text, indent=indent, widest=_WIDEST)))
