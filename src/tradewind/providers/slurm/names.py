"""What stands in a job's name.

    tw-<owner>-<run>-<leg>

`owner` is a hash of the store's URL. Run and leg make the launch id again, so the name is all that
is needed to know a job by: accounting keeps names always, and comments only where it was told to.
The comment says the same for people, and how many nodes were asked for.
A machine is one rank of a job: `slurm-<cluster>-<owner>-<run>-<leg>-<rank>`.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.model.run import Request

PREFIX, ID_PREFIX = "tw-", "slurm-"
MOST = 200
"""Characters: accounting cuts names off at 255."""
_OWNER = 8
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NUMBER = r"(0|[1-9]\d{0,5})"
_NAME = re.compile(
    rf"{PREFIX}([0-9a-z]{{{_OWNER}}})-([A-Za-z0-9][A-Za-z0-9._-]*)-{_NUMBER}", re.ASCII
)
_COMMENT = re.compile(r"tradewind .+ nodes (\d{1,5})", re.ASCII)


class Name(Struct, frozen=True, kw_only=True):
    owner: str
    run_id: str
    leg: int

    @property
    def launch_id(self) -> str:
        return f"{self.run_id}-{self.leg}"

    @property
    def text(self) -> str:
        return f"{PREFIX}{self.owner}-{self.run_id}-{self.leg}"

    def stem(self, cluster: str) -> str:
        """Of its machines' ids: the rank comes behind it."""
        return f"{ID_PREFIX}{cluster}-{self.text.removeprefix(PREFIX)}"


def comment(owner: str, request: Request) -> str:
    told = f"tradewind {owner} run {request.run_id} leg {request.leg}"
    return f"{told} nodes {request.way.nodes}"


def nodes_in(comment: str) -> int:
    """0: it does not say."""
    found = _COMMENT.fullmatch(comment)
    return int(found[1]) if found else 0


def mark(owner: str) -> str:
    """In a cluster's folder, made by setup: by it the folder is known to be this store's, and its
    user's own."""
    return f".of-{owner}"


def owner_of(store_url: str) -> str:
    digest = hashlib.sha256(store_url.rstrip("/").encode()).digest()
    number, text = int.from_bytes(digest[:8]), ""
    for _ in range(_OWNER):
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text


def made(owner: str, request: Request) -> Name:
    """InvalidValue: a job cannot be called so, and would not be found again."""
    name = Name(owner=owner, run_id=request.run_id, leg=request.leg)
    if parsed(name.text) != name or request.launch_id != name.launch_id:
        raise InvalidValue(
            f"a job of {request.run_id} cannot be named: {name.text!r} is more than {MOST}"
            " characters, or has others than letters, digits, '.', '_' and '-'",
            hint="give the run another name: --name NAME",
        )
    return name


def parsed(text: str) -> Name | None:
    """None: it is not one of ours, whoever's it is."""
    found = _NAME.fullmatch(text)
    if found is None or len(text) > MOST:
        return None
    return Name(owner=found[1], run_id=found[2], leg=int(found[3]))
