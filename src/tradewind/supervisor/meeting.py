"""How the machines of a leg meet: rank 0's address, and what `torchrun` is told.

Rank 0 takes a free port and publishes `host:port`, signed with the key of its launch; the others
wait for it. A supervisor of rank 0 that is started again finds its own address, and keeps it.
Whatever else is there was written by somebody else: rank 0 replaces it, then or at its next beats
(beat.put_back), and the others wait.
"""

from __future__ import annotations

import re
import shlex
import socket
from typing import NamedTuple

from tradewind.base import signing
from tradewind.base.errors import NotFound, TooLarge
from tradewind.model import bounds, places, torchrun
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


def publish(store: Store, run_id: str, leg: int, host: str, key: str) -> Address:
    """Rank 0's part."""
    place = places.address(run_id, leg)
    mine = Address(host, free_port())
    if store.create(place, signed(mine, key)):
        return mine
    found = find(store, run_id, leg, key)
    if found is not None and found.host == host:
        return found
    store.replace(place, signed(mine, key))
    return mine


def signed(address: Address, key: str) -> bytes:
    """As it is published."""
    return signing.signed(f"{address.host}:{address.port}".encode(), key, signing.ADDRESS)


def find(store: Store, run_id: str, leg: int, key: str) -> Address | None:
    """The others' part; None while rank 0 has published nothing yet."""
    try:
        data = store.get(places.address(run_id, leg), most=bounds.POINTER)
    except (NotFound, TooLarge):
        return None
    said = signing.opened(data, key, signing.ADDRESS)
    return _parsed(said) if said is not None else None


_ADDRESS = re.compile(r"([A-Za-z0-9._:%-]{1,255}):([0-9]{1,5})")


def _parsed(data: bytes) -> Address | None:
    named = _ADDRESS.fullmatch(data.decode("utf-8", "replace"))
    if named is None or not 0 < int(named[2]) < 1 << 16:
        return None
    return Address(named[1], int(named[2]))


def with_address(command: str, nodes: int, rank: int, address: Address) -> str:
    """A `torchrun …` command that knows the others. One whose user has said how the machines meet
    (`--nnodes`, `--standalone`, any `--rdzv…`) stays as it is."""
    if not torchrun.is_torchrun(command) or torchrun.meets(command):
        return command
    options = {
        "nnodes": str(nodes),
        "node-rank": str(rank),
        "master-addr": address.host,
        "master-port": str(address.port),
    }
    return torchrun.told(command, {name: shlex.quote(each) for name, each in options.items()})
