"""Asks one price source over real HTTP, impatiently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date

from tests.local_http import LocalHttp
from tradewind import catalog
from tradewind.catalog.refresh.base import Context, Listing, Source
from tradewind.catalog.refresh.http import Http

TODAY = date(2026, 11, 15)
KNOWN = catalog.load(account=False)


def ask(
    source: Source, server: LocalHttp, env: Mapping[str, str] | None = None
) -> tuple[list[Listing], Counter[str]]:
    """Everything the source lists when its address is `server`, and what it skipped and why."""
    known = KNOWN
    context = Context(
        http=Http(retries=2, backoff_s=0.001, connect_timeout_s=2, read_timeout_s=0.5),
        url=server.url,
        today=TODAY,
        env=env or {},
        names=known.names,
        known=known.instance_types(source.provider),
    )
    return list(source.fetch(context)), context.skipped
