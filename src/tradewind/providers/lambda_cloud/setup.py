"""`tradewind setup lambda` and `teardown`: an SSH key, and a firewall rule where machines are to
talk with each other. The bucket is another cloud's, and stays as it is."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model import buckets
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.lambda_cloud import names
from tradewind.providers.lambda_cloud.api import ENDING, Api, SshKey
from tradewind.providers.lambda_cloud.facts import IMAGE, REGIONS
from tradewind.providers.lambda_cloud.footprint import Footprint, called

_PUBLIC = ("id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub")


class Wish(Struct, frozen=True, kw_only=True):
    store_url: str
    regions: tuple[str, ...] = ()
    ssh_key: str = ""
    admit: str = ""
    image: str = ""
    bucket_region: str = ""


def checked(store_url: str) -> str:
    scheme, found, rest = store_url.partition("://")
    if scheme not in buckets.STORES or not found or not rest.strip("/"):
        known = ", ".join(f"{each}://BUCKET" for each in buckets.STORES)
        raise InvalidValue(
            f"machines of Lambda cannot reach the store {store_url!r}", hint=f"one of {known}"
        )
    return store_url.rstrip("/")


class Look:
    """At an account."""

    store_env: Mapping[str, str] | None = {}
    """The bucket is opened as anywhere else; it must be there."""

    def __init__(self, api: Api, wish: Wish) -> None:
        self._api, self._wish = api, wish
        self._called = called(wish.store_url)
        self._keys = api.ssh_keys()

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        wish = self._wish
        admit = _network(wish.admit or (known.admit if known else ""))
        key, line = self._key(known)
        lines = [line]
        if admit:
            lines.append(self._rule(admit))
        regions = self._regions(known)

        def record() -> Footprint:
            made = key or self._named(self._called)
            assert made is not None  # it was just made
            return Footprint(
                ssh_key=made.name,
                ssh_key_id=made.id,
                regions=regions,
                image=wish.image or (known.image if known else IMAGE),
                admit=admit,
                bucket_provider=buckets.home(wish.store_url) or "",
                bucket_region=wish.bucket_region or (known.bucket_region if known else ""),
            )

        for region in regions:
            lines.append(Line("region", region, region, there=True, remark="nothing to make"))
        return Prepared(lines, f"of {self._api.key_from}", record)

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        if delete_store:
            raise InvalidValue(
                "the bucket is not Lambda's", hint="teardown of its own cloud deletes it"
            )
        owner = names.owner_of(self._wish.store_url)
        up = [
            name.machine_id
            for each in self._api.instances()
            if each.status not in ENDING
            and (name := names.parsed(each.name)) is not None
            and name.owner == owner
        ]
        if up:
            raise InvalidValue(
                f"machines of {self._wish.store_url} are up: {', '.join(up[:4])}",
                hint=f"tradewind sweep --store {self._wish.store_url} ends what no run claims",
            )
        lines = []
        key = self._named(self._called)
        if key is not None:
            line = Line("ssh key", key.name, "", there=True)
            line.add("remove it", partial(self._api.remove_ssh_key, key))
            lines.append(line)
        rules = self._api.rules()
        if any(_is_ours(rule, self._called) for rule in rules):
            line = Line("firewall rule", self._called, "", there=True)
            line.add("remove it; the others stay", partial(self._put_rule, ""))
            lines.append(line)
        return lines

    # -- what there is -----------------------------------------------------------------------------

    def _key(self, known: Footprint | None) -> tuple[SshKey | None, Line]:
        """The SSH key that machines are launched with, or None where it is to be added."""
        wanted = self._wish.ssh_key or (known.ssh_key if known else "")
        if wanted and wanted != self._called:
            found = self._named(wanted)
            if found is None:
                there = [each.name for each in self._keys]
                raise NotFound(
                    f"Lambda has no SSH key {wanted}",
                    hint=f"there: {', '.join(there)}" if there else "cloud.lambda.ai/ssh-keys",
                    choices=there,
                )
            return found, Line("ssh key", found.name, "", there=True)
        if (found := self._named(self._called)) is not None:
            return found, Line("ssh key", found.name, "", there=True)
        path, public = _public_key(Path.home())
        same = [each for each in self._keys if _alike(each.public_key, public)]
        if same:
            return same[0], Line("ssh key", same[0].name, "", there=True)
        line = Line("ssh key", self._called, "", there=False)
        line.add(f"add {path}", partial(self._add_key, public))
        return None, line

    def _add_key(self, public: str) -> None:
        self._keys.append(self._api.add_ssh_key(self._called, public))

    def _named(self, name: str) -> SshKey | None:
        return next((each for each in self._keys if each.name == name), None)

    def _rule(self, admit: str) -> Line:
        there = [rule for rule in self._api.rules() if _is_ours(rule, self._called)]
        line = Line("firewall rule", self._called, "", there=bool(there))
        if not any(rule.get("source_network") == admit for rule in there):
            line.add(
                f"let {admit} in, at every port of every machine of this account",
                partial(self._put_rule, admit),
            )
        return line

    def _put_rule(self, admit: str) -> None:
        """Lambda takes all rules at once: those of others are read again just before."""
        others = [rule for rule in self._api.rules() if not _is_ours(rule, self._called)]
        ours = [
            {
                "protocol": protocol,
                "port_range": [1, 65535],
                "source_network": admit,
                "description": self._called,
            }
            for protocol in ("tcp", "udp")
        ]
        self._api.replace_rules([*others, *(ours if admit else [])])

    def _regions(self, known: Footprint | None) -> tuple[str, ...]:
        """Those that are asked for and those that were; else all that there are."""
        named = {name for offered in self._api.offers().values() for name in offered.regions}
        there = sorted({*REGIONS, *named, *(known.regions if known else ())})
        for region in self._wish.regions:
            if region not in there:
                close = get_close_matches(region, there, n=1)
                meant = f" (did you mean {close[0]}?)" if close else ""
                raise NotFound(f"Lambda has no region {region}{meant}", hint=", ".join(there))
        before = known.regions if known else ()
        return tuple(sorted({*before, *self._wish.regions})) or tuple(there)


def _is_ours(rule: Mapping[str, Any], name: str) -> bool:
    return rule.get("description") == name


def _network(text: str) -> str:
    if not text:
        return ""
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise InvalidValue(f"--admit: {error}", hint="for example 10.0.0.0/8") from None
    if not network.is_private:
        raise InvalidValue(
            f"--admit {text} would let the internet in: whoever reaches a training can run code in"
            " it",
            hint="a private network, for example 10.0.0.0/8",
        )
    return str(network)


def _public_key(user: Path) -> tuple[str, str]:
    for name in _PUBLIC:
        path = user / ".ssh" / name
        try:
            return f"~/.ssh/{name}", path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
    raise NotFound(
        "Lambda launches no machine without an SSH key, and there is none in ~/.ssh",
        hint="--ssh-key NAME takes one that Lambda has; `ssh-keygen -t ed25519` makes one",
    )


def _alike(one: str, other: str) -> bool:
    """But for the comment."""
    return one.split()[:2] == other.split()[:2]


def wish_of(store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Wish:
    given = {name: value for name, value in settings.items() if value}
    return Wish(store_url=store_url, regions=tuple(regions), **given)
