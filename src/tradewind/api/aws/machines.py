"""Machines of AWS for the runs of a store: what is set up for it, and what they take along.

The provider knows nothing of stores; here the kit is put into one, and links are made to it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tradewind import clock, endpoints
from tradewind.errors import InvalidValue, NoAccess, NotFound

if TYPE_CHECKING:
    from tradewind.model.run import Request
    from tradewind.providers.aws.clients import Account
    from tradewind.providers.aws.footprint import Footprint
    from tradewind.providers.aws.machines.userdata import Luggage
    from tradewind.providers.aws.provider import AwsProvider
    from tradewind.store.base import Store

_LINK_S = 3600
"""A machine that has not come up by then never will."""
_LEAST_S = 15 * 60
"""For so long a machine may need its links. They die with temporary credentials that signed them;
and only then botocore would have renewed those, had it been able to."""
_PYTHONS = ("3.12", "3.13")
"""Of the usual images: Ubuntu 24.04's own, and that of Amazon's PyTorch on it."""
_OTHER_PYTHONS = ("3.11", "3.14")
"""Of images that users name, as far as first.sh takes them and there are wheels for them."""
_PROCESSORS = {"x86_64": "x86_64", "arm64": "aarch64"}


def is_bucket(store: Store) -> bool:
    return store.url.startswith("s3://")


def footprint(store: Store) -> Footprint | None:
    """None: nothing was set up for this store."""
    from tradewind.providers.aws.footprint import read

    return read(store.get) if is_bucket(store) else None


def provider(store: Store, record: Footprint) -> AwsProvider:
    from tradewind.providers.aws.clients import Account
    from tradewind.providers.aws.provider import AwsProvider

    account = Account()
    return AwsProvider(account, record, owner(store), Packer(store, account, record))


def owner(store: Store) -> str:
    return store.url.rstrip("/")


def needed(store: Store) -> Footprint:
    """Raises what to do where nothing is set up."""
    from tradewind.providers.aws.footprint import setup_command

    if not is_bucket(store):
        raise InvalidValue(
            f"machines of AWS cannot reach the store {store.url}",
            hint="--store s3://BUCKET, after tradewind aws setup --store s3://BUCKET",
        )
    record = footprint(store)
    if record is None:
        raise NotFound(
            f"nothing is set up at AWS for {store.url}",
            hint=setup_command(store.url),
        )
    return record


class Packer:
    """The luggage of machines: the kit, which is made and sent once, and links that are fresh."""

    def __init__(self, store: Store, account: Account, record: Footprint) -> None:
        self._store, self._account, self._record = store, account, record
        self._lock = threading.Lock()
        self._kits: dict[str, bytes] = {}

    def __call__(self, request: Request, architecture: str) -> Luggage:
        from tradewind.model import places
        from tradewind.providers.aws.machines.userdata import Luggage

        self._check_credentials()
        kit = self._sent(architecture)
        return Luggage(
            kit=self._link("get_object", kit),
            sha256=kit.split("/")[-2],
            tell=self._link("put_object", places.first_log(request.run_id, request.leg)),
            environment=machine_environment(self._record, os.environ),
        )

    def _check_credentials(self) -> None:
        ends = self._account.expires_s()
        left = _LEAST_S if ends is None else ends - clock.now().timestamp()
        if left < _LEAST_S:
            raise NoAccess(
                f"the AWS credentials end in {max(0, int(left // 60))} min, and with them the links"
                " by which machines begin: nothing was bought",
                hint="renew them, for example by `aws sso login`",
            )

    def _sent(self, architecture: str) -> str:
        from tradewind.supervisor import kit

        with self._lock:
            if architecture not in self._kits:
                self._kits[architecture] = kit.build(
                    self._store.url,
                    targets=_targets(architecture, _PYTHONS),
                    wished=_targets(architecture, _OTHER_PYTHONS),
                )
            # Each time: buckets forget kits after a month.
            return kit.publish(self._store, self._kits[architecture])

    def _link(self, action: str, key: str) -> str:
        from tradewind.providers.aws.footprint import bucket_of
        from tradewind.providers.aws.troubles import explained

        bucket, prefix = bucket_of(self._store.url)
        s3 = self._account.client("s3", self._record.bucket_region)
        with explained("making a link"):
            return str(
                s3.generate_presigned_url(
                    action, Params={"Bucket": bucket, "Key": prefix + key}, ExpiresIn=_LINK_S
                )
            )


def machine_environment(record: Footprint, env: Mapping[str, str]) -> dict[str, str]:
    """Where machines find AWS: in the bucket's region, and where this computer does."""
    made = {"AWS_REGION": record.bucket_region}
    bucket = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")  # one that is like S3
    if bucket:
        made["AWS_ENDPOINT_URL_S3"] = bucket
    # Of a private network; and whether one without TLS will do.
    own = ("AWS_ENDPOINT_URL_SSM", "AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoints.ALLOW)
    return made | {name: env[name] for name in own if env.get(name)}


def _targets(architecture: str, pythons: Sequence[str]) -> list[tuple[str, str]]:
    """Those for which this computer's own wheels are not enough."""
    import platform
    import sys

    processor = _PROCESSORS.get(architecture, architecture)
    own = (f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine())
    alike = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    return [(each, processor) for each in pythons if not alike or (each, processor) != own]
