"""Slurm clusters, as the rest of Tradewind sees them (providers/cloud.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.finding import Finding
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.providers import elsewhere
from tradewind.providers.cloud import Rentable, Setting
from tradewind.providers.slurm import footprint as footprints
from tradewind.providers.slurm.facts import FACTS, IMAGE_S, PASS_S
from tradewind.providers.slurm.footprint import Footprint
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.model.ratecard import RateCard
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.offered import Offered, Offering, Types
    from tradewind.providers.slurm.provider import SlurmProvider
    from tradewind.providers.slurm.setup import Look
    from tradewind.providers.usable import Usable


class Slurm(Usual):
    name = "slurm"
    title = "Slurm"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = ("file",)
    """A folder on a file system that nodes and this computer share. To buckets they are nobody."""
    place = "login"
    place_words = (
        "A login node, as OpenSSH takes it: user@host[:port], or a Host of your ~/.ssh/config."
        " Default: this computer. May be repeated, for several clusters."
    )
    settings: tuple[Setting, ...] = (
        Setting(
            name="partition",
            metavar="NAME",
            many=True,
            words="Use this partition; default: all that admit you. May be repeated.",
        ),
        Setting(name="account", metavar="NAME", words="Slurm's account that jobs are charged to."),
        Setting(name="qos", metavar="NAME", words="Quality of service that jobs ask for."),
        Setting(
            name="constraint", metavar="FEATURES", words="Features of nodes, as sbatch takes them."
        ),
        Setting(
            name="accelerator",
            metavar="PARTITION=NAME",
            many=True,
            words="What its GPUs are, where GRES does not say, as gpu=a100-80gb. May be repeated.",
        ),
        Setting(
            name="prepare",
            metavar="LINE",
            many=True,
            words="Shell to run on nodes first, as 'module load python/3.12'. May be repeated.",
        ),
        Setting(
            name="containers",
            metavar="pyxis|apptainer",
            words="What runs the images that jobs name (run.image in workloads).",
        ),
        Setting(
            name="image", metavar="IMAGE", words="For jobs that name none; or a .sif or .sqsh file."
        ),
        Setting(
            name="folder",
            metavar="PATH",
            words="Of yours, that all nodes share. Default: ~/.tradewind/slurm there.",
        ),
        Setting(
            name="scratch", metavar="PATH", words="On each node, to work in. Default: $TMPDIR."
        ),
        Setting(
            name="unit_price",
            metavar="USD",
            words="What a billing unit of the partition's TRESBillingWeights costs an hour.",
        ),
        Setting(name="network", metavar="RATE", words="Between nodes, as 100Gbps."),
        Setting(name="interfaces", metavar="NAMES", words="Network interfaces for NCCL and Gloo."),
        elsewhere.BUCKET_REGION,
    )
    pythons: tuple[str, ...] = ("3.11", "3.12")

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        from shutil import which

        return bool(env.get("SLURM_CONF")) or which("sbatch", path=env.get("PATH")) is not None

    def checked(self, store_url: str) -> str:
        from tradewind.providers.slurm.wish import checked_url

        return checked_url(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url)

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        from tradewind.providers.slurm.setup import Look
        from tradewind.providers.slurm.wish import wish_of

        return Look(wish_of(store_url, regions, settings))

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.slurm.checks import checks

        yield from checks(footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> SlurmProvider:
        from tradewind.providers.slurm.provider import SlurmProvider

        return SlurmProvider(footprint, owner, pack)

    def offers(self, footprint: Footprint, types: Types) -> Offering:
        from tradewind.base.errors import TradewindError
        from tradewind.providers.offered import Offering
        from tradewind.providers.slurm import shapes
        from tradewind.providers.slurm.usable import sights

        found: list[Offered] = []
        warnings: list[str] = []
        for name, sight in sights(footprint, set(footprint.clusters)).items():
            if isinstance(sight, TradewindError):
                warnings.append(f"{name}: {sight.message}")
                continue
            told = shapes.offering(name, sight, footprint.clusters[name])
            found += told.offers
            warnings += told.warnings
        return Offering(offers=tuple(found), warnings=tuple(warnings))

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.slurm.usable import usable

        return usable(footprint, ways, store_url)

    def lends(self, footprint: Footprint, store_url: str) -> bool:
        return store_url.partition("://")[0] != "file"

    def environment(self, footprint: Footprint, env: Mapping[str, str]) -> dict[str, str]:
        """Where the store is, as this computer finds it."""
        return elsewhere.addresses(env)

    def image(self, footprint: Footprint, way: Way, wanted: str) -> str:
        from tradewind.providers.slurm.containers import chosen

        return chosen(footprint.clusters[way.region], wanted, way.region)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        """Its disk and its network are the cluster's own: only the bucket's side is paid for."""
        from msgspec.structs import replace

        if spec.job.get("secrets"):
            raise InvalidValue(
                "run.secrets: jobs of Slurm have no identity, and cannot look up secrets",
                hint="let the job read them from a file that only you can read",
            )
        image = self.image(footprint, way, str(spec.job.get("image") or ""))
        if image:
            placed = dict(way.layout.get(self.name) or {}) | {"image": image}
            facts = replace(way.facts, boot_timeout_s=max(way.facts.boot_timeout_s, IMAGE_S))
            way = replace(way, facts=facts, layout=way.layout | {self.name: placed})
        if not footprint.bucket_provider:
            return way
        return replace(way, pass_s=PASS_S, rates=self.outside(footprint, card))

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        return "Slurm keeps no secrets: let the job read a file that only you can read"

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        raise InvalidValue(
            f"which cluster {machine.machine_id} is on, only its store tells",
            hint="tradewind ssh RUN --store URL",
        )

    def shell_at(
        self, footprint: Footprint, machine: Machine, key: str, words: Sequence[str]
    ) -> list[str]:
        from tradewind.providers.slurm.shell import command

        return command(footprint, machine, key, words)

    def check_shell(self, command: Sequence[str]) -> None:
        from shutil import which

        if which(command[0]) is None:
            raise NotFound(f"there is no {command[0]} here", hint="install OpenSSH's client")


CLOUD: Rentable = Slurm()
