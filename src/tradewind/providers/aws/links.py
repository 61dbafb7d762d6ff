"""Links to what lies in a bucket of S3: signed by whoever uses this computer."""

from __future__ import annotations

from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, bucket_of
from tradewind.providers.aws.troubles import explained
from tradewind.store.links import Linking

_LEAST_S = 15 * 60
"""For so long a machine may need its links. They die with temporary credentials that signed them;
and only then botocore would have renewed those, had it been able to."""


class Links(Linking):
    def __init__(self, account: Account, footprint: Footprint, store_url: str) -> None:
        self._account, self._region = account, footprint.bucket_region
        self._store_url = store_url

    def check(self) -> None:
        ends = self._account.expires_s()
        left = _LEAST_S if ends is None else ends - clock.now().timestamp()
        if left < _LEAST_S:
            raise NoAccess(
                f"the AWS credentials expire in {max(0, int(left // 60))} min, and so would the"
                " pre-signed links that machines boot from; nothing was launched",
                hint="renew them, for example by `aws sso login`",
            )

    def _link(self, method: str, key: str, for_s: int) -> str:
        bucket, prefix = bucket_of(self._store_url)
        s3 = self._account.client("s3", self._region)
        with explained("making a link"):
            return str(
                s3.generate_presigned_url(
                    f"{method.lower()}_object",
                    Params={"Bucket": bucket, "Key": prefix + key},
                    ExpiresIn=for_s,
                )
            )
