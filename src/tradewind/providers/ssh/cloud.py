"""Hosts of one's own, as the rest of Tradewind sees them (providers/cloud.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.finding import Finding
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.providers import elsewhere
from tradewind.providers.cloud import Lease, Rentable, Setting
from tradewind.providers.ssh import footprint as footprints
from tradewind.providers.ssh.facts import FACTS, PASS_S, REGION
from tradewind.providers.ssh.footprint import Footprint
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.base.errors import TradewindError
    from tradewind.model.ratecard import RateCard
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.offered import Offering, Types
    from tradewind.providers.ssh.answers import Gpu
    from tradewind.providers.ssh.provider import SshProvider
    from tradewind.providers.ssh.setup import Look
    from tradewind.providers.usable import Usable

FILE = "file"


class Ssh(Usual):
    name = "ssh"
    title = "hosts of your own"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = (FILE,)
    """A folder that all hosts have at the same path."""
    place = "host"
    place_words = (
        "A host, as ssh is told: [USER@]HOST[:PORT]; a name of ~/.ssh/config will do. May be"
        " repeated."
    )
    settings: tuple[Setting, ...] = (
        Setting(name="hosts", metavar="FILE", words="A file with a host in each line."),
        Setting(
            name="forget",
            metavar="HOST",
            many=True,
            words="A host that is not to be used any more. May be repeated.",
        ),
        Setting(
            name="group",
            metavar="NAME",
            words=f"What hosts that reach each other are called as a region; else {REGION}.",
        ),
        Setting(
            name="relay",
            words="The store is a folder of this computer alone: hosts reach it through your"
            " connection, for as long as a controller of yours runs.",
        ),
        Setting(
            name="network_gbps",
            metavar="N",
            words="How fast the network between hosts is, for plans of several machines.",
        ),
        Setting(
            name="python",
            metavar="FOLDER",
            words="Where a Python 3.11 or newer is on these hosts, if not in their PATH.",
        ),
        elsewhere.BUCKET_REGION,
    )
    pythons: tuple[str, ...] = ()
    """As each host has it: `pythons_at`."""

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        """That somebody uses ssh does not mean that there are GPUs behind it."""
        return False

    def checked(self, store_url: str) -> str:
        from tradewind.providers.ssh.setup import checked

        return checked(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url)

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        """`regions`: hosts, by `place`."""
        from tradewind.providers.ssh.setup import Look, wish_of

        return Look(wish_of(store_url, regions, settings))

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        return [
            "plans count your GPUs as $0 an hour unless account.yaml says what one costs:"
            " docs/clouds/ssh.md shows how"
        ]

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.ssh.checks import checks

        yield from checks(footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> SshProvider:
        from tradewind.providers.ssh.provider import SshProvider

        return SshProvider(footprint, owner, pack)

    def pythons_at(self, footprint: Footprint) -> tuple[str, ...]:
        return tuple(sorted({host.python for host in footprint.hosts.values() if host.python}))

    def offers(self, footprint: Footprint, types: Types) -> Offering:
        from tradewind.providers.ssh.offers import offering

        return offering(footprint, _seen(footprint))

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.ssh.usable import usable

        return usable(footprint, _seen(footprint), ways, store_url)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        from msgspec.structs import replace

        if spec.job.get("secrets"):
            raise InvalidValue(
                "run.secrets: machines on hosts have no identity, and cannot look up secrets",
                hint="let the job read a file of your user's on the hosts",
            )
        if not footprint.bucket_provider:
            return way  # the store is a folder that hosts share
        return replace(way, pass_s=PASS_S, rates=elsewhere.outside(card, footprint))

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        return "let the job read a file of your user's on the hosts"

    def leases(self, footprint: Footprint) -> list[Lease]:
        from tradewind.base.errors import TradewindError

        found = []
        for name, gpus in _seen(footprint).items():
            if isinstance(gpus, TradewindError):
                found.append(Lease(place=name, device="", state="no answer", who=gpus.message))
                continue
            found += [
                Lease(place=name, device=f"{gpu.index}: {gpu.name}", state=gpu.state, who=gpu.who)
                for gpu in gpus
            ]
        return found

    # -- a shell -----------------------------------------------------------------------------------

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        raise NotFound(
            f"which host {machine.machine_id} is on, its store tells",
            hint="--store URL names that of the run",
        )

    def shell_at(
        self, footprint: Footprint, machine: Machine, key: str, words: Sequence[str]
    ) -> list[str]:
        """Plain ssh, into the machine's folder."""
        import shlex

        from tradewind.providers.ssh import names
        from tradewind.providers.ssh.there.folder import FOLDER

        host = footprint.hosts.get(names.host_of(machine.machine_id))
        if host is None:
            raise NotFound(
                f"the host of {machine.machine_id} is not set up any more",
                hint="tradewind doctor ssh lists those that are",
            )
        named = f"{footprint.folder or FOLDER}/*/machines/{shlex.quote(machine.machine_id)}"
        inside = shlex.join(words) if words else 'exec "${SHELL:-sh}" -l'
        options = [*(["-i", key] if key else []), *([] if words else ["-t"])]
        there = f"cd ~/{named} && {inside}"
        return ["ssh", *options, *names.arguments(host.target), f"sh -c {shlex.quote(there)}"]


def _seen(footprint: Footprint) -> dict[str, list[Gpu] | TradewindError]:
    """The GPUs of each host, or why they are not known."""
    from tradewind.providers.ssh import answers
    from tradewind.providers.ssh import client as clients

    asked = clients.clients(footprint, "nobody")
    return clients.each(asked, lambda client: answers.gpus(client, "looking at its GPUs"))


CLOUD: Rentable = Ssh()
