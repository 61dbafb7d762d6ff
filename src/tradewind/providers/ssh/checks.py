"""Whether machines could be launched on hosts from here now. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, About, Finding
from tradewind.providers.ssh import answers, found, names, relay
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh.answers import Found
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.footprint import Footprint, setup_command
from tradewind.providers.ssh.there.drivers import FREE
from tradewind.store.links import folder_of

_found = About("ssh")


def checks(footprint: Footprint | None, *, known: bool, store_url: str) -> Iterator[Finding]:
    if footprint is None:
        if known:
            yield _found(
                MISSING,
                "nothing is set up for this store",
                why="running on hosts of your own",
                todo=setup_command(store_url),
            )
        return
    shared = folder_of(store_url) if store_url.startswith("file://") else None
    asked = clients.clients(footprint, names.owner_of(store_url))
    try:
        with found.probe(shared) as probe:
            told = clients.each(asked, lambda client: answers.look(client, probe))
    except TradewindError as error:
        yield _found(BROKEN, "the store cannot be written to", why=error.message)
        return
    for name, looked in told.items():
        if isinstance(looked, TradewindError):
            yield _found(
                BROKEN if isinstance(looked, NoAccess) else WARNING,
                f"host {name} does not answer",
                why=looked.message,
                todo=looked.hint or f"ssh {footprint.hosts[name].target}",
            )
            continue
        yield from _host(name, footprint, looked, store_url)


def _host(name: str, footprint: Footprint, looked: Found, store_url: str) -> Iterator[Finding]:
    host = footprint.hosts[name]
    try:
        found.check(host.target, looked, store_url, relays=host.relayed)
        if host.relayed:
            relay.tried(Client(name, host, names.owner_of(store_url)), store_url)
    except TradewindError as error:
        yield _found(BROKEN, f"host {name} takes no machine", why=error.message,
                     todo=error.hint or "")  # fmt: skip
        return
    if not looked.folder_there:
        yield _found(
            WARNING,
            f"the folder {looked.folder} on host {name} is gone",
            why="it is made again by the next machine there",
            todo=setup_command(store_url, host.target),
        )
    taken = [each for each in looked.gpus if each.state != FREE]
    words = "".join(f"; GPU {each.index} {each.state}: {each.who}" for each in taken)
    yield _found(
        OK,
        f"host {name} ({host.region}): {found.words(looked)}{words}",
        measured={"gpus": len(looked.gpus), "free": len(looked.gpus) - len(taken)},
    )
