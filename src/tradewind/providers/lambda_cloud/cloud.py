"""Lambda Cloud, as the rest of Tradewind sees it (providers/cloud.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.finding import Finding
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.providers import elsewhere
from tradewind.providers.cloud import Rentable, Setting
from tradewind.providers.lambda_cloud import footprint as footprints
from tradewind.providers.lambda_cloud.facts import FACTS, IMAGE, PASS_S
from tradewind.providers.lambda_cloud.footprint import Footprint
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.model.ratecard import RateCard
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.lambda_cloud.provider import LambdaProvider
    from tradewind.providers.lambda_cloud.setup import Look
    from tradewind.providers.usable import Usable

_USER = "ubuntu"  # of all its images


class Lambda(Usual):
    name = "lambda"
    title = "Lambda"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = ()
    """Its machines have no identity: they are lent passes to the store."""
    settings: tuple[Setting, ...] = (
        Setting(
            name="ssh_key",
            metavar="NAME",
            words="An SSH key that Lambda has; else yours of ~/.ssh is added.",
        ),
        Setting(
            name="admit",
            metavar="NETWORK",
            words="Let machines of this private network in, for runs of several machines.",
        ),
        Setting(
            name="image",
            metavar="FAMILY",
            words=f"A family of images to start them from, instead of {IMAGE}.",
        ),
        elsewhere.BUCKET_REGION,
    )
    pythons: tuple[str, ...] = ("3.12",)
    """Ubuntu 24.04's own."""

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        from tradewind.providers.lambda_cloud.api import FILE, VARIABLE

        return bool(env.get(VARIABLE)) or (user / FILE).exists()

    def checked(self, store_url: str) -> str:
        from tradewind.providers.lambda_cloud.setup import checked

        return checked(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url, *regions)

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        from tradewind.providers.lambda_cloud.api import Api
        from tradewind.providers.lambda_cloud.setup import Look, wish_of

        return Look(Api(), wish_of(store_url, regions, settings))

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        return [
            "Lambda bills machines until they are terminated, also after they have shut down: keep"
            " a controller looking while a run has machines (`tradewind watch`)"
        ]

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.lambda_cloud.api import Api
        from tradewind.providers.lambda_cloud.checks import checks

        yield from checks(Api(), footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> LambdaProvider:
        from tradewind.providers.lambda_cloud.api import Api
        from tradewind.providers.lambda_cloud.provider import LambdaProvider

        return LambdaProvider(Api(), footprint, owner, pack)

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.lambda_cloud.api import Api
        from tradewind.providers.lambda_cloud.usable import usable

        return usable(Api(), footprint, ways, store_url)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        """Its disk and its address are in the machine's price."""
        from msgspec.structs import replace

        from tradewind.providers import charges

        _check(spec, way)
        kept_s = elsewhere.kept_s(footprint.bucket_provider)
        place, bucket = (self.name, way.region), elsewhere.bucket(footprint)
        rates = charges.store(card, place, bucket, kept_s)
        return replace(way, pass_s=PASS_S, rates=rates)

    def warnings(
        self, footprint: Footprint, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        """Prices that are assumed."""
        from tradewind.providers import charges

        places = [(self.name, region) for region in regions]
        return charges.assumptions(card, places, elsewhere.bucket(footprint), disks=())

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        return "Lambda keeps no secrets: let the job read it from a bucket that it may read"

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        from tradewind.providers.lambda_cloud import names
        from tradewind.providers.lambda_cloud.api import Api

        name = names.of_machine(machine.machine_id)
        there = {each.name: each.ip for each in Api().instances()}
        address = there.get(name.text) if name else None
        if not address:
            raise NotFound(
                f"Lambda tells no address of {machine.machine_id}",
                hint="it has one once it is up; tradewind ps shows whether it is",
            )
        return ["ssh", *(["-i", key] if key else []), f"{_USER}@{address}", *words]


def _check(spec: Spec, way: Way) -> None:
    """That machines can be called by the run's name, and given all that its job needs."""
    from tradewind.providers.lambda_cloud.names import longest

    most = longest(way.nodes)
    if len(spec.name) > most:
        raise InvalidValue(
            f"a run on Lambda has a name of {most} characters at most, and {spec.name} has"
            f" {len(spec.name)}: Lambda's machines have nothing but 64 characters to say whose they"
            " are",
            hint="--name NAME, or `name:` in the workload file",
        )
    if spec.job.get("secrets"):
        raise InvalidValue(
            "run.secrets: machines of Lambda have no identity, and cannot look up secrets",
            hint="let the job read them from a bucket that it may read",
        )


CLOUD: Rentable = Lambda()
