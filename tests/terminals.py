"""A real terminal for a command, and what it would have been made to do."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

_OURS = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[(?:[0-9]+A|2K|1A)|\r")
_DANGEROUS = re.compile(
    rb"[\x00-\x08\x0b-\x1f\x7f]"  # C0 but for tab and newline, DEL
    rb"|\xc2[\x80-\x9f]"  # C1 in UTF-8
    rb"|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]"  # writing direction
)

_SPINNER = re.compile(r"(?:\x1b\[2K|\r)*[\u2800-\u28ff] [^\r\n\x1b]*[\r\n]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def shown(command: Sequence[str], env: Mapping[str, str]) -> tuple[int, bytes]:
    """The exit code, and every byte that came to the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], list(command), dict(env))
    said = b""
    with suppress(OSError):  # how a terminal tells that nobody is left
        while more := os.read(terminal, 65536):
            said += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def obeyed(said: bytes) -> list[bytes]:
    """What is neither text nor of what we and rich send ourselves; also what is not UTF-8."""
    said.decode("utf-8")
    return _DANGEROUS.findall(_OURS.sub(b"", said))


def uncoloured(text: str) -> str:
    return _COLOUR.sub("", text)


def without_spinners(text: str) -> str:
    """A spinner turns as often as there is time for, and faster machines give it less."""
    return _SPINNER.sub("", uncoloured(text))
