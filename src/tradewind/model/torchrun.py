"""Commands that begin with `torchrun`, and what they are told of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping


def is_torchrun(command: str) -> bool:
    return re.match(r"\s*torchrun(\s|$)", command) is not None


def meets(command: str) -> bool:
    """Whether its user has said how the machines meet."""
    return has(command, "nnodes", "standalone", "rdzv")


def has(command: str, *names: str) -> bool:
    """torchrun takes - and _ alike. An option of the script's own with such a name counts too: then
    the user has to say all of it."""
    either = "|".join(name.replace("-", "[-_]") for name in names)
    return re.search(rf"(?:^|\s)--(?:{either})", command) is not None


def told(command: str, options: Mapping[str, str]) -> str:
    """With options, as a shell reads them, that it does not have yet; "": one without a value."""
    more = [
        f"--{name}={value}" if value else f"--{name}"
        for name, value in options.items()
        if not has(command, name)
    ]
    return re.sub(r"^(\s*torchrun)", lambda found: " ".join([found[1], *more]), command, count=1)
