"""Clouds, as far as this store has to do with them.

Their libraries take half a second, and they themselves a few more: none is asked unless the user
names it, or the store's machines are there and credentials are too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tradewind.api import clouds
from tradewind.base.errors import TradewindError
from tradewind.model.finding import BROKEN, MISSING, WARNING, Finding
from tradewind.providers import registry
from tradewind.store.base import Store


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
