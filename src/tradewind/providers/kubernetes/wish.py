"""What `tradewind setup kubernetes` is asked for, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.base.units import parse_bandwidth, parse_duration
from tradewind.model import buckets
from tradewind.model.job import is_image
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.offers.quantities import amount

NAMESPACE, SERVICE_ACCOUNT = "tradewind", "tradewind"
_DNS = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ROLE = re.compile(r"arn:aws[\w-]*:iam::\d{12}:role/[\w+=,.@/-]+")
_EMAIL = re.compile(r"[a-z][a-z0-9-]*@[a-z0-9.-]+\.gserviceaccount\.com")
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TAINT = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_ACCELERATOR = re.compile(r"([\w.-]+=)?[A-Za-z0-9][\w. -]*(:\d{1,3})?(:spot)?")
_MOST_GRACE_S = 3600


class Wish(Struct, frozen=True, kw_only=True):
    """What is "" or empty was not asked for: what was set up before stays."""

    store_url: str
    contexts: tuple[str, ...] = ()
    namespace: str = ""
    service_account: str = ""
    queue: str = ""
    priority: str = ""
    image: str = ""
    python_image: str = ""
    identity: str = ""
    store_secret: str = ""
    volume: str = ""
    jobset: bool = False
    volcano: bool = False
    gates: bool = False
    read_nodes: bool = False
    quota: tuple[str, ...] = ()
    accelerator: tuple[str, ...] = ()
    tolerate: tuple[str, ...] = ()
    network: str = ""
    grace: str = ""
    host_network: bool = False
    rdma: str = ""
    topology: str = ""
    interfaces: str = ""
    bucket_region: str = ""

    @property
    def hard(self) -> dict[str, str]:
        """Of a ResourceQuota: what extended resources can be limited by is what is asked for."""
        found = {}
        for text in self.quota:
            name, _, much = text.partition("=")
            found[f"requests.{name}" if "/" in name and "requests." not in name else name] = much
        return found

    @property
    def annotations(self) -> dict[str, str]:
        """Of the pods' service account, by which their cloud knows them."""
        whose, _, who = self.identity.partition(":")
        name = {
            "gke": "iam.gke.io/gcp-service-account",
            "eks": "eks.amazonaws.com/role-arn",
            "aks": "azure.workload.identity/client-id",
        }.get(whose)
        return {name: who} if name and who else {}


def checked_url(store_url: str) -> str:
    scheme, found, rest = store_url.partition("://")
    if not found:
        scheme, rest = "file", store_url
        if not store_url.startswith("/"):
            _wrong_store(store_url)
        store_url = f"file://{store_url}"
    if scheme not in (*buckets.STORES, "file") or not rest.strip("/"):
        _wrong_store(store_url)
    return store_url.rstrip("/")


def _wrong_store(store_url: str) -> NoReturn:
    known = ", ".join(f"{each}://BUCKET" for each in buckets.STORES)
    raise InvalidValue(
        f"pods cannot reach the store {store_url!r}",
        hint=f"one of {known}, or file:///FOLDER on a volume that all of them mount (--volume)",
    )


def wish_of(store_url: str, contexts: Sequence[str], settings: Mapping[str, Any]) -> Wish:
    """Raises what is wrong with it."""
    given = {name: value for name, value in settings.items() if value}
    wish = Wish(store_url=store_url, contexts=tuple(dict.fromkeys(contexts)), **given)
    for name in ("namespace", "service_account", "queue", "store_secret"):
        value = getattr(wish, name)
        if value and not _DNS.fullmatch(value):
            _refuse(name, value, "is not the name of a Kubernetes object", "lower-case-with-dashes")
    for name in ("image", "python_image"):
        if (value := getattr(wish, name)) and not is_image(value):
            _refuse(name, value, "is not the name of a container image", "registry/team/image:tag")
    for text in wish.accelerator:
        if not _ACCELERATOR.fullmatch(text):
            _refuse("accelerator", text, "is no [TYPE=]NAME[:COUNT][:spot]", "h100:8")
    for text in wish.tolerate:
        if not _TAINT.fullmatch(text):
            _refuse("tolerate", text, "is not the key of a taint", "example.com/team")
    for text in wish.quota:
        name, sign, much = text.partition("=")
        if not sign or not name or (amount(much) <= 0 and much != "0"):
            _refuse("quota", text, "is no RESOURCE=AMOUNT", "nvidia.com/gpu=16")
    if wish.topology and not _TAINT.fullmatch(wish.topology):
        _refuse("topology", wish.topology, "is not a label of nodes", "example.com/rack")
    _check_identity(wish)
    _check_volume(wish)
    grace_s(wish.grace)
    gbps(wish.network)
    return wish


def _check_identity(wish: Wish) -> None:
    if not wish.identity:
        return
    whose, _, who = wish.identity.partition(":")
    forms = {"gke": _EMAIL, "eks": _ROLE, "aks": _GUID}
    if whose not in forms or (who and not forms[whose].fullmatch(who)):
        _refuse(
            "identity",
            wish.identity,
            "is none that pods can have",
            "gke:NAME@PROJECT.iam.gserviceaccount.com, eks:arn:aws:iam::ACCOUNT:role/NAME,"
            " aks:CLIENT_ID; gke or eks alone where the cloud knows the service account itself",
        )
    if whose == "aks" and not who:
        _refuse("identity", wish.identity, "names no client id", "aks:CLIENT_ID")
    if wish.store_secret:
        raise InvalidValue("--identity and --store-secret: pods are one somebody to the store")


def _check_volume(wish: Wish) -> None:
    folder = wish.store_url.startswith("file:")
    if not wish.volume:
        return
    claim, sign, path = wish.volume.partition(":")
    if not sign or not _DNS.fullmatch(claim) or not path.startswith("/"):
        _refuse("volume", wish.volume, "is no CLAIM:/PATH", "shared-disk:/mnt/shared")
    store = PurePosixPath(unquote(urlsplit(wish.store_url).path))
    if folder and not store.is_relative_to(path):
        raise InvalidValue(
            f"the store {wish.store_url} is not below {path}, where --volume mounts {claim}",
            hint=f"--store file://{path.rstrip('/')}/tradewind, with the same file system mounted"
            " there on this computer",
        )


def grace_s(text: str) -> int:
    """0: not asked for."""
    if not text:
        return 0
    seconds = int(parse_duration(text))
    if not 1 <= seconds <= _MOST_GRACE_S:
        _refuse("grace", text, f"is not between 1s and {_MOST_GRACE_S}s", "60s")
    return seconds


def gbps(text: str) -> float:
    return parse_bandwidth(text) / 1e9 if text else 0.0


def named(context: str, taken: Mapping[str, Cluster]) -> str:
    """What a cluster is called, short: of `gke_PROJECT_ZONE_NAME` and of an ARN, the name."""
    for name, cluster in taken.items():
        if cluster.context == context:
            return name
    last = context.rpartition("/")[2]
    if last.startswith("gke_") and last.count("_") >= 3:
        last = last.split("_", 3)[3]
    last = last.rpartition("@")[2]
    base = re.sub(r"[^a-z0-9]+", "-", last.lower())[:40].strip("-") or "cluster"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _refuse(name: str, value: str, words: str, example: str) -> NoReturn:
    raise InvalidValue(f"--{name.replace('_', '-')} {value} {words}", hint=f"for example {example}")
