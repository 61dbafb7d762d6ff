"""AWS, as far as this store has to do with it.

boto3 takes half a second, and AWS a few more: neither is asked unless the user names it, or the
store's machines are there and credentials are too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tradewind.errors import TradewindError
from tradewind.model.finding import BROKEN, MISSING, WARNING, Finding
from tradewind.providers.aws.footprint import Footprint, read, setup_command
from tradewind.store.base import Store

_NAMES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"}


def aws_checks(
    store: Store | None, *, asked: bool, env: Mapping[str, str], user: Path
) -> Iterator[Finding]:
    """`store`: None where it cannot be opened. `asked`: the user has named AWS."""
    footprint: Footprint | None = None
    known = True
    try:
        footprint = read(store.get) if store else None
    except TradewindError as error:
        what = "what setup has left in the store cannot be read"
        yield _found(BROKEN, what, error.message, error.hint or "")
        if not asked:
            return
        known = False
    if not asked and footprint is None:
        yield _found(
            MISSING,
            "nothing is set up for this store",
            "renting machines of AWS",
            setup_command(store.url if store else ""),
        )
        return
    if not asked and not hinted(env, user):
        yield _found(
            WARNING,
            "the store's machines are rented there, and no credentials are found",
            "from here they are neither seen nor ended; whether this computer has a role of AWS"
            " was not asked",
            "tradewind doctor aws",
        )
        return
    from tradewind.providers.aws.checks.account import checks
    from tradewind.providers.aws.clients import Account

    try:
        account = Account()
    except TradewindError as error:
        yield _found(BROKEN, error.message, "no machine can be rented there", error.hint or "")
        return
    url = store.url.rstrip("/") if store else ""
    yield from checks(account, footprint, known=known, store_url=url)


def hinted(env: Mapping[str, str], user: Path) -> bool:
    """Whether there seem to be credentials: by names and files alone."""
    return any(env.get(name) for name in _NAMES) or any(
        Path(env.get(name) or user / ".aws" / kept).exists() for name, kept in _FILES.items()
    )


def _found(level: str, what: str, why: str, todo: str) -> Finding:
    return Finding(about="aws", level=level, what=what, why=why, todo=todo)
