"""Links to what lies in a bucket of Cloud Storage (V4 signed URLs): signed here, where our
credentials are a service account's file; else by a key of the machines' service account that Google
keeps, for whoever may use it (iam.serviceAccounts.signBlob).

Google takes those that it has signed for twelve hours at most, others for seven days.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime
from urllib.parse import quote, urlsplit

from tradewind.base import clock, endpoints
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.footprint import Footprint, bucket_of
from tradewind.store.handles import endpoint_of
from tradewind.store.links import Linking

_ALGORITHM = "GOOG4-RSA-SHA256"
_BY_GOOGLE_S, _BY_FILE_S = 12 * 3600, 7 * 86_400
_URL = "https://storage.googleapis.com"


class Links(Linking):
    """They outlive the token that they were signed with: to try one is all there is to check."""

    def __init__(self, google: Google, footprint: Footprint, store_url: str) -> None:
        self._google, self._footprint, self._store_url = google, footprint, store_url

    def _link(self, method: str, key: str, for_s: int) -> str:
        bucket, prefix = bucket_of(self._store_url)
        signer = self._google.credentials.signer
        email = self._google.credentials.email if signer else self._footprint.service_account
        for_s = min(for_s, _BY_FILE_S if signer else _BY_GOOGLE_S)
        base = endpoint()
        query, text = to_sign(
            method, urlsplit(base).netloc, f"/{bucket}/{prefix}{key}", email, clock.now(), for_s
        )
        made = signer.sign(text) if signer else self._google.signed(email, text)
        path = quote(f"/{bucket}/{prefix}{key}", safe="/~")
        return f"{base}{path}?{query}&X-Goog-Signature={made.hex()}"


def endpoint() -> str:
    """Cloud Storage's, or where the store's client is led instead."""
    found = endpoint_of("gs", os.environ)
    endpoints.check(found, os.environ)
    return found or _URL


def to_sign(
    method: str, host: str, path: str, email: str, at: datetime, for_s: int
) -> tuple[str, bytes]:
    """The query, but for the signature, and what is signed."""
    moment, day = f"{at:%Y%m%dT%H%M%SZ}", f"{at:%Y%m%d}"
    scope = f"{day}/auto/storage/goog4_request"
    asked = {
        "X-Goog-Algorithm": _ALGORITHM,
        "X-Goog-Credential": f"{email}/{scope}",
        "X-Goog-Date": moment,
        "X-Goog-Expires": str(for_s),
        "X-Goog-SignedHeaders": "host",
    }
    query = "&".join(f"{name}={quote(value, safe='~')}" for name, value in sorted(asked.items()))
    canonical = "\n".join(
        [method, quote(path, safe="/~"), query, f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return query, "\n".join([_ALGORITHM, moment, scope, digest]).encode()
