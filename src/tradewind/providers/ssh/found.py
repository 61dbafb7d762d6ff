"""What setup has found at hosts: whether machines can be there, and all of it in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.providers.ssh.answers import Found
from tradewind.providers.ssh.facts import LEAST_DISK_GB
from tradewind.providers.ssh.footprint import Host
from tradewind.providers.ssh.there.gpus import BUSY, LEASED, UNUSABLE


@contextmanager
def probe(folder: Path | None) -> Iterator[str]:
    """A file in the store's folder, for as long as hosts look whether they see it."""
    if folder is None:
        yield ""
        return
    path = folder / f".tradewind-probe-{clock.new_id('p')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise NoAccess(f"{folder} cannot be written to: {error.strerror or error}") from None
    try:
        yield str(path)
    finally:
        with suppress(OSError):
            path.unlink()


def check(target: str, looked: Found, store_url: str, *, relays: bool = False) -> None:
    """Raises what keeps machines from being there. `relays`: the store need not be to be seen."""
    if looked.system != "Linux":
        raise InvalidValue(f"{target} has {looked.system}, and machines need Linux")
    if looked.trouble or not any(each.state != UNUSABLE for each in looked.gpus):
        why = looked.trouble or (looked.gpus[0].who if looked.gpus else "its driver shows no GPU")
        raise NotFound(
            f"{target} has no GPU that can be used: {why}",
            hint=f"`ssh {target} nvidia-smi` (or rocm-smi) must show one; leave the host out if it"
            " has none",
        )
    if not looked.writable:
        raise NoAccess(
            f"{looked.user} may not write {looked.folder} on {target}",
            hint="the home folder there must be the user's own",
        )
    if looked.disk_gb < LEAST_DISK_GB:
        raise NoAccess(
            f"{target} has {looked.disk_gb} GB free at {looked.folder}, and"
            f" {LEAST_DISK_GB:g} GB are needed",
            hint=f"`ssh {target} df -h` shows what is full",
        )
    if looked.kills_processes:
        raise NoAccess(
            f"{target} kills what a user has started when the connection ends"
            " (KillUserProcesses=yes)",
            hint="its administrator can set KillUserProcesses=no in /etc/systemd/logind.conf",
        )
    if looked.store and not relays:
        raise NoAccess(
            f"{store_url} is not shared with {target}: {looked.store}",
            hint="a folder that every host and this computer have at the same path (NFS), or"
            " --store s3://BUCKET; or --relay, and hosts reach it through your connection, while"
            " `tradewind run` or `tradewind watch` runs",
        )


def noted(host: Host, looked: Found) -> Host:
    """As it is written down."""
    usable = [each for each in looked.gpus if each.state != UNUSABLE]
    return replace(
        host,
        gpus=dict(Counter(each.name for each in usable)),
        memory_mb={each.name: each.memory_mb for each in usable},
        python=looked.python,
        root=looked.folder,
        relayed=bool(looked.store),
        architecture=looked.architecture,
        cores=looked.cores,
        ram_gb=looked.memory_gb,
    )


def words(looked: Found) -> str:
    """What a host has, for who says yes to it."""
    models = Counter(each.name for each in looked.gpus)
    gpus = ", ".join(f"{many}× {name}" for name, many in models.items())
    states = Counter(each.state for each in looked.gpus)
    now = [
        f"{states[state]} {said}"
        for state, said in ((BUSY, "in use"), (LEASED, "leased"), (UNUSABLE, "not usable"))
        if states[state]
    ]
    free = f" ({', '.join(now)})" if now else ""
    return (
        f"{gpus}{free}, {looked.cores} cores, {looked.memory_gb:g} GB, {looked.disk_gb:g} GB of"
        f" disk free, Python {looked.python}"
    )
