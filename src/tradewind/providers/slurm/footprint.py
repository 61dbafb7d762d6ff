"""What `tradewind setup slurm` has found for one store, by cluster, and where that is written down:
in the store itself (`providers/slurm.json`). It has no credentials in it: whoever looks after the
runs of a store reaches the login node by an OpenSSH of their own.
"""

from __future__ import annotations

import shlex
from typing import Annotated

from msgspec import Meta, Struct

from tradewind.model import places as keys
from tradewind.providers import recorded
from tradewind.providers.elsewhere import Clusters

KEY = keys.footprint("slurm")


_Word = Annotated[str, Meta(pattern=r"^[^\s\x00-\x1f-][^\x00-\x1f]{0,255}$|^$")]
"""What becomes a part of a command begins with no dash, and has one line."""
_Folder = Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]{1,1023}$")]


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    login: _Word = ""
    """Where Slurm's commands are run, as OpenSSH takes it; "": on this computer."""
    user: Annotated[_Word, Meta(min_length=1)]
    """Whose jobs they are."""
    folder: _Folder
    """On a file system that the login node and all nodes share."""
    version: _Word = ""
    partitions: tuple[_Word, ...] = ()
    """That jobs may go to; none: all that admit this user."""
    account: _Word = ""
    qos: _Word = ""
    constraint: _Word = ""
    """Features that nodes must have, as sbatch's --constraint takes them."""
    accelerators: dict[str, str] = {}
    """Of partitions whose GRES do not name their type, or name it as nobody else does."""
    prepare: tuple[str, ...] = ()
    """Lines of shell for nodes, before anything else, as `module load python/3.12`."""
    scratch: str = ""
    """A folder of each node's own; "": $TMPDIR or /tmp."""
    containers: _Word = ""
    """What runs images there: "pyxis" or "apptainer"; "": nothing that anybody has told of."""
    image: _Word = ""
    """For jobs that name none; a name as registries take it, or a file on a shared file system."""
    unit_usd: float = 0.0
    """What a billing unit costs for an hour; 0: nothing is known of it."""
    network_gbps: float = 0.0
    interfaces: _Word = ""
    """NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME of jobs."""


class Footprint(Clusters[Cluster], frozen=True, kw_only=True):
    """Partitions are in the names of types: the same nodes may be in several."""

    @property
    def account(self) -> str:
        return ", ".join(f"{each.user}@{name}" for name, each in self.clusters.items())


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "slurm")


def setup_command(store_url: str, *logins: str) -> str:
    """That can be pasted: what finds out again what jobs of a store need."""
    options = "".join(f" --login {shlex.quote(each)}" for each in logins if each)
    return f"tradewind setup slurm --store {store_url or 's3://BUCKET'}{options}"
