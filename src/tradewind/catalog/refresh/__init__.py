"""Renews prices from the providers' own sources.

Each provider is asked on its own; one that fails keeps its old rows and says why. All that was
learned is judged anew (`doubts.py`) and given back as one value, for the caller to write.

What a source is: base.py. What becomes of its answer: merge.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from queue import SimpleQueue
from threading import Thread

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.catalog import doubts
from tradewind.catalog.facts import Facts
from tradewind.catalog.observations import observed
from tradewind.catalog.refresh.base import Context, Listing, Source
from tradewind.catalog.refresh.http import Http
from tradewind.catalog.refresh.known import known_types
from tradewind.catalog.refresh.merge import Change, merge
from tradewind.catalog.table import OfferTable, Row, neighbours
from tradewind.model import Observation

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


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    listings: Sequence[Listing]


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
    """Asks `providers` and works the answers in. Never raises for a source's trouble."""
    answers = ask_all(facts, providers, http=http, env=env, now=now, progress=progress)
    return apply(facts, answers, now)


def ask_all(
    facts: Facts,
    providers: Sequence[str],
    *,
    http: Http,
    env: Mapping[str, str],
    now: datetime,
    progress: Progress = lambda provider, done, total: None,
) -> list[Answer]:
    """What each provider lists now, or why it could not be had."""
    known = known_types(facts.instances, facts.offers.rows())

    def context(outcome: Outcome) -> Context:
        name = outcome.provider
        return Context(
            http=http,
            url=env.get(f"TRADEWIND_{name.upper()}_URL", source(name).url).rstrip("/"),
            today=now.date(),
            env=env,
            names=facts.names,
            known=known.get(name, {}),
            progress=lambda done, total: progress(name, done, total),
            skipped=outcome.skipped,
        )

    return _side_by_side(providers, context)


def apply(facts: Facts, answers: Sequence[Answer], now: datetime) -> Refreshed:
    """`facts` with the answers worked in. Quick, so that it can be done under a lock on facts read
    afresh: another refresh may have ended while the sources were asked."""
    rows = list(facts.offers.rows())
    _keep_retired(rows)
    known = known_types(facts.instances, rows)
    seen: list[Observation] = []
    for answer in answers:
        outcome = answer.outcome
        if outcome.failed:
            continue
        provider, asked = outcome.provider, source(outcome.provider)
        mine = [row for row in rows if row["provider"] == provider and not row.get("retired")]
        # What could not be read may be just what is missing from the list.
        holes = any(reason.startswith(("malformed", "unknown")) for reason in outcome.skipped)
        new, outcome.change = merge(
            mine,
            answer.listings,
            asked,
            facts.accelerators,
            known.get(provider, {}),
            now.date(),
            complete=asked.complete and not holes,
        )
        rows = [row for row in rows if row["provider"] != provider or row.get("retired")] + new
        seen += _observations(asked, answer.listings, now)
    doubts.judge(rows, facts.accelerators)
    rows.sort(key=neighbours)
    renewed = replace(facts, made_at=now, offers=OfferTable.of(rows))
    return Refreshed(renewed, [answer.outcome for answer in answers], seen)


def ask(asked: Source, context: Context) -> list[Listing]:
    """All that the source lists, which is something. SourceFailed names the key where one is
    missing or was refused."""
    missing = [name for name in asked.credentials if not context.env.get(name)]
    if missing:
        raise SourceFailed(
            f"{asked.provider}: {' and '.join(missing)} not set",
            hint=f"export {missing[0]}=…, or leave this provider out",
        )
    try:
        listings = list(asked.fetch(context))
    except SourceFailed as error:
        if error.status in asked.refusals:
            error.hint = _check_keys(asked, context.env) or error.hint
        raise
    if not listings:
        raise SourceFailed(
            f"{asked.provider}: the source answered, but listed nothing that we know how to use",
            hint="it may be a passing fault, or a new format; the old prices stay in place",
        )
    context.progress(len(listings), len(listings))
    return listings


def _check_keys(asked: Source, env: Mapping[str, str]) -> str:
    keys = [name for name in (*asked.credentials, *asked.optional_keys) if env.get(name)]
    if not keys:
        return ""
    hint = f"check {' and '.join(keys)}"
    if not asked.credentials:
        hint += f", or unset {'it' if len(keys) == 1 else 'them'}: prices can be read without"
    return f"{hint}; {asked.key_needs}" if asked.key_needs else hint


def _side_by_side(providers: Sequence[str], context: Callable[[Outcome], Context]) -> list[Answer]:
    """Asks all at once, since nearly all of the time is spent waiting.

    In daemon threads: Ctrl-C must not wait for a server that is silent."""
    done: SimpleQueue[tuple[int, Answer]] = SimpleQueue()

    def ask_one(number: int, provider: str) -> None:
        outcome, listings = Outcome(provider), []
        try:
            listings = ask(source(provider), context(outcome))
        except TradewindError as error:
            outcome.failed = error
        except Exception as error:
            # A mistake in the reader of one source must not cost the other providers their prices.
            outcome.failed = SourceFailed(
                f"{provider}: could not be understood: {type(error).__name__}: {error}",
                hint="the old prices stay in place; this is a bug of ours, please report it",
            )
        done.put((number, Answer(outcome, listings)))

    for number, provider in enumerate(providers):
        Thread(target=ask_one, args=(number, provider), daemon=True).start()
    answers = dict(done.get() for _ in providers)
    return [answers[number] for number in range(len(providers))]


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
