"""Lending passes to a store, by what kind of bucket it is.

base.py   what a pass and a lender are       s3.py     a role's session, by STS
held.py   the one that a machine holds       gcs.py    a token with a boundary
                                             azure.py  signatures by a user's delegation
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from tradewind.base.errors import InvalidValue
from tradewind.store.lending.base import Lender, LendPass, Pass, decoded, encoded

__all__ = ["LendPass", "Lender", "Pass", "decoded", "encoded", "lender"]


def lender(store_url: str, *, role: str = "", env: Mapping[str, str] | None = None) -> Lender:
    """`role`: what setup has made for lending, where the store is of a kind that needs one.
    InvalidValue: for this store no pass can be made; it says what would do."""
    known = os.environ if env is None else env
    scheme = store_url.partition("://")[0]
    if scheme == "s3":
        from tradewind.store.lending.s3 import S3Lender

        return S3Lender(store_url, role, known)
    if scheme == "gs":
        from tradewind.store.lending.gcs import GcsLender

        return GcsLender(store_url, known)
    if scheme == "az":
        from tradewind.store.lending.azure import AzureLender

        return AzureLender(store_url, known)
    raise InvalidValue(
        f"machines without an identity cannot use the store {store_url}: nothing can be lent there",
        hint="keep runs in a bucket: s3://BUCKET after `tradewind setup aws --lend`, gs://BUCKET,"
        " or az://CONTAINER of an account with a hierarchical namespace",
    )
