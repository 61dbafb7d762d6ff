"""Kubernetes clusters, as the rest of Tradewind sees them (providers/cloud.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.model.finding import Finding
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.model.secrets import KUBERNETES_SECRET, parse
from tradewind.providers import elsewhere
from tradewind.providers.cloud import Library, Rentable, Setting
from tradewind.providers.kubernetes import footprint as footprints
from tradewind.providers.kubernetes.facts import FACTS, PASS_S
from tradewind.providers.kubernetes.footprint import Cluster, Footprint
from tradewind.providers.usual import Usual

if TYPE_CHECKING:
    from tradewind.model.ratecard import RateCard
    from tradewind.model.usage import Rates
    from tradewind.providers.base import Provider
    from tradewind.providers.boot.luggage import Pack
    from tradewind.providers.kubernetes.setup import Look
    from tradewind.providers.offered import Offering, Types
    from tradewind.providers.usable import Usable


class Kubernetes(Usual):
    name = "kubernetes"
    title = "Kubernetes"
    facts: Facts = FACTS
    schemes: tuple[str, ...] = ("file",)
    """A folder, on a volume that all pods mount. To buckets they are somebody or are lent passes,
    as each cluster was set up (`lends`)."""
    place = "context"
    place_words = (
        "A context of your kubeconfig; its cluster is added to those that are set up. Default: the"
        " present one. May be repeated."
    )
    settings: tuple[Setting, ...] = (
        Setting(name="namespace", metavar="NAME", words="Where pods are. Default: tradewind."),
        Setting(
            name="service_account", metavar="NAME", words="Whom pods run as. Default: tradewind."
        ),
        Setting(name="queue", metavar="NAME", words="Kueue's LocalQueue that runs go through."),
        Setting(
            name="priority",
            metavar="CLASS",
            words="Kueue's WorkloadPriorityClass, or else the pods' PriorityClass.",
        ),
        Setting(name="jobset", words="Make JobSets instead of Jobs."),
        Setting(name="volcano", words="Let Volcano schedule the pods of a run, all or none."),
        Setting(
            name="gates",
            words="Hold the pods of a run back until all of them fit, without Kueue or Volcano.",
        ),
        Setting(
            name="image", metavar="IMAGE", words="For jobs that name none (run.image in workloads)."
        ),
        Setting(
            name="python_image",
            metavar="IMAGE",
            words="Take a Python from this image where a job's own has none.",
        ),
        Setting(
            name="identity",
            metavar="WHO",
            words="Who pods are to the store: gke:SERVICE_ACCOUNT, eks:ROLE_ARN or aks:CLIENT_ID.",
        ),
        Setting(
            name="store_secret",
            metavar="NAME",
            words="A Secret whose variables open the store, for servers like S3.",
        ),
        Setting(
            name="volume",
            metavar="CLAIM:/PATH",
            words="Mount this claim in every pod; a store file:///PATH/… lies there.",
        ),
        Setting(
            name="accelerator",
            metavar="NAME[:COUNT]",
            many=True,
            words="What nodes have that may not be read or are not up, as h100:8. May be repeated.",
        ),
        Setting(
            name="tolerate",
            metavar="TAINT",
            many=True,
            words="Use nodes that have this taint too. May be repeated.",
        ),
        Setting(
            name="quota",
            metavar="RESOURCE=AMOUNT",
            many=True,
            words="Limit the namespace, as nvidia.com/gpu=16. May be repeated.",
        ),
        Setting(
            name="read_nodes",
            words="Let controllers in the cluster read nodes and pods: a ClusterRole.",
        ),
        Setting(
            name="network",
            metavar="RATE",
            words="Between nodes, as 100Gbps, where they do not say.",
        ),
        Setting(name="grace", metavar="TIME", words="For pods to save and end. Default: 30s."),
        Setting(name="host_network", words="Pods use their nodes' network."),
        Setting(
            name="rdma",
            metavar="RESOURCE",
            words="Ask for one of this too, as rdma/ib, where pods are several.",
        ),
        Setting(
            name="topology",
            metavar="LABEL",
            words="Level of Kueue's topology in one of which pods of a leg are kept: a node label.",
        ),
        Setting(name="interfaces", metavar="NAMES", words="Network interfaces for NCCL and Gloo."),
        elsewhere.BUCKET_REGION,
    )
    pythons: tuple[str, ...] = ("3.11", "3.12")
    library: Library | None = Library(
        extra="kubernetes", package="kubernetes", least="31", needed_for="runs on clusters"
    )

    @property
    def prints(self) -> Mapping[str, str]:
        return {"yaml": "the objects, for kubectl apply"}

    # -- who we are, and what is set up ------------------------------------------------------------

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        named = env.get("KUBECONFIG") or env.get("KUBERNETES_SERVICE_HOST")
        return bool(named) or (user / ".kube" / "config").exists()

    def checked(self, store_url: str) -> str:
        from tradewind.providers.kubernetes.wish import checked_url

        return checked_url(store_url)

    def decoded(self, data: bytes) -> Footprint:
        return footprints.decoded(data)

    def setup_command(self, store_url: str, *regions: str) -> str:
        return footprints.setup_command(store_url, *regions)

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look:
        from tradewind.providers.kubernetes.setup import Look
        from tradewind.providers.kubernetes.wish import wish_of

        return Look(wish_of(store_url, regions, settings))

    def printed(
        self, kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]
    ) -> str:
        from tradewind.providers.kubernetes.setup import printed
        from tradewind.providers.kubernetes.wish import wish_of

        return printed(wish_of(store_url, regions, settings))

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        from tradewind.providers.kubernetes.wish import NAMESPACE, SERVICE_ACCOUNT

        who = f"{settings.get('namespace') or NAMESPACE}/" + (
            settings.get("service_account") or SERVICE_ACCOUNT
        )
        identity = str(settings.get("identity") or "")
        if identity:
            return [
                f"pods run as the service account {who}: the cloud's own side must trust it"
                " (docs/clouds/kubernetes.md, Identity)"
            ]
        return []

    def checks(
        self, footprint: Footprint | None, *, known: bool, store_url: str
    ) -> Iterator[Finding]:
        from tradewind.providers.kubernetes.checks import checks

        yield from checks(footprint, known=known, store_url=store_url)

    # -- machines ----------------------------------------------------------------------------------

    def opened(self, footprint: Footprint, owner: str, pack: Pack) -> Provider:
        from tradewind.providers.kubernetes.provider import KubernetesProvider

        made: Provider = KubernetesProvider(footprint, owner, pack)
        return made

    def offers(self, footprint: Footprint, types: Types) -> Offering:
        from tradewind.providers.kubernetes.offers.look import offering

        return offering(footprint, types)

    def usable(self, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
        from tradewind.providers.kubernetes.usable import usable

        return usable(footprint, ways, store_url)

    def lends(self, footprint: Footprint, store_url: str) -> bool:
        return any(_is_lent(each, store_url) for each in footprint.clusters.values())

    def environment(self, footprint: Footprint, env: Mapping[str, str]) -> dict[str, str]:
        """Where the store is, as this computer finds it. A cluster whose Secret opens it has that
        in the Secret too: from within it may be another address."""
        if any(each.identity == "secret" for each in footprint.clusters.values()):
            return {}
        return elsewhere.addresses(env)

    def image(self, footprint: Footprint, way: Way, wanted: str) -> str:
        from tradewind.providers.kubernetes.images import chosen

        asked = (way.layout.get(self.name) or {}).get("resources") or {}
        return chosen(footprint.clusters[way.region], asked, wanted)

    def priced(self, footprint: Footprint, spec: Spec, way: Way, card: RateCard) -> Way:
        """Its disk and its address are in the node's price."""
        from msgspec.structs import replace

        cluster = footprint.clusters[way.region]
        placed = dict(way.layout.get(self.name) or {})
        placed["image"] = self.image(footprint, way, str(spec.job.get("image") or ""))
        if secrets := _secrets(spec):
            placed["secrets"] = secrets
        return replace(
            way,
            pass_s=0 if cluster.identity else PASS_S,
            rates=_rates(footprint, cluster, card),
            layout=way.layout | {self.name: placed},
        )

    def warnings(
        self, footprint: Footprint, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        """Prices that are assumed."""
        from tradewind.providers import charges

        if not footprint.bucket_provider:
            return []
        places = [
            (each.provider, each.region)
            for name in regions
            if (each := footprint.clusters[name]).provider
        ]
        return charges.assumptions(card, places, elsewhere.bucket(footprint), disks=())

    def secrets_hint(self, footprint: Footprint, store_url: str) -> str:
        space = next(iter(footprint.clusters.values())).namespace
        return f"kubectl -n {space} create secret generic NAME --from-literal=KEY=VALUE"

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        raise InvalidValue(
            f"which cluster {machine.machine_id} is in, only its store tells",
            hint="tradewind ssh RUN --store URL",
        )

    def shell_at(
        self, footprint: Footprint, machine: Machine, key: str, words: Sequence[str]
    ) -> list[str]:
        from tradewind.providers.kubernetes.shell import command

        return command(footprint, machine, key, words)

    def check_shell(self, command: Sequence[str]) -> None:
        from tradewind.providers.kubernetes.shell import check

        check(command)


def _secrets(spec: Spec) -> list[str]:
    """Of the pods' namespace, those whose keys the job names; others cannot be looked up there."""
    names = []
    for variable, text in (spec.job.get("secrets") or {}).items():
        reference = parse(str(text))
        if reference.scheme != KUBERNETES_SECRET:
            raise InvalidValue(
                f"run.secrets.{variable}: pods cannot look up a secret of {reference.scheme}",
                hint="kubernetes-secret:NAME#KEY names one of their namespace",
            )
        names.append(reference.name)
    return list(dict.fromkeys(names))


def _is_lent(cluster: Cluster, store_url: str) -> bool:
    return not cluster.identity and store_url.partition("://")[0] != "file"


def _rates(footprint: Footprint, cluster: Cluster, card: RateCard) -> Rates | None:
    """None: nobody charges for the store, or nobody knows who."""
    from tradewind.providers import charges

    bucket, kept_s = elsewhere.bucket(footprint), elsewhere.kept_s(footprint.bucket_provider)
    if not footprint.bucket_provider:
        return None
    if not cluster.provider:  # one's own network: only the bucket's side is paid for
        return charges.outside(card, bucket, kept_s)
    return charges.store(card, (cluster.provider, cluster.region), bucket, kept_s)


CLOUD: Rentable = Kubernetes()
