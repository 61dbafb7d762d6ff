"""Text that others wrote (jobs, machines, providers, whoever may write a store), made safe to show.

A terminal obeys control characters: they set its title, write to the clipboard, hide and overwrite
what stands there; the marks of writing direction make a line read as another. `visible` and
`one_line` let nothing of that through. `Colours` is for a job's own output, whose colours and
progress bars are wanted: it passes those and no other command.
"""

from __future__ import annotations

import codecs
import re

_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1
    "\u202a-\u202e\u2066-\u2069"  # writing direction
    "\ud800-\udfff\ufffe\uffff"  # not characters: HTML has no way to write them
)
_CONTROL = re.compile(f"[{_UNSEEN}]")
_COLOUR = r"\x1b\[[0-9;:]*m"
_OF_A_JOB = re.compile(rf"({_COLOUR}|\r)|\x1b\[[0-?]*[ -/]*[@-~]|[{_UNSEEN}]")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?\Z")
"""What may become a sequence when more comes."""
_RESET = "\x1b[0m"


def visible(text: str) -> str:
    """Without control characters but tabs and newlines; each of the others is shown as �."""
    return _CONTROL.sub("�", text)


def one_line(text: str) -> str:
    """The same on one line: nobody can add a line that looks like one of ours."""
    return visible(" ".join(text.split()))


def escaped(document: str) -> str:
    """JSON that says the same, with control characters written as such."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


class Colours:
    """A job's output for a terminal, as it comes: colours, tabs, newlines and returns pass, other
    commands that move or erase are left out, and the rest is shown as �."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        self._coloured = False

    def feed(self, data: bytes) -> str:
        text = self._held + self._decode(data)
        begun = _BEGUN.search(text, max(0, len(text) - 40))
        cut = begun.start() if begun else len(text)
        self._held = text[cut:]
        return self._passed(text[:cut])

    def end(self) -> str:
        """What was held back, and what the terminal's colours were before."""
        rest = self._passed(self._held + self._decode(b"", True))
        self._held = ""
        return rest + (_RESET if self._coloured else "")

    def _passed(self, text: str) -> str:
        def passed(found: re.Match[str]) -> str:
            if found[1]:
                self._coloured = self._coloured or found[1] != "\r"
                return found[1]
            return "" if len(found[0]) > 1 else "�"

        return _OF_A_JOB.sub(passed, text)
