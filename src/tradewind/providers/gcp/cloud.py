"""Google Cloud, as the rest of Tradewind sees it (providers/cloud.py). google-auth is imported when
it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base import endpoints
from tradewind.base.errors import TradewindError
from tradewind.model.beside import Beside
from tradewind.model.finding import Finding
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.providers import elsewhere
from tradewind.providers.cloud import Library, Rentable, Setting
from tradewind.providers.gcp import footprint as footprints
from tradewind.providers.gcp.facts import FACTS, FLEX_START, PASS_S, QUEUED, TPU, facts_of
from tradewind.providers.gcp.footprint import Footprint
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.model.ratecard import RateCard
    from tradewind.model.usage import Rates
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.cloud import Look
    from tradewind.providers.gcp.links import Links
    from tradewind.providers.gcp.provider import Both
    from tradewind.providers.usable import Usable

_NAMES = ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG")
_LOGIN = Path(".config/gcloud/application_default_credentials.json")
_OWN = (
    "STORAGE_EMULATOR_HOST",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER",
    endpoints.ALLOW,
)


class Gcp(Usual):
    name = "gcp"
    title = "Google Cloud"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = ("gs",)
    lent: tuple[str, ...] = ("s3",)
    settings: tuple[Setting, ...] = (
        Setting(
            name="project",
            metavar="PROJECT",
            words="The project, instead of GOOGLE_CLOUD_PROJECT or gcloud's.",
        ),
        Setting(name="private", words="Machines without addresses: they reach Google alone."),
        Setting(name="iap", words="Let Identity-Aware Proxy open shells on machines."),
        Setting(
            name="gpudirect",
            metavar="tcpx|tcpxo|rdma",
            words="Networks for GPUDirect: of A3 High, of A3 Mega, of A3 Ultra and A4.",
        ),
        Setting(
            name="image",
            metavar="IMAGE",
            words="projects/PROJECT/global/images/family/FAMILY to start them from.",
        ),
        Setting(
            name="bucket_region",
            metavar="REGION",
            words="Where an S3 store's bucket is, for what its traffic costs.",
        ),
    )
    older_s = 86_400  # setup/things.py
    pythons: tuple[str, ...] = ("3.12",)
    """Ubuntu 24.04's own."""
    library: Library | None = Library(
        extra="gcp",
        package="google-auth",
        module="google.auth",
        least="2.40",
        needed_for="renting from Google Cloud: it finds your login, and renews tokens",
    )

    @property
    def prints(self) -> Mapping[str, str]:
        from tradewind.providers.gcp.setup.printed import PRINTS

        return PRINTS

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        return any(env.get(name) for name in _NAMES) or (user / _LOGIN).exists()

    def checked(self, store_url: str) -> str:
        from tradewind.providers.gcp.setup.things import checked

        return checked(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def check(self, footprint: Footprint, store_url: str) -> None:
        from tradewind.providers.gcp import proven

        proven.check(footprint, store_url)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url, *(regions or (footprints.ANY,)))

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        from tradewind.providers.gcp.api import Google
        from tradewind.providers.gcp.setup.look import Look, wish_of

        return Look(Google(), wish_of(store_url, regions, settings))

    def printed(
        self, kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]
    ) -> str:
        from tradewind.providers.gcp.setup.printed import printed

        return printed(kind, store_url, regions, settings)

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        from tradewind.providers.gcp.setup.roles import secrets_prefix

        notes = [f"secrets of jobs: gcp-secretmanager:{secrets_prefix(store_url)}…"]
        if settings.get("gpudirect"):
            notes.append(
                "machines get these cards in legs of several; NCCL uses GPUDirect by them only with"
                " Google's plugin for it, which the image or the job must bring"
            )
        if settings.get("private"):
            notes.append(
                "machines have no way to the internet: what a job needs must be in its image, its"
                " folder or a bucket; pip finds nothing there"
            )
        return notes

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.gcp.api import Google
        from tradewind.providers.gcp.checks import checks

        try:
            google = Google()
            google.credentials.headers()
        except TradewindError as error:
            yield self.no_credentials(error)
            return
        yield from checks(google, footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> Both:
        from tradewind.providers.gcp.api import Compute, Google
        from tradewind.providers.gcp.provider import Both, ComputeProvider
        from tradewind.providers.gcp.tpu.api import Tpu
        from tradewind.providers.gcp.tpu.provider import TpuProvider

        google = Google()
        zones = [zone for some in footprint.zones.values() for zone in some]
        compute, tpu = Compute(google, footprint.project), Tpu(google, footprint.project, zones)
        return Both(
            ComputeProvider(compute, footprint, owner, pack),
            TpuProvider(tpu, footprint, owner, pack),
        )

    def links(self, footprint: Footprint, store_url: str) -> Links:
        from tradewind.providers.gcp.api import Google
        from tradewind.providers.gcp.links import Links

        return Links(Google(), footprint, store_url)

    def environment(self, footprint: Footprint, env: Mapping[str, str]) -> dict[str, str]:
        """A machine is somebody by the metadata server, with nothing said; else where this computer
        finds Google."""
        made = {"GOOGLE_CLOUD_PROJECT": footprint.project}
        return made | {name: env[name] for name in _OWN if env.get(name)}

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.gcp.api import Google
        from tradewind.providers.gcp.limits.usable import usable

        google = Google()
        google.credentials.headers()  # without a login nothing could be launched at all
        return usable(google, footprint, ways, store_url=store_url)

    def waited_for(self, way: Way, card: RateCard) -> Way | None:
        """By flex-start; of slices, as queued resources."""
        from msgspec.structs import replace

        share = card.queued_share(self.name, way.region, way.instance_type)
        if share is None:
            return None
        market = QUEUED if way.instance_type.startswith(TPU) else FLEX_START
        return replace(way, market=market, price=round(way.price * share))

    def beside(
        self, footprint: Footprint | None, region: str, instance_type: str, market: str
    ) -> Beside:
        from tradewind.providers.charges import SYSTEM_GB
        from tradewind.providers.gcp.machines.types import disk_type
        from tradewind.providers.gcp.tpu.kinds import workers

        address = 1.0 if footprint is None or footprint.public else 0.0
        if market == "spot":  # "on preemptible VM instances" ("VPC network pricing")
            address /= 2
        if instance_type.startswith(TPU):  # which has a disk in its price
            many = workers(instance_type)
            return Beside(addresses=address * many, workers=many)
        return Beside(disk_gb=SYSTEM_GB, disk=disk_type(instance_type), addresses=address)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        from msgspec.structs import replace

        from tradewind.providers import charges
        from tradewind.providers.gcp.tpu.kinds import by_worker

        place, bucket = (self.name, way.region), footprint.bucket_place
        kept_s = elsewhere.kept_s(footprint.bucket_provider)
        extra = self.beside(footprint, way.region, way.instance_type, way.market)
        way = by_worker(way) if way.instance_type.startswith(TPU) else way
        return replace(
            charges.with_beside(card, spec, way, extra),
            rates=charges.store(card, place, bucket, kept_s),
            pass_s=PASS_S if footprint.lent else 0,
            facts=facts_of(way.market, way.instance_type),
        )

    def warnings(
        self, footprint: Footprint, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        """Prices that are assumed, and names that are too long to find a machine's end by."""
        from tradewind.providers import charges
        from tradewind.providers.gcp.limits.looking import kind_of

        places = [(self.name, region) for region in regions]
        ours = [way for way in spec.ways if way.provider == self.name and way.region in regions]
        disks = sorted({kind.disk_type for way in ours if (kind := kind_of(way))})
        found = charges.assumptions(card, places, footprint.bucket_place, disks=disks)
        if any(way.instance_type.startswith(TPU) for way in ours):
            found.append(
                "TPU slices are billed until a controller deletes them, also after they have shut"
                " down: keep one looking until the run has ended, by `tradewind watch` or the"
                " crontab line that `run --detach` offers"
            )
        if not regions or _is_short(spec):
            return found
        return [
            *found,
            f"the name {spec.name} is too long for machines of Google Cloud, which then have a hash"
            " in its place: when one ends while no controller looks, its end is estimated; a name"
            f" of {_room(spec)} of a-z 0-9 - fits",
        ]

    def outside(self, footprint: Footprint, card: RateCard) -> Rates:
        from tradewind.providers import charges

        kept_s = elsewhere.kept_s(footprint.bucket_provider)
        return charges.outside(card, footprint.bucket_place, kept_s)

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        from tradewind.providers.gcp.setup.roles import secrets_prefix

        name = f"{secrets_prefix(store_url)}NAME"
        return (
            f"gcloud secrets create {name} --project {footprint.project} --data-file=FILE; then"
            f" write gcp-secretmanager:{name}"
        )

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        from tradewind.providers.gcp import shell
        from tradewind.providers.gcp.credentials import Credentials

        try:
            project = Credentials().project
        except TradewindError:
            project = ""  # gcloud has one of its own, or says so
        return shell.command(machine, project, key, words)

    def check_shell(self, command: Sequence[str]) -> None:
        from tradewind.providers.gcp import shell

        shell.check(command)


def _is_short(spec: Spec) -> bool:
    """Whether machines of its thousandth leg are called by the run's own name."""
    from tradewind.providers.gcp.labels import is_cut, shortened

    return not is_cut(shortened(spec.name, _room(spec)))


def _room(spec: Spec) -> int:
    from tradewind.providers.gcp.labels import longest

    return longest(max(way.nodes for way in spec.ways))


CLOUD: Rentable = Gcp()
