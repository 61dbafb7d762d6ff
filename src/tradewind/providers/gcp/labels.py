"""What stands in a machine's name and labels, and how it is read back.

    tw-<owner>-<run>-<leg>-<rank>

Compute Engine takes 63 characters of `a-z`, `0-9` and `-` as a name, once a zone. When a machine is
gone, its name in Google's record of operations is all that is left of it: so it says whose machine
it was, of which run, leg and rank. `owner` is a hash of the store's URL. In `run`, what a name may
not have is written with a `q`: `.` is `q0`, `_` is `q1`, capitals are `q2` and the small letter,
and `q` itself is `qq`.

A run's id that is too long becomes `qz` and a hash; the whole of it is in the machine's metadata,
where listings have it as long as the machine is there. Of such a machine only those who have listed
it before know that it has ended.

Labels, which listings are filtered by, have the same: `tradewind-owner`, `-run`, `-leg`, `-launch`.
The rank is in the name alone, since machines that are bought together have the same labels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from msgspec import Struct

from tradewind.model.run import Request

OWNER, RUN, LEG, LAUNCH = (f"tradewind-{each}" for each in ("owner", "run", "leg", "launch"))
PREFIX, ID_PREFIX = "tw-", "gcp-"
MOST = 63
_NUMBER = r"(0|[1-9]\d{0,5})"
_NAME = re.compile(rf"{PREFIX}([0-9a-f]{{8}})-([a-z0-9-]+)-{_NUMBER}-{_NUMBER}")
_LABEL = re.compile(r"[a-z0-9_-]{0,63}")
_ID = re.compile(rf"{ID_PREFIX}([a-z0-9-]+?)-({PREFIX}[a-z0-9-]+)")
_PLAIN = {".": "q0", "_": "q1", "q": "qq"}
_BACK = {value: key for key, value in _PLAIN.items()}
_CUT = "qz"
_HASH = 20
_LEGS = 3
"""Digits of a leg's number that a run's name must leave room for."""
_ID_TAIL = 20
"""What a run's id has behind its name (clock.new_id)."""


class Name(Struct, frozen=True, kw_only=True):
    owner: str
    run: str
    """As it is in the name."""
    leg: int
    rank: int

    @property
    def text(self) -> str:
        return f"{self.stem}-{self.rank}"

    @property
    def stem(self) -> str:
        """Of all machines of a launch, and of its placement policy."""
        return f"{PREFIX}{self.owner}-{self.run}-{self.leg}"

    @property
    def run_id(self) -> str | None:
        """None: it was too long."""
        return unescaped(self.run)


def made(owner: str, request: Request, rank: int) -> Name:
    room = MOST - len(f"{PREFIX}{owner}--{request.leg}-{max(request.way.nodes - 1, rank)}")
    run = shortened(request.run_id, room)
    return Name(owner=owner, run=run, leg=request.leg, rank=rank)


def parsed(text: str) -> Name | None:
    """None: it is none of ours."""
    found = _NAME.fullmatch(text)
    if found is None or len(text) > MOST:
        return None
    return Name(owner=found[1], run=found[2], leg=int(found[3]), rank=int(found[4]))


def machine_id(zone: str, name: str) -> str:
    return f"{ID_PREFIX}{zone}-{name}"


def parted(machine_id: str) -> tuple[str, Name] | None:
    """Zone and name of a machine's id; None: it is no machine of Compute Engine's that is ours."""
    found = _ID.fullmatch(machine_id)
    name = parsed(found[2]) if found else None
    return (found[1], name) if found and name else None


def shortened(run_id: str, room: int) -> str:
    """With no character that a name may not have, and no more than `room`."""
    text = "".join(_PLAIN.get(each) or (f"q2{each.lower()}" if each.isupper() else each)
                   for each in run_id)  # fmt: skip
    if len(text) > room or not re.fullmatch(r"[a-z0-9-]+", text):
        return _CUT + hashlib.sha256(run_id.encode()).hexdigest()[:_HASH]
    return text


def longest(nodes: int) -> int:
    """Of a run's name, so that machines of its thousandth leg can still be called by it."""
    return MOST - len(f"{PREFIX}{'0' * 8}---{nodes - 1}") - _LEGS - _ID_TAIL


def is_cut(text: str) -> bool:
    return re.match(rf"{_CUT}[0-9a-f]{{{_HASH}}}", text) is not None


def unescaped(text: str) -> str | None:
    """The run's id; None: it was too long for a name."""
    if text == _CUT or is_cut(text):
        return None
    return re.sub(
        r"q(2[a-z]|[01q])",
        lambda found: _BACK.get(found[0]) or found[0][2:].upper(),
        text,
    )


def labels(owner: str, request: Request) -> dict[str, str]:
    return {
        OWNER: owner,
        RUN: shortened(request.run_id, MOST),
        LEG: str(request.leg),
        LAUNCH: shortened(request.launch_id, MOST),
    }


def stamps(request: Request) -> dict[str, str]:
    """Of a machine's metadata: the same, as it is."""
    return {RUN: request.run_id, LAUNCH: request.launch_id}


def run_of(labels: Mapping[str, str], stamps: Mapping[str, str]) -> tuple[str, str] | None:
    """A machine's run and launch, by its metadata or else its labels; None: they do not say."""
    run = stamps.get(RUN) or unescaped(labels.get(RUN, _CUT)) or ""
    launch = stamps.get(LAUNCH) or unescaped(labels.get(LAUNCH, _CUT)) or ""
    return (run, launch) if run and launch else None


def is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None


def of_owner(owner: str) -> str:
    """A filter for what is ours."""
    return f"labels.{OWNER}={owner}"


def of_launch(owner: str, launch_id: str) -> str:
    return f"({of_owner(owner)}) (labels.{LAUNCH}={shortened(launch_id, MOST)})"


def request_id(owner: str, request: Request, about: str = "") -> str:
    """A UUID, as Google wants it: the same for whoever asks again, another elsewhere, and for
    another store."""
    way = request.way
    text = "\n".join((owner, request.launch_id, way.zone or way.region, about))
    digits = hashlib.sha256(text.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
