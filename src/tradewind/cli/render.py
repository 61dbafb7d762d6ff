"""Tables, notes and machine-readable output, the same for every command.

Colour and bars only on a terminal (rich and click honour NO_COLOR); a pipe gets plain text of the
full width; JSON and CSV go to standard output alone, remarks about them to standard error.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

import click

from tradewind.base import csvfile
from tradewind.base.plaintext import escaped, one_line, visible
from tradewind.base.units import usd
from tradewind.cli.terminal import unguarded

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

_PIPE_WIDTH = 240
_ROOMY = 100
_PATH = re.compile(r"(^|\s|file://)/\w")
_MINOR = 4  # columns to keep this little are worth less than a whole name


@dataclass(frozen=True, slots=True)
class Column:
    """`keep`: where not all fit, the lowest go first. `grow`: may be cut short before that, to no
    less than `least`; with `wrap` nothing is cut, and it goes on in the next line."""

    title: str
    right: bool = False
    keep: int = 5
    grow: bool = False
    least: int = 14
    wrap: bool = False


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # it is called while the error is handled; run() knows what to do

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            """Text is plain text, whoever wrote it; only rich itself moves the cursor."""
            for segment in super().render(renderable, options):
                text, style, control = segment
                if not control:
                    style = style.update_link(None) if style and style.link else style
                    segment = Segment(visible(text), style)
                yield segment

    stream = _stream(stderr)
    width = None if _told() is None and stream.isatty() else columns(stderr=stderr)
    return Plain(file=unguarded(stream), width=width, highlight=False, markup=False, emoji=False)


def columns(*, stderr: bool = False) -> int:
    """How wide the output is: as $COLUMNS says, as the terminal is, or as a pipe may be."""
    told = _told()
    if told is not None:
        return told
    return get_terminal_size().columns if _stream(stderr).isatty() else _PIPE_WIDTH


def _told() -> int | None:
    told = os.environ.get("COLUMNS", "")
    return int(told) if told.isdecimal() and int(told) else None


def _stream(stderr: bool) -> TextIO:
    return sys.stderr if stderr else sys.stdout


def table(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
    """Prints rows of text (or rich Text) under headings, leaving out columns that do not fit."""
    rows = [
        [_safe(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows
    ]
    out = console()
    lines = None if out.is_terminal else plain(columns, rows, out.width)
    if lines is None:
        out.print(drawn(columns, rows, out.width))
        return
    for line in lines:
        out.file.write(line + "\n")


def plain(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int
) -> Iterator[str] | None:
    """The lines of a table as rich would draw it without colour: it takes a millisecond for each
    row, and all of the catalog has thousands. None where only rich knows how: what is wrapped, or
    is not one column wide a character."""
    widths = _widths(columns, rows, width)
    if not widths or _needed(widths) > width or any(columns[i].wrap for i in widths):
        return None
    if not all(_simple(row[i]) for row in rows for i in widths):
        return None
    every = chain([[column.title for column in columns]], rows)
    return (
        "  ".join(_padded(str(row[i]), wide, columns[i].right) for i, wide in widths.items())
        for row in every
    )


def _safe(cell: Any, column: Column) -> Any:
    """Measured as it will be shown; one line is one line."""
    if not isinstance(cell, str) or cell.isprintable():
        return cell
    return visible(cell) if column.wrap else one_line(cell)


def _simple(cell: Any) -> bool:
    if isinstance(cell, str):
        text = cell
    elif type(cell).__name__ == "Text" and not (cell.justify or cell.overflow or cell.no_wrap):
        text = str(cell)
    else:
        return False
    if text.isascii():
        return text.isprintable()
    from rich.cells import cell_len

    return text.isprintable() and cell_len(text) == len(text)


def _padded(text: str, wide: int, right: bool) -> str:
    if right:
        text = text.rstrip()
    if len(text) > wide:
        text = text[: wide - 1] + "…"
    return text.rjust(wide) if right else text.ljust(wide)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int) -> dict[int, int]:
    """Of the columns that are shown: those that have something in them, and fit."""
    widths = {}
    for i, column in enumerate(columns):
        widest = max((len(str(row[i])) for row in rows), default=0)
        if widest:
            widths[i] = max(len(column.title), widest)
    return _fitting(columns, widths, width)


def drawn(columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int) -> Table:
    from rich.table import Table

    widths = _widths(columns, rows, width)
    made = Table(box=None, pad_edge=False)
    for i, wide in widths.items():
        made.add_column(
            columns[i].title,
            justify="right" if columns[i].right else "left",
            width=wide,
            no_wrap=not columns[i].wrap,
            overflow="fold" if columns[i].wrap else "ellipsis",
            header_style="bold",
        )
    for row in rows:
        made.add_row(*(row[i] for i in widths))
    return made


def _fitting(columns: Sequence[Column], natural: Mapping[int, int], width: int) -> dict[int, int]:
    """Widths that fit: minor columns go, then long names are cut, then the others go in turn."""
    widths = dict(natural)
    while len(widths) > 1 and _needed(widths) > width:
        flexible = [i for i in widths if columns[i].grow and widths[i] > columns[i].least]
        if flexible and all(columns[i].keep > _MINOR for i in widths):
            widths[max(flexible, key=widths.__getitem__)] -= 1
        else:
            del widths[min(widths, key=lambda i: (columns[i].keep, -i))]
            # Room may be back for what was cut.
            for i in widths:
                if columns[i].grow:
                    widths[i] = natural[i]
    return widths


def _needed(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + 2 * (len(widths) - 1)


@contextmanager
def bars(names: Sequence[str], *, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """A progress bar for each name on a terminal's standard error, none elsewhere.

    Gives `progress(name, done, total)`; until it is told a total, a bar only shows that it lives.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    out = console(stderr=True)
    width = max(map(len, names), default=0)
    shown = Progress(
        TextColumn(f"{{task.description:<{width}}}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=out,
        disable=quiet or not out.is_terminal,
    )
    with shown:
        tasks = {name: shown.add_task(name, total=None) for name in names}

        def progress(name: str, done: int, total: int | None) -> None:
            shown.update(tasks[name], completed=done, total=total)

        yield progress


@contextmanager
def busy(text: str) -> Iterator[None]:
    """A sign of life on a terminal while something takes its time."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield
        return
    with out.status(text):
        yield


def note(text: str) -> None:
    """A remark under a table. Whole where it holds a path, which may be copied, and in a pipe with
    room enough, where it may be searched for."""
    roomy = not sys.stdout.isatty() and columns() >= _ROOMY
    for line in text.split("\n"):
        whole = roomy or not line or _PATH.search(line)
        click.secho(line if whole else "\n".join(wrapped(line, indent="  ")), dim=True)


def paragraph(text: str, *, indent: str = "", **style: Any) -> None:
    """Words broken where a line of the terminal ends; later lines begin with `indent`."""
    click.secho("\n".join(wrapped(text, indent=indent)), **style)


def wrapped(text: str, *, indent: str = "", widest: int | None = None) -> list[str]:
    """The lines of a paragraph."""
    width = max(columns(), 40)
    width = width if widest is None else min(width, widest)
    if len(text) <= width:
        return [text]
    return wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def labelled(label: str, text: str) -> None:
    """`label` and what belongs to it, which goes on below its own beginning."""
    paragraph(label + text, indent=" " * len(label))


def remark(text: str) -> None:
    """A remark beside machine-readable output: never on standard output."""
    click.secho(text, err=True, dim=True)


def wipe(length: int) -> None:
    """So many characters at the beginning of this line, which is then empty."""
    out = unguarded(sys.stdout)
    out.write("\r" + " " * length + "\r")
    out.flush()


def print_json(value: Any) -> None:
    click.echo(escaped(json.dumps(value, indent=2, ensure_ascii=False)))


def print_line(value: Any) -> None:
    """One of many JSON values, each a line of its own and there at once: for who reads along."""
    click.echo(escaped(json.dumps(value, ensure_ascii=False)))
    sys.stdout.flush()


def print_csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return csvfile.cell("; ".join(map(str, map(_cell, value))))
    if isinstance(value, str):
        return csvfile.cell(visible(value))
    return str(value).lower() if isinstance(value, bool) else value


def money(micros: float | None, *, digits: int = 2) -> str:
    """For a table: `3.99`; four digits below ten cents, empty for none."""
    if micros is None:
        return ""
    dollars = usd(round(micros))
    return f"{dollars:,.{4 if 0 < abs(dollars) < 0.1 else digits}f}"


def number(value: float | None, *, digits: int = 0) -> str:
    """`96`, `0.5`, empty for none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.{max(digits, 1)}f}"


def count(number_of: int, one: str, many: str | None = None) -> str:
    return f"{number_of:,} {one if number_of == 1 else many or one + 's'}"


def facts(names: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Facts in rows, one column for each thing; lines that say nothing are left out."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False)
    drawn.add_column("")
    for name in names:
        drawn.add_column(name, header_style="bold", overflow="fold")
    for label, values in lines:
        if any(values):
            drawn.add_row(label, *values)
    console().print(drawn)
