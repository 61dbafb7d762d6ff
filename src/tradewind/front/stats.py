"""What HAProxy says of itself, as values. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tradewind.front.config import REPLICAS
from tradewind.front.routes import Backend, State

_FORCED_MAINTENANCE, _FORCED_DRAIN = 0x01, 0x08  # of srv_admin_state, as HAProxy documents them


class Health(Enum):
    UP = "up"
    DOWN = "down"
    DRAINING = "draining"
    CLOSED = "closed"  # HAProxy calls it maintenance


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica as HAProxy has it. Totals count from when it was added."""

    id: str
    place: str
    health: Health
    draining: bool  # was told so; one that is down may be, too
    weight: int
    at_once: int
    current: int  # requests being answered
    queued: int  # waiting for this replica
    total: int
    errors: int  # connections and answers that failed
    retried: int
    rate: int  # requests in the last second
    probe: str  # of the last probe, in HAProxy's short words

    def wanted(self) -> Backend:
        """What it was asked for as."""
        address, _, port = self.place.rpartition(":")
        state = State.DRAINING if self.draining else State.READY
        bare = address.strip("[]")
        return Backend(self.id, bare, int(port), self.weight, state, self.at_once)


@dataclass(frozen=True, slots=True)
class Seen:
    replicas: tuple[Replica, ...]
    current: int  # requests in the front, wherever they are
    queued: int  # for any replica
    held: int  # because there is none
    rate: int
    total: int
    denied: int


def read(stat: str, states: str, held: str) -> Seen:
    """From `show stat`, `show servers state` and `show held`."""
    rows = list(csv.DictReader(stat.removeprefix("# ").strip().splitlines()))
    admin = _admin(states.splitlines())
    front: Mapping[str, str] = {}
    replicas, queued = [], 0
    for row in rows:
        name, of = row["svname"], row["pxname"]
        if of == "front" and name == "FRONTEND":
            front = row
        elif of == REPLICAS and name == "BACKEND":
            queued = _number(row, "qcur")
        elif of == REPLICAS:
            replicas.append(_replica(row, admin.get(name, 0)))
    return Seen(
        replicas=tuple(replicas),
        current=_number(front, "scur"),
        # The backend's figure has those who wait for any replica; others wait for one.
        queued=queued + sum(replica.queued for replica in replicas),
        held=int(held.strip() or 0),
        rate=_number(front, "req_rate"),
        total=_number(front, "req_tot"),
        denied=_number(front, "dreq"),
    )


def _replica(row: Mapping[str, str], admin: int) -> Replica:
    draining = bool(admin & _FORCED_DRAIN)
    if admin & _FORCED_MAINTENANCE:
        health = Health.CLOSED
    elif row["status"].startswith("DOWN"):
        health = Health.DOWN
    else:
        health = Health.DRAINING if draining else Health.UP
    return Replica(
        id=row["svname"],
        place=row["addr"],
        health=health,
        draining=draining,
        weight=_number(row, "uweight"),
        at_once=_number(row, "slim"),
        current=_number(row, "scur"),
        queued=_number(row, "qcur"),
        total=_number(row, "stot"),
        errors=_number(row, "econ") + _number(row, "eresp"),
        retried=_number(row, "wretr"),
        rate=_number(row, "rate"),
        probe=" ".join((row.get("check_status", ""), row.get("last_chk", ""))).strip(),
    )


def _admin(lines: Iterable[str]) -> dict[str, int]:
    """Name of a replica → its administrative state. The second line names the columns."""
    _, heads, *rows = [line for line in lines if line.strip()]
    columns = heads.removeprefix("# ").split()
    found = {}
    for line in rows:
        row = dict(zip(columns, line.split(), strict=False))
        if row["be_name"] == REPLICAS:
            found[row["srv_name"]] = int(row["srv_admin_state"])
    return found


def _number(row: Mapping[str, str], name: str) -> int:
    return int(row.get(name) or 0)
