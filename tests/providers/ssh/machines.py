"""Machines on hosts whose supervisor only waits: a kit with another bootstrap."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tests.providers.ssh.hosts import Hosts
from tradewind.model.run import Request, Way
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import footprint as footprints
from tradewind.providers.ssh import names
from tradewind.providers.ssh.facts import FACTS
from tradewind.providers.ssh.footprint import Footprint
from tradewind.providers.ssh.provider import SshProvider
from tradewind.providers.ssh.setup import Look, Wish

STORE, OTHERS = "s3://runs/team", "s3://others/team"
KIND = "1xA100-SXM4-80GB"
_WAITS = """
import json, signal, sys
from pathlib import Path
home = Path(sys.argv[1]).parent
(home / "boot.seen").write_text(Path(sys.argv[1]).read_text())
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
print("waits", flush=True)
while True:
    signal.pause()
"""


def way(**changes: object) -> Way:
    made = replace(
        WAY,
        provider="ssh",
        region="hosts",
        zone="",
        instance_type=KIND,
        market="on_demand",
        facts=FACTS,
    )
    return replace(made, **changes)


def kit(folder: Path, program: str = _WAITS) -> tuple[Path, str]:
    wheel, tar = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tradewind/supervisor/bootstrap.py", program)
    with tarfile.open(fileobj=tar, mode="w") as made:
        info = tarfile.TarInfo("tradewind-0-py3-none-any.whl")
        info.size = len(wheel.getvalue())
        made.addfile(info, io.BytesIO(wheel.getvalue()))
    path = folder / "kit.tar"
    path.write_bytes(tar.getvalue())
    path.chmod(0o644)
    return path, hashlib.sha256(tar.getvalue()).hexdigest()


def set_up(hosts: Hosts, *names: str, store_url: str = STORE, relay: bool = False) -> Footprint:
    wish = Wish(store_url=store_url, hosts=names or tuple(hosts.machines), relay=relay)
    return Look(wish).prepared(None).carry_out()


def folders(footprint: Footprint, *stores: str) -> None:
    """As setup leaves them on every host: a test before may have removed them."""
    for store_url in stores or (STORE,):
        asked = clients.clients(footprint, names.owner_of(store_url))
        told = clients.each(asked, lambda client: client.ask("make", "making its folder"))
        assert all(answer == {"made": True} for answer in told.values()), told


def provider(
    footprint: Footprint, at: Path, store_url: str = STORE, program: str = _WAITS
) -> SshProvider:
    path, sha256 = kit(at, program)

    def pack(request: Request, architecture: str) -> Luggage:
        tell = tuple(f"file://{at}/told-{rank}" for rank in range(request.way.nodes))
        return Luggage(kit=f"file://{path}", sha256=sha256, tell=tell)

    return SshProvider(footprint, store_url, pack)


def opened(argument: str) -> SshProvider:
    """For another process."""
    told = json.loads(argument)
    return provider(footprints.decoded(told["footprint"].encode()), Path(told["at"]))


def argument(footprint: Footprint, at: Path) -> str:
    return json.dumps({"footprint": footprint.encoded().decode(), "at": str(at)})
