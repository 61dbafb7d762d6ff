"""Which hosts reach each other, and by what address: a leg over several that do not would hang.

A host is reached where its SSH server answers to the others: it is all that is known to listen.
Whether a firewall between hosts lets other ports through, only a run over several of them shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base.errors import TradewindError
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh.answers import Found
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.footprint import Host


class Door(Struct, frozen=True):
    """An address of a host, and the interface that has it."""

    host: str
    interface: str
    address: str


class Seen(Struct, frozen=True):
    doors: tuple[Door, ...]
    """Those towards the world before the others of a host."""
    by: dict[str, frozenset[Door]]
    """By host, those that it can connect to."""


def seen(several: Mapping[str, Client], looked: Mapping[str, Found]) -> Seen:
    asked = {name: client for name, client in several.items() if name in looked}
    doors = [
        Door(name, each[0], each[1])
        for name in asked
        for each in looked[name].interfaces
        if len(each) == 2
    ]
    ports = {name: clients.ports(client.host.target) for name, client in asked.items()}
    tried = [(door, port) for door in doors for port in ports[door.host]]

    def whom(client: Client) -> frozenset[Door]:
        addresses = [[door.address, port] for door, port in tried]
        answer = client.ask("reach", f"asking {client.name} whom it reaches", addresses=addresses)
        told = answer["reached"]
        return frozenset(door for (door, _), there in zip(tried, told, strict=False) if there)

    told = clients.each(asked, whom) if len(asked) > 1 else {}
    return Seen(
        tuple(doors),
        {
            name: frozenset() if isinstance(found, TradewindError) else found
            for name, found in told.items()
        },
    )


def placed(
    hosts: Mapping[str, Host], seen: Seen, anew: Collection[str], group: str
) -> dict[str, Host]:
    """Each with its address and its region. Hosts of `anew` (as ssh is told), and those without a
    region, join the group if they and all of its others reach each other; else they are alone."""
    doors = {name: door for name in hosts if (door := _best(name, seen)) is not None}
    made = dict(hosts)
    for name, door in doors.items():
        made[name] = replace(made[name], address=door.address, interface=door.interface)
    settled = {name for name, host in hosts.items() if host.region and host.target not in anew}
    for name in hosts:
        if name in settled:
            continue
        others = [each for each in settled if made[each].region == group and each in doors]
        joins = all(_reach(name, other, doors, seen) for other in others)
        made[name] = replace(made[name], region=group if joins else name)
        settled.add(name)
    return made


def _best(name: str, seen: Seen) -> Door | None:
    """The address that most others reach; where several are alike, the first."""
    own = [door for door in seen.doors if door.host == name]
    return max(
        own,
        key=lambda door: sum(door in found for by, found in seen.by.items() if by != name),
        default=None,
    )


def _reach(one: str, other: str, doors: Mapping[str, Door], seen: Seen) -> bool:
    if one not in doors:
        return False
    there, back = seen.by.get(one, frozenset()), seen.by.get(other, frozenset())
    return doors[other] in there and doors[one] in back
