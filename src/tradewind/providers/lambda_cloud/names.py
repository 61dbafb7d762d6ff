"""What stands in a machine's name.

    tw-<owner>-<run>-<leg>-<rank>-<launched>

Lambda tells of a machine neither who launched it nor when, and a name is all that it keeps for us:
64 characters, which need not be unique. `owner` is a hash of the store's URL, `launched` the
seconds since 2020, both in base 36. The machine's id is the same with `lambda-` in front: a machine
can be told its id only before Lambda has given it one. Two machines of the same name are one to us,
and end together.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.model.run import Request

MOST = 64
PREFIX, ID_PREFIX = "tw-", "lambda-"
_OWNER, _MOMENT = 8, 6
_SINCE_S = 1_577_836_800  # 2020-01-01
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NUMBER = r"(0|[1-9]\d{0,5})"
_NAME = re.compile(
    rf"{PREFIX}([0-9a-z]{{{_OWNER}}})-([A-Za-z0-9][A-Za-z0-9._-]*)-{_NUMBER}-{_NUMBER}"
    rf"-([0-9a-z]{{{_MOMENT}}})",
    re.ASCII,
)
_LEGS = 3
"""Digits of a leg's number that a run's name must leave room for."""
_ID_TAIL = 20
"""What a run's id has behind its name (clock.new_id)."""


class Name(Struct, frozen=True, kw_only=True):
    owner: str
    run_id: str
    leg: int
    rank: int
    launched_s: int

    @property
    def launch_id(self) -> str:
        return f"{self.run_id}-{self.leg}"

    @property
    def machine_id(self) -> str:
        return ID_PREFIX + self.text.removeprefix(PREFIX)

    @property
    def text(self) -> str:
        moment = _base36(self.launched_s - _SINCE_S, _MOMENT)
        return f"{PREFIX}{self.owner}-{self.run_id}-{self.leg}-{self.rank}-{moment}"


def owner_of(store_url: str) -> str:
    digest = hashlib.sha256(store_url.rstrip("/").encode()).digest()
    return _base36(int.from_bytes(digest[:8]) % 36**_OWNER, _OWNER)


def made(owner: str, request: Request, rank: int, at_s: int) -> Name:
    """InvalidValue: a machine cannot be called so, and would not be found again."""
    name = Name(owner=owner, run_id=request.run_id, leg=request.leg, rank=rank, launched_s=at_s)
    if len(name.text) > MOST or parsed(name.text) != name:
        raise InvalidValue(
            f"machines of {request.run_id} cannot be named: {name.text!r} is more than"
            f" {MOST} characters, or has others than letters, digits, '.', '_' and '-'",
            hint="give the run a shorter name",
        )
    assert request.launch_id == name.launch_id, "it could not be read back"
    return name


def parsed(text: str | None) -> Name | None:
    """None: it is not one of ours, whoever's it is."""
    found = _NAME.fullmatch(text or "")
    if found is None or len(found[0]) > MOST:
        return None
    return Name(
        owner=found[1],
        run_id=found[2],
        leg=int(found[3]),
        rank=int(found[4]),
        launched_s=int(found[5], 36) + _SINCE_S,
    )


def of_machine(machine_id: str) -> Name | None:
    if not machine_id.startswith(ID_PREFIX):
        return None
    return parsed(PREFIX + machine_id.removeprefix(ID_PREFIX))


def longest(nodes: int) -> int:
    """Of a run's name, so that machines of its thousandth leg can still be named."""
    fixed = len(PREFIX) + _OWNER + 1 + 1 + _LEGS + 1 + len(str(nodes - 1)) + 1 + _MOMENT
    return MOST - fixed - _ID_TAIL


def _base36(number: int, size: int) -> str:
    text = ""
    for _ in range(size):
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
