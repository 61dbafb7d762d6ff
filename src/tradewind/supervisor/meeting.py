"""How the machines of a leg meet: rank 0's address, and what `torchrun` is told.

Rank 0 takes a free port and publishes `host:port` by create-if-absent; the others wait for it. A
supervisor of rank 0 that is started again finds its own address, and keeps it.
"""

from __future__ import annotations

import re
import shlex
import socket
from typing import NamedTuple

from tradewind.errors import BadFile, NotFound
from tradewind.model import bounds, places
from tradewind.store.base import Store


class Address(NamedTuple):
    host: str
    port: int


def free_port() -> int:
    """Nobody listens there now; that nobody will in the next second is likely, not certain."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        port: int = taken.getsockname()[1]
        return port


def publish(store: Store, run_id: str, leg: int, host: str) -> Address:
    """Rank 0's part."""
    place = places.address(run_id, leg)
    mine = Address(host, free_port())
    if store.create(place, f"{mine.host}:{mine.port}".encode()):
        return mine
    return _parsed(store.get(place, most=bounds.POINTER), place)


def find(store: Store, run_id: str, leg: int) -> Address | None:
    """The others' part; None while there is nothing yet."""
    place = places.address(run_id, leg)
    try:
        return _parsed(store.get(place, most=bounds.POINTER), place)
    except NotFound:
        return None


def _parsed(data: bytes, place: str) -> Address:
    host, _, port = data.decode("utf-8", "replace").rpartition(":")
    if not host or not port.isdigit():
        raise BadFile(f"{place} is no address: {data[:100]!r}")
    return Address(host, int(port))


def is_torchrun(command: str) -> bool:
    return re.match(r"\s*torchrun(\s|$)", command) is not None


def with_address(command: str, nodes: int, rank: int, address: Address) -> str:
    """A `torchrun …` command that knows the others. One whose user has said how the machines meet
    (`--nnodes`, `--standalone`, any `--rdzv…`) stays as it is."""
    if not is_torchrun(command) or _has(command, "nnodes", "standalone", "rdzv"):
        return command
    options = {
        "nnodes": str(nodes),
        "node-rank": str(rank),
        "master-addr": address.host,
        "master-port": str(address.port),
    }
    told = [
        f"--{name}={shlex.quote(value)}"
        for name, value in options.items()
        if not _has(command, name)
    ]
    return re.sub(r"^(\s*torchrun)", lambda found: " ".join([found[1], *told]), command, count=1)


def _has(command: str, *names: str) -> bool:
    """torchrun takes - and _ alike. An option of the script's own with such a name counts too: then
    the user has to say all of it."""
    either = "|".join(name.replace("-", "[-_]") for name in names)
    return re.search(rf"(?:^|\s)--(?:{either})", command) is not None
