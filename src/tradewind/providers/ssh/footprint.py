"""What `tradewind setup ssh` has found and made for one store, host by host, and where that is
written down: in the store itself (`providers/ssh.json`). It has no keys in it: whoever looks after
the runs of a store brings an OpenSSH that is let in by the hosts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tradewind.model import places as keys
from tradewind.providers import recorded
from tradewind.providers.ssh import names

KEY = keys.footprint("ssh")

_Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:%@-]{0,128}$")]
_Path = Annotated[str, Meta(pattern=rf"^(|{names.PATH})$")]
_Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
_Folder = Annotated[
    str, Meta(pattern=r"^(|[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|\.[A-Za-z0-9_-]{1,127})$")
]
"""What is written down becomes commands and folders."""


class Host(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: Annotated[str, Meta(pattern=rf"^{names.TARGET}$")]
    """As ssh is told: [USER@]HOST[:PORT]."""
    region: str
    """Hosts of one region reach each other."""
    gpus: dict[str, int]
    """How many of each model, as the driver calls it."""
    memory_mb: dict[str, int] = {}
    """Of one GPU of each model."""
    address: _Word = ""
    """By which the others reach it."""
    interface: _Word = ""
    """That has this address."""
    python: str = ""
    """Of the Python that runs there: 3.12."""
    python_at: _Path = ""
    """A folder whose Python comes before all others there; "": that of its PATH."""
    root: str = ""
    """Our folder there."""
    relayed: bool = False
    """It reaches the store through the connection of whoever looks after the runs."""
    architecture: str = "x86_64"
    cores: int = 0
    ram_gb: float = 0.0


class Footprint(recorded.Record, frozen=True, kw_only=True):
    hosts: dict[_Name, Host]
    """By their short names."""
    folder: _Folder = ""
    """On each of them, below the user's home; "": the usual one."""
    network_gbps: float = 0.0
    """Between them; 0: what is assumed."""
    bucket_provider: str = ""
    bucket_region: str = ""
    """Where the store's bucket is, for what its traffic costs; "": it is a folder, or unknown."""

    @property
    def account(self) -> str:
        return ", ".join(each.target for each in self.hosts.values())

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        return {each.region: ("",) for each in self.hosts.values()}

    def within(self, region: str) -> dict[str, Host]:
        return {name: each for name, each in self.hosts.items() if each.region == region}


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "ssh")


def setup_command(store_url: str, *hosts: str) -> str:
    """That can be pasted: what makes, or mends, what machines of a store need."""
    named = " ".join(f"--host {each}" for each in hosts or ("USER@HOST",))
    return f"tradewind setup ssh --store {store_url or 'file:///shared/folder'} {named}"
