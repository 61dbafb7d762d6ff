"""Asks one price source over real HTTP, as a refresh does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date

from tests.local_http import LocalHttp
from tradewind import catalog
from tradewind.catalog import refresh
from tradewind.catalog.refresh.base import Context, Listing, Source
from tradewind.catalog.refresh.http import Http
from tradewind.catalog.refresh.known import known_types

TODAY = date(2026, 11, 15)
REAL = catalog.load(account=False)
KNOWN = known_types(REAL.facts.instances, REAL.facts.offers.rows())


def context(
    provider: str,
    server: LocalHttp,
    env: Mapping[str, str] | None = None,
    *,
    patience_s: float | None = None,
) -> Context:
    """A fault is asked about again, at once. Only with `patience_s` does a slow answer matter: a
    busy machine is slow too."""
    return Context(
        http=Http(
            retries=2 if patience_s is None else 0,
            backoff_s=0.001,
            read_timeout_s=patience_s or 60,
        ),
        url=server.url,
        today=TODAY,
        env=env or {},
        names=REAL.names,
        known=KNOWN.get(provider, {}),
    )


def ask(
    source: Source, server: LocalHttp, env: Mapping[str, str] | None = None
) -> tuple[list[Listing], Counter[str]]:
    """Everything the source lists when its address is `server`, and what it skipped and why."""
    asked = context(source.provider, server, env)
    return refresh.ask(source, asked), asked.skipped
