"""AWS, as the rest of Tradewind sees it (providers/cloud.py). boto3 is imported when it is used."""

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
from tradewind.providers.aws import footprint as footprints
from tradewind.providers.aws.facts import FACTS, PASS_S
from tradewind.providers.aws.footprint import Footprint
from tradewind.providers.cloud import Library, Rentable, Setting
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.model.ratecard import RateCard
    from tradewind.providers.aws.links import Links
    from tradewind.providers.aws.provider import AwsProvider
    from tradewind.providers.aws.setup.look import Look
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.usable import Usable

_NAMES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"}


class Aws(Usual):
    name = "aws"
    title = "AWS"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = ("s3",)
    lent: tuple[str, ...] = ("gs",)
    settings: tuple[Setting, ...] = (
        Setting(name="private", words="A network of its own, which reaches only S3."),
        Setting(name="ssm", words="Let Systems Manager open shells on machines."),
        Setting(name="lend", words="A role to lend to machines of other clouds, a run at a time."),
        Setting(
            name="image", metavar="IMAGE", words="An AMI or an SSM parameter to start them from."
        ),
        Setting(
            name="key_pair",
            metavar="NAME",
            words="A key pair for SSH; each region has one so named.",
        ),
        elsewhere.BUCKET_REGION,
    )
    older_s = 86_400  # setup/things.py
    pythons: tuple[str, ...] = ("3.12", "3.13")
    """Ubuntu 24.04's own, and that of Amazon's PyTorch on it."""

    library: Library | None = Library(
        extra="aws",
        package="boto3",
        least="1.34",
        needed_for="AWS_PROFILE and single sign-on, and spot prices of AWS",
    )

    @property
    def prints(self) -> Mapping[str, str]:
        from tradewind.providers.aws.setup.printed import KINDS

        return KINDS

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        return any(env.get(name) for name in _NAMES) or any(
            Path(env.get(name) or user / ".aws" / kept).exists() for name, kept in _FILES.items()
        )

    def checked(self, store_url: str) -> str:
        from tradewind.providers.aws.setup.things import checked

        return checked(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url, *regions)

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        from tradewind.providers.aws.clients import Account
        from tradewind.providers.aws.setup.look import Look
        from tradewind.providers.aws.setup.make import Wish

        given = {name: value for name, value in settings.items() if value}
        return Look(Account(), Wish(store_url=store_url, regions=tuple(regions), **given))

    def printed(
        self, kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]
    ) -> str:
        from tradewind.providers.aws.setup.printed import printed

        return printed(kind, store_url, regions, settings)

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        path = footprints.secrets_path(store_url)
        notes = [f"secrets of jobs: aws-ssm:/{path}… and aws-secretsmanager:{path}…"]
        if settings.get("private"):
            notes.append(
                "machines have no way to the internet: what a job needs must be in its image, its"
                " folder or a bucket of this region; pip and shells by --ssm find nothing there"
            )
        return notes

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.aws.checks.account import checks
        from tradewind.providers.aws.clients import Account

        try:
            account = Account()
        except TradewindError as error:
            yield self.no_credentials(error)
            return
        yield from checks(account, footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> AwsProvider:
        from tradewind.providers.aws.clients import Account
        from tradewind.providers.aws.provider import AwsProvider

        return AwsProvider(Account(), footprint, owner, pack)

    def links(self, footprint: Footprint, store_url: str) -> Links:
        from tradewind.providers.aws.clients import Account
        from tradewind.providers.aws.links import Links

        return Links(Account(), footprint, store_url)

    def environment(self, footprint: Footprint, env: Mapping[str, str]) -> dict[str, str]:
        """In the bucket's region where it is ours, and where this computer finds AWS."""
        made = {"AWS_REGION": footprint.home}
        bucket = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")  # one like S3
        if bucket:
            made["AWS_ENDPOINT_URL_S3"] = bucket
        # Of a private network; and whether one without TLS will do.
        own = ("AWS_ENDPOINT_URL_SSM", "AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoints.ALLOW)
        return made | {name: env[name] for name in own if env.get(name)}

    def lent_role(self, footprint: Footprint) -> str:
        return footprint.lending_role

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.aws.clients import Account
        from tradewind.providers.aws.limits.usable import usable
        from tradewind.providers.aws.machines import proven

        account = Account()
        # Of another account, or refused altogether, they could launch nothing; what else is asked
        # of AWS may fail and does not stop a run.
        proven.check_account(account, footprint, store_url)
        return usable(account, footprint, ways, store_url=store_url)

    def beside(
        self, footprint: Footprint | None, region: str, instance_type: str, market: str
    ) -> Beside:
        from tradewind.providers.charges import SYSTEM_GB

        there = footprint.regions.get(region) if footprint else None
        return Beside(disk_gb=SYSTEM_GB, addresses=1.0 if there is None or there.public else 0.0)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        from msgspec.structs import replace

        from tradewind.providers import charges

        place, bucket = (self.name, way.region), footprint.bucket_place
        kept_s = elsewhere.kept_s(footprint.bucket_provider)
        extra = self.beside(footprint, way.region, way.instance_type, way.market)
        return replace(
            charges.with_beside(card, spec, way, extra),
            rates=charges.store(card, place, bucket, kept_s),
            pass_s=PASS_S if footprint.lent else 0,
        )

    def warnings(
        self, footprint: Footprint, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        """Prices that are assumed, and secrets that machines without a way to the internet cannot
        look up."""
        from tradewind.providers import charges

        places = [(self.name, region) for region in regions]
        found = charges.assumptions(card, places, footprint.bucket_place)
        private = [name for name in regions if not footprint.regions[name].public]
        if not private or not spec.job.get("secrets"):
            return found
        return [
            *found,
            f"machines in {', '.join(private)} reach S3 alone: their secrets can be read only where"
            " you have made endpoints for Systems Manager or Secrets Manager in that network",
        ]

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        name = f"/{footprints.secrets_path(store_url)}NAME"
        return (
            f"aws ssm put-parameter --region {footprint.home} --type SecureString"
            f" --name {name} --value file://FILE; then write aws-ssm:{name}"
        )

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        from tradewind.providers.aws import shell

        return shell.command(machine, key, words)

    def check_shell(self, command: Sequence[str]) -> None:
        from tradewind.providers.aws import shell

        shell.check(command)


CLOUD: Rentable = Aws()
