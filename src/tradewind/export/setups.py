"""What of a job's setup an image can hold: what pip installs. The rest is done at each start."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

_PIP = re.compile(r"(?:python3? -m )?pip3? install\s+(?P<words>[^|;&<>`$()]+)")


class Setup(NamedTuple):
    installs: tuple[str, ...]
    """Words of `pip install`, a line each, without options that only say how much it tells."""
    rest: tuple[str, ...]
    """Lines of shell, in their order."""


def parted(setup: str | None) -> Setup:
    """A line that is more than one plain `pip install` is left as it is, and so is what follows
    a line that goes on in the next."""
    text = (setup or "").strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.endswith("\\") or "<<" in line for line in lines):
        return Setup((), (text,))
    installs, rest = [], []
    for line in lines:
        found = _PIP.fullmatch(line)
        if found is None:
            rest.append(line)
            continue
        words = [each for each in shlex.split(found["words"]) if each not in ("-q", "--quiet")]
        installs.append(shlex.join(words))
    return Setup(tuple(installs), tuple(rest))
