"""Where the catalog's three tables lie, and how they are read and replaced.

`$TRADEWIND_HOME` (default `~/.tradewind`) holds `catalog.json.gz` once a refresh has made one,
`account.yaml` if the user wrote one, and `observations.jsonl`. Without them the catalog that came
with the package serves. A file is replaced whole: written beside, synced, renamed.
"""

from __future__ import annotations

import fcntl
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base import clock
from tradewind.base.errors import BadFile, NoAccess
from tradewind.base.ownfiles import append
from tradewind.base.ownfiles import home as home
from tradewind.base.ownfiles import replace as replace
from tradewind.catalog import facts as facts_file
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.facts import Facts

if TYPE_CHECKING:
    from tradewind.model import Observation

PACKAGED = Path(__file__).parent / "data" / "catalog.json.gz"
BUILT_IN = "built-in catalog"
_SWEEP_BYTES = 1_000_000


def load(
    path: str | Path | None = None,
    *,
    folder: Path | None = None,
    now: datetime | None = None,
    account: bool = True,
) -> Catalog:
    """The catalog: from `path`, else this user's refreshed one, else the one in the package.

    Of the last two the younger serves, so that an upgrade is not hidden by an old refresh.
    """
    folder = folder or home()
    now = now or clock.now()
    facts, origin = _facts(Path(path) if path else None, folder)
    catalog = Catalog(facts, facts.offers, origin)
    if not account:
        return catalog
    return _joined(catalog, folder, now)


def _joined(catalog: Catalog, folder: Path, now: datetime) -> Catalog:
    """With the account's and our own tables, where there are any."""
    facts, table, owned, seen = catalog.facts, catalog.table, None, None
    account_path, seen_path = folder / "account.yaml", folder / "observations.jsonl"
    if _exists(account_path):
        from tradewind.catalog import account

        providers = table.columns["provider"].values
        owned = account.read(_text(account_path), str(account_path), facts.names, providers)
        table = owned.applied(table, now.date())
    if _exists(seen_path):
        from tradewind.catalog import observations

        # An observation that cannot be read is no loss.
        seen = observations.decode(_bytes(seen_path).decode("utf-8", "replace"), now)
    return Catalog(facts, table, catalog.origin, owned, seen)


def _facts(path: Path | None, folder: Path) -> tuple[Facts, str]:
    if path is not None:
        return facts_file.decode(_bytes(path), str(path)), str(path)
    packaged = _bytes(PACKAGED)
    own = folder / "catalog.json.gz"
    if _exists(own):
        refreshed = _bytes(own)
        made_at = facts_file.made_at(refreshed, str(own))
        if made_at >= facts_file.made_at(packaged, BUILT_IN):
            return facts_file.decode(refreshed, str(own)), str(own)
    return facts_file.decode(packaged, BUILT_IN), BUILT_IN


def save(facts: Facts, path: Path) -> int:
    """Replaces `path` by `facts`; on any trouble the old file stays. Returns the size in bytes."""
    data = facts_file.encode(facts)
    # What cannot be read back must not replace what can.
    facts_file.decode(data, "the new catalog")
    replace(path, data, public=True)
    return len(data)


def discard(path: Path) -> bool:
    """Deletes `path`; False where there was nothing to delete."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NoAccess(f"{path} cannot be deleted: {error.strerror or error}") from None
    return True


def record(observations: Iterable[Observation], folder: Path, now: datetime) -> None:
    """Appends, in one write; a file that has grown large is swept of what is forgotten."""
    from tradewind.catalog.observations import decode, encode

    text = encode(observations)
    path = folder / "observations.jsonl"
    with locked(folder):
        if _exists(path) and path.stat().st_size > _SWEEP_BYTES:
            kept = decode(_bytes(path).decode("utf-8", "replace"), now).recent.values()
            replace(path, (encode(one for each in kept for one in each) + text).encode())
            return
        try:
            with append(path) as stream:
                stream.write(text.encode())
        except OSError as error:
            raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time changes the files of a home; reading needs no lock."""
    path = folder / ".lock"
    try:
        with append(path) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise NoAccess(
            f"{path} cannot be locked: {error.strerror or error}",
            hint="nothing was changed; check the permissions, or $TRADEWIND_HOME",
        ) from None


def _exists(path: Path) -> bool:
    """Whether there is such a file. Something else in its place is an error, not an absence."""
    try:
        found = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        if not path.is_symlink():
            return False
        found = False
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    if not found:
        raise NoAccess(f"{path} is not a file", hint="move it away, or set TRADEWIND_HOME")
    return True


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadFile(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
