"""Renews prices from the providers' own sources.

Each provider is asked on its own; one that fails keeps its old rows and says why. All that was
learned is judged anew (`doubts.py`) and written as one file, atomically, at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module

from tradewind.catalog import doubts
from tradewind.catalog.facts import Facts
from tradewind.catalog.observations import observed
from tradewind.catalog.refresh.base import Context, Listing, Source
from tradewind.catalog.refresh.http import Http
from tradewind.catalog.refresh.merge import Change, merge
from tradewind.catalog.table import OfferTable, Row, neighbours
from tradewind.errors import SourceFailed, TradewindError
from tradewind.model import InstanceType, Observation

# provider → module in this folder; imported only when asked.
SOURCES = {
    "aws": "aws",
    "azure": "azure",
    "gcp": "gcp",
    "oci": "oci",
    "ibm": "ibm",
    "lambda": "lambda_cloud",
    "runpod": "runpod",
    "vast": "vast",
    "verda": "verda",
    "hyperstack": "hyperstack",
    "shadeform": "shadeform",
    "primeintellect": "primeintellect",
    "seeweb": "seeweb",
    "vultr": "vultr",
    "scaleway": "scaleway",
    "digitalocean": "digitalocean",
}

Progress = Callable[[str, int, int | None], None]


@dataclass(slots=True)
class Outcome:
    """What came of asking one provider: a change, or the reason why its old rows stay."""

    provider: str
    change: Change | None = None
    failed: TradewindError | None = None
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Refreshed:
    facts: Facts
    outcomes: list[Outcome]
    observations: list[Observation]


def source(provider: str) -> Source:
    module = import_module(f"tradewind.catalog.refresh.{SOURCES[provider]}")
    found: Source = module.SOURCE
    return found


def refresh(
    facts: Facts,
    providers: Sequence[str],
    *,
    http: Http,
    env: Mapping[str, str],
    now: datetime,
    progress: Progress = lambda provider, done, total: None,
) -> Refreshed:
    """Asks `providers`. Never raises for a source's trouble: the outcomes tell."""
    rows = list(facts.offers.rows())
    _keep_retired(rows)
    outcomes: list[Outcome] = []
    seen: list[Observation] = []
    for outcome, listings in _ask_all(facts, providers, http, env, now, progress):
        outcomes.append(outcome)
        if outcome.failed:
            continue
        provider, asked = outcome.provider, source(outcome.provider)
        mine = [row for row in rows if row["provider"] == provider and not row.get("retired")]
        new, outcome.change = merge(mine, listings, asked, facts.accelerators, now.date())
        rows = [row for row in rows if row["provider"] != provider or row.get("retired")] + new
        seen += _observations(asked, listings, now)
    doubts.judge(rows, facts.accelerators)
    rows.sort(key=neighbours)
    return Refreshed(replace(facts, made_at=now, offers=OfferTable.of(rows)), outcomes, seen)


def _ask_all(
    facts: Facts,
    providers: Sequence[str],
    http: Http,
    env: Mapping[str, str],
    now: datetime,
    progress: Progress,
) -> Iterator[tuple[Outcome, list[Listing]]]:
    """Side by side, since nearly all of the time is spent waiting; given back in order."""

    def ask(provider: str) -> tuple[Outcome, list[Listing]]:
        outcome = Outcome(provider)
        try:
            return outcome, _ask(source(provider), facts, http, env, now, outcome, progress)
        except TradewindError as error:
            outcome.failed = error
        except Exception as error:
            # A mistake in the reader of one source must not cost the other providers their prices.
            outcome.failed = SourceFailed(
                f"{provider}: could not be understood: {type(error).__name__}: {error}",
                hint="the old prices stay in place; this is a bug of ours, please report it",
            )
        return outcome, []

    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(ask, providers)


def _ask(
    asked: Source,
    facts: Facts,
    http: Http,
    env: Mapping[str, str],
    now: datetime,
    outcome: Outcome,
    progress: Progress,
) -> list[Listing]:
    missing = [name for name in asked.credentials if not env.get(name)]
    if missing:
        raise SourceFailed(
            f"{asked.provider}: {' and '.join(missing)} not set",
            hint=f"export {missing[0]}=…, or leave this provider out",
        )
    context = Context(
        http=http,
        url=env.get(f"TRADEWIND_{asked.provider.upper()}_URL", asked.url).rstrip("/"),
        today=now.date(),
        env=env,
        names=facts.names,
        known=_known(facts, asked.provider),
        progress=lambda done, total: progress(asked.provider, done, total),
        skipped=outcome.skipped,
    )
    listings = list(asked.fetch(context))
    if not listings:
        raise SourceFailed(
            f"{asked.provider}: the source answered, but listed nothing that we know how to use",
            hint="the old prices stay in place",
        )
    return listings


def _known(facts: Facts, provider: str) -> dict[str, InstanceType]:
    return {kind.name: kind for kind in facts.instances if kind.provider == provider}


def _keep_retired(rows: Sequence[Row]) -> None:
    """The mark in the file is all that tells a retired row; judging anew must not lose it."""
    for row in rows:
        marks = (row.get(f"{group}_mark", "") for group in ("on_demand", "spot"))
        if any(doubts.kind(mark) == "retired" for mark in marks):
            row["retired"] = True


def _observations(
    asked: Source, listings: Sequence[Listing], now: datetime
) -> Iterator[Observation]:
    for listing in listings:
        if listing.in_stock is not None:
            yield observed(
                Observation(
                    provider=asked.provider,
                    region=listing.region,
                    zone=listing.zone,
                    instance_type=listing.instance_type,
                    market=listing.stock_market,
                    available=listing.in_stock,
                    seen_at=now,
                    expires_at=now,
                    source=asked.describes,
                )
            )
