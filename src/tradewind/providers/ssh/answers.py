"""What hosts answer, checked: a host may be anybody's, and its words go into plans and journals."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from tradewind.base.decoding import learn
from tradewind.base.errors import SourceFailed
from tradewind.model.run import TAKEN, Machine
from tradewind.providers.ssh import names
from tradewind.providers.ssh.client import Client

Text = Annotated[str, Meta(max_length=4096)]
T = TypeVar("T")


class Gpu(Struct, frozen=True, kw_only=True):
    index: int
    uuid: Text
    name: Text
    memory_mb: int
    state: Text
    who: Text = ""


class Found(Struct, frozen=True, kw_only=True):
    """A host, as it was looked at."""

    user: Text
    hostname: Text
    python: Text
    architecture: Text
    system: Text
    cores: int
    memory_gb: float
    disk_gb: float
    folder: Text
    folder_there: bool
    writable: bool
    interfaces: list[list[Text]]
    kills_processes: bool
    gpus: list[Gpu]
    trouble: Text
    store: Text = ""


class Kept(Struct, frozen=True, kw_only=True):
    """A machine, as its host has it."""

    machine_id: Text
    launch_id: Text
    run_id: Text
    leg: int
    rank: int
    launched_s: int
    gpus: list[Text] = []
    ended_s: int | None = None
    taken: bool = False
    why: Text = ""
    said: Text = ""
    """The end of what one has printed that has failed by itself."""


def gpus(client: Client, doing: str) -> list[Gpu]:
    return _read(client, client.ask("gpus", doing)["gpus"], list[Gpu])


def look(client: Client, probe: str = "") -> Found:
    told = client.ask("look", f"looking at {client.host.target}", probe=probe)
    return _read(client, told["host"], Found)


def machines(client: Client) -> list[Machine]:
    return [machine for machine, _ in told(client)]


def told(client: Client) -> list[tuple[Machine, str]]:
    """Machines, and the last words of those that have failed by themselves."""
    answer = client.ask("list", "listing machines")["machines"]
    return [(_machine(client, each), each.said) for each in _read(client, answer, list[Kept])]


def launched(client: Client, told: dict[str, Any]) -> Machine:
    return _machine(client, _read(client, told, Kept))


def _machine(client: Client, kept: Kept) -> Machine:
    if kept.machine_id != names.machine_id(client.name, kept.launch_id, kept.rank):
        raise SourceFailed(f"host {client.name} tells of {kept.machine_id!r}, which is none of its")
    return Machine(
        machine_id=kept.machine_id,
        launch_id=kept.launch_id,
        run_id=kept.run_id,
        leg=kept.leg,
        rank=kept.rank,
        launched_s=kept.launched_s,
        ended_s=kept.ended_s,
        ended_by=TAKEN if kept.taken else "",
        ended_why=kept.why if kept.taken else "",
    )


def _read(client: Client, told: object, kind: type[T]) -> T:
    try:
        learn(kind)  # hosts are asked by threads
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise SourceFailed(f"host {client.name} answers what makes no sense: {error}") from None
