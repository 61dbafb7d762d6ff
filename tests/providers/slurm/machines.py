"""A provider of jobs on a real Slurm, as several processes open it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from tests.eventually import eventually
from tests.lifecycle.builders import WAY
from tests.slurm.cluster import NAME
from tradewind.model.run import Machine, Request, Way
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.slurm import names
from tradewind.providers.slurm.facts import FACTS
from tradewind.providers.slurm.footprint import Cluster, Footprint, decoded
from tradewind.providers.slurm.provider import SlurmProvider
from tradewind.providers.slurm.script import Asked


def way(partition: str = "gpu", **more: Any) -> Way:
    asked = Asked(partition=partition, gres="gpu:a100:1", cpus=1, mem_mb=500, limit_s=7200)
    return replace(
        WAY,
        provider="slurm",
        region=NAME,
        zone="",
        instance_type=f"{partition}.a100x1",
        facts=replace(FACTS, listing_lag_s=5),
        layout={"slurm": to_builtins(asked)},
        **more,
    )


def footprint(folder: Path, **more: Any) -> Footprint:
    usual = Cluster(user="root", folder=str(folder / "jobs"), scratch=str(folder / "scratch"))
    return Footprint(clusters={NAME: replace(usual, **more)})


def packed(request: Request, architecture: str) -> Luggage:
    """Whose kit nobody hands out: machines try for a minute, and that is all they do."""
    return Luggage(kit="http://127.0.0.1:9/kit", sha256="0" * 64, tell=())


def set_up(made: Footprint, owner: str) -> None:
    """As setup leaves it."""
    for each in made.clusters.values():
        Path(each.folder).mkdir(parents=True, exist_ok=True)
        (Path(each.folder) / names.mark(names.owner_of(owner))).touch()


def argument(made: Footprint, owner: str) -> str:
    set_up(made, owner)
    return json.dumps([made.encoded().decode(), owner])


def opened(given: str) -> SlurmProvider:
    record, owner = json.loads(given)
    return SlurmProvider(decoded(record.encode()), owner, packed)


class Patient:
    """Launches, and waits until what was launched has begun: so a provider whose launches wait in a
    queue answers as one that has machines at once."""

    def __init__(self, provider: SlurmProvider) -> None:
        self.provider = provider
        self.list_machines = provider.list_machines
        self.terminate = provider.terminate

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        return eventually(lambda: self.provider.launch(request, after, key))


def opened_patiently(given: str) -> Patient:
    return Patient(opened(given))
