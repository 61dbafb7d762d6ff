"""Standard output and error while a command runs: whatever is printed, by whom and from where, no
control character reaches them but our own few colours.

Much of what is printed comes from a store or a provider. It is made safe here, where all of it
passes, so that no command can forget to. Tables and progress bars are drawn by rich, which moves
the cursor: its text is made safe where it is drawn (render.console), and goes to the stream itself,
as does a job's own output (logs).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from tradewind.base.plaintext import visible

_OURS = re.compile(r"(\x1b\[(?:0|1|2|3[1-6])m)")
"""What click.style makes for us: bold, dim, a colour, and no more of it."""


class Guarded:
    """A text stream. It has no `buffer`: bytes would go by."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        if not text.isprintable():
            parts = _OURS.split(text)
            parts[::2] = map(visible, parts[::2])
            text = "".join(parts)
        return self.unguarded.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.unguarded, name)


def unguarded(stream: TextIO) -> TextIO:
    """For what is safe already, and for what the user wants as it is."""
    return getattr(stream, "unguarded", stream)


@contextmanager
def guarded() -> Iterator[None]:
    before = sys.stdout, sys.stderr
    guards = [cast(TextIO, Guarded(unguarded(stream))) for stream in before]
    sys.stdout, sys.stderr = guards
    try:
        yield
    finally:
        # Whoever has put something else there since will take it away again.
        if sys.stdout is guards[0]:
            sys.stdout = before[0]
        if sys.stderr is guards[1]:
            sys.stderr = before[1]
