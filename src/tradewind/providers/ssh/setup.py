"""`tradewind setup ssh`: looks at hosts, shows what they have, and makes one folder on each, which
teardown removes. Nothing else is written there, nothing is installed, and nothing keeps running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TradewindError
from tradewind.model import buckets
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.ssh import answers, found, names, reach, relay
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh.answers import Found
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.facts import REGION
from tradewind.providers.ssh.footprint import Footprint, Host, setup_command
from tradewind.store.links import folder_of

_FILE = "file"
_MOST_BYTES = 1 << 20


class Wish(Struct, frozen=True, kw_only=True):
    store_url: str
    hosts: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    group: str = ""
    network_gbps: float = 0.0
    python: str = ""
    bucket_region: str = ""
    relay: bool = False


def checked(store_url: str) -> str:
    scheme, colon, rest = store_url.partition("://")
    if not colon and store_url.startswith("/"):
        return f"file://{store_url.rstrip('/')}"
    known = ", ".join(["file:///shared/folder", *(f"{each}://BUCKET" for each in buckets.STORES)])
    if scheme not in (_FILE, *buckets.STORES) or not colon or not rest.strip("/"):
        raise InvalidValue(
            f"machines on hosts cannot reach the store {store_url!r}", hint=f"one of {known}"
        )
    return store_url.rstrip("/")


def wish_of(store_url: str, named: Sequence[str], settings: Mapping[str, Any]) -> Wish:
    given = {name: value for name, value in settings.items() if value}
    hosts = [*named, *_listed(given.pop("hosts", ""))]
    try:
        gbps = float(given.pop("network_gbps", 0))
    except ValueError:
        gbps = -1.0
    if not 0 <= gbps < 100_000:
        raise InvalidValue("--network-gbps is no speed", hint="--network-gbps 25")
    if given.get("relay") and not store_url.startswith(f"{_FILE}://"):
        raise InvalidValue(
            f"--relay is for a folder of this computer, and {store_url} is none",
            hint="leave it out: hosts are lent passes to a bucket",
        )
    group = names.short(given.pop("group")) if given.get("group") else ""
    python = str(given.pop("python", ""))
    if python and re.fullmatch(names.PATH, python) is None:
        raise InvalidValue(
            f"--python {python!r} is no folder on a host", hint="--python /opt/conda/bin"
        )
    return Wish(
        store_url=store_url,
        hosts=tuple(dict.fromkeys(map(names.checked, hosts))),
        forget=tuple(given.pop("forget", ())),
        group=group,
        network_gbps=gbps,
        python=python,
        **given,
    )


def _listed(path: str) -> list[str]:
    if not path:
        return []
    try:
        with Path(path).open(encoding="utf-8") as stream:
            lines = stream.read(_MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or error
        raise InvalidValue(
            f"--hosts {path} cannot be read: {why}", hint="a file with a line each: user@box"
        ) from None
    hosts = [text for line in lines if (text := line.partition("#")[0].strip())]
    if not hosts:
        raise InvalidValue(f"--hosts {path} names no host", hint="a line each: user@box")
    return hosts


class Look:
    """At hosts."""

    store_env: Mapping[str, str] | None = {}
    """The store is opened as anywhere else; it must be there."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._owner = names.owner_of(wish.store_url)

    # -- setup -------------------------------------------------------------------------------------

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        before = dict(known.hosts) if known else {}
        for each in self._wish.forget:
            name = next((n for n, h in before.items() if each in (n, h.target)), None)
            if name is None:
                raise NotFound(
                    f"no host {each} is set up",
                    hint=f"there: {', '.join(before)}" if before else "none is",
                )
            del before[name]
        hosts = self._named(before)
        if not hosts:
            raise InvalidValue("no host is named", hint=setup_command(self._wish.store_url))
        looked = self._looked(hosts, before)
        hosts = {
            name: found.noted(host, looked[name]) if name in looked else host
            for name, host in hosts.items()
        }
        seen = reach.seen(self._clients(hosts), looked)
        hosts = reach.placed(hosts, seen, self._wish.hosts, self._wish.group or REGION)
        lines = [
            self._line(name, host, looked.get(name), before.get(name))
            for name, host in hosts.items()
        ]
        made = Footprint(
            hosts=hosts,
            network_gbps=self._wish.network_gbps or (known.network_gbps if known else 0.0),
            bucket_provider=buckets.home(self._wish.store_url) or "",
            bucket_region=self._wish.bucket_region or (known.bucket_region if known else ""),
        )
        return Prepared(lines, made.account, lambda: made)

    def _named(self, before: Mapping[str, Host]) -> dict[str, Host]:
        """Those that were, and those that are asked for."""
        hosts = dict(before)
        for target in self._wish.hosts:
            name = next((n for n, h in hosts.items() if h.target == target), None)
            if name is None:
                name = names.short(target, hosts)
                hosts[name] = Host(target=target, region="", gpus={})
            if self._wish.python:
                hosts[name] = replace(hosts[name], python_at=self._wish.python)
        return hosts

    def _clients(self, hosts: Mapping[str, Host]) -> dict[str, Client]:
        return {name: Client(name, host, self._owner) for name, host in hosts.items()}

    def _looked(self, hosts: Mapping[str, Host], before: Mapping[str, Host]) -> dict[str, Found]:
        """What each is and has. One that was set up before and does not answer stays as it was."""
        told: dict[str, Found | TradewindError] = {}
        with found.probe(self._shared) as probe:
            told = clients.each(self._clients(hosts), lambda one: answers.look(one, probe))
        looked: dict[str, Found] = {}
        for name, host in hosts.items():
            answer = told[name]
            if isinstance(answer, TradewindError):
                if name in before and host.target not in self._wish.hosts:
                    continue
                raise answer
            relays = self._wish.relay or host.relayed
            found.check(host.target, answer, self._wish.store_url, relays=relays)
            looked[name] = answer
        return looked

    @property
    def _shared(self) -> Path | None:
        url = self._wish.store_url
        return folder_of(url) if url.startswith(f"{_FILE}://") else None

    def _line(self, name: str, host: Host, looked: Found | None, before: Host | None) -> Line:
        if looked is None:
            return Line(
                "host", name, host.region, there=True, remark="it does not answer: as it was"
            )
        line = Line(
            "host", name, host.region, there=looked.folder_there, remark=found.words(looked)
        )
        client = Client(name, host, self._owner)
        through = ", which the store is relayed to" if host.relayed else ""
        if host.relayed:
            relay.check_path(client)
        if not looked.folder_there or (host.relayed and before != host):
            act = partial(self._made, client)
            words = f"make the folder {looked.folder}{through}"
            line.add(f"{found.words(looked)}: {words}", act)
        elif before is None or before != host:
            line.remark = f"{found.words(looked)}: write it down"
        return line

    def _made(self, client: Client) -> None:
        client.ask("make", f"making a folder on host {client.name}")
        if client.host.relayed:
            relay.tried(client, self._wish.store_url)

    # -- teardown ----------------------------------------------------------------------------------

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        if delete_store:
            raise InvalidValue(
                "the store is none of the hosts'", hint="remove its folder or bucket yourself"
            )
        if known is None:
            return []
        asked = clients.clients(known, self._owner)
        told = clients.each(asked, answers.machines)
        lines = []
        for name, several in told.items():
            if isinstance(several, TradewindError):
                raise NoAccess(
                    f"{several.message}: what is on it cannot be removed",
                    hint=f"when it is up again; or {setup_command(self._wish.store_url)}"
                    f" --forget {name}, which leaves its folder there",
                )
            up = [each.machine_id for each in several if each.ended_s is None]
            if up:
                raise InvalidValue(
                    f"machines of {self._wish.store_url} are up: {', '.join(up[:4])}",
                    hint=f"tradewind sweep --store {self._wish.store_url} ends what no run claims",
                )
            line = Line("host", name, known.hosts[name].region, there=True)
            line.add("remove its folder", partial(self._removed, asked[name]))
            lines.append(line)
        return lines

    def _removed(self, client: Client) -> None:
        living = client.ask("remove", f"removing the folder on host {client.name}")["living"]
        if living:
            raise InvalidValue(f"{living[0]} on host {client.name} is up again")
