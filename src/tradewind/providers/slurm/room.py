"""How much room there is for the folders of launches, on the file system that a cluster shares. Of
quotas `df` knows nothing: those show when something is written."""

from __future__ import annotations

import shlex

from tradewind.base.errors import NoAccess
from tradewind.providers.slurm.login import Answer, Login

LEAST_MB = 100
_LOOK = (
    'd=$0; while [ ! -d "$d" ] && [ "$d" != / ]; do d=$(dirname "$d"); done;'
    ' df -Pk "$d" | tail -n 1'
)


def asking(folder: str) -> str:
    """A line that asks; of a folder that is not there, the one that it will be in."""
    return f"ask room sh -c {shlex.quote(_LOOK)} {shlex.quote(folder)}\n"


def check(answer: Answer | None, folder: str, login: Login) -> None:
    """Raises where there is too little; where nobody can tell, nothing is wrong."""
    words = answer.text.split() if answer is not None and not answer.code else []
    if len(words) < 6 or not words[3].isdecimal():  # as POSIX has it: the fourth is what is free
        return
    free_mb = int(words[3]) // 1024
    if free_mb < LEAST_MB:
        raise NoAccess(
            f"{login.shown} has {free_mb} MB free at {folder}, and {LEAST_MB} MB are needed",
            hint=f"`df -h {shlex.quote(folder)}` there shows what is full; --folder names another"
            " that all nodes share",
        )
