"""Clouds, as far as this store has to do with them.

Their libraries take half a second, and they themselves a few more: none is asked unless the user
names it, or the store's machines are there and credentials are too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tradewind.api import clouds
from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, Finding
from tradewind.providers import registry
from tradewind.store.base import Store

_TRIAL, _TRIAL_S = "doctor", 900
"""A run of no one's, and as short as anybody lends."""


def cloud_checks(
    name: str, store: Store | None, *, asked: bool, env: Mapping[str, str], user: Path
) -> Iterator[Finding]:
    """`store`: None where it cannot be opened. `asked`: the user has named this cloud."""
    cloud = registry.rentable(name)

    def found(level: str, what: str, why: str, todo: str) -> Finding:
        return Finding(about=name, level=level, what=what, why=why, todo=todo)

    record, known = None, True
    try:
        record = clouds.written(store, cloud) if store else None
    except TradewindError as error:
        what = "what setup has left in the store cannot be read"
        yield found(BROKEN, what, error.message, error.hint or "")
        if not asked:
            return
        known = False
    if not asked and record is None:
        yield found(
            MISSING,
            "nothing is set up for this store",
            f"renting machines of {cloud.title}",
            cloud.setup_command(store.url if store else ""),
        )
        return
    if not asked and not cloud.hinted(env, user):
        yield found(
            WARNING,
            "the store's machines are rented there, and no credentials are found",
            f"from here they are neither seen nor ended; whether this computer has a role of"
            f" {cloud.title} was not asked",
            f"tradewind doctor {name}",
        )
        return
    url = store.url.rstrip("/") if store else ""
    yield from cloud.checks(record, known=known, store_url=url)
    if store is not None and record is not None and clouds.is_lent(cloud, store.url, record):
        yield _lending(store, name)


def _lending(store: Store, about: str) -> Finding:
    """Whether machines that are nobody to the store can be lent a pass: one is, and dropped."""
    from tradewind.api.lending import Lending

    try:
        Lending(store)(_TRIAL, _TRIAL_S)
    except TradewindError as error:
        later = isinstance(error, SourceFailed)
        return Finding(
            about=about,
            level=WARNING if later else BROKEN,
            what=f"no pass to {store.url} can be lent" + (" just now" if later else ""),
            why=f"its machines could not reach the store: {error.message}",
            todo=error.hint or "run it again",
        )
    return Finding(about=about, level=OK, what="its machines can be lent passes to the store")
