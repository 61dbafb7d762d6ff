"""Where workloads meet the world: files, the clock, and the names that the catalog knows."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base import clock, yamltree
from tradewind.base.errors import BadWorkload, NoAccess
from tradewind.base.units import format_names
from tradewind.model.workload import Workload
from tradewind.workload import reader
from tradewind.workload.known import Known

if TYPE_CHECKING:
    from tradewind.catalog import Catalog

_SUFFIXES = (".yaml", ".yml")
_MOST_BYTES = 4 * yamltree.LARGEST  # of the largest text that could still be read


def load(
    path: str | Path,
    *,
    now: datetime | None = None,
    known: Known | None = None,
    flags: reader.Flags | None = None,
) -> Workload:
    """The workload in a file, its names checked with `known` (by default, with the catalog's).

    Raises BadWorkload where it is wrong, NoAccess where the file cannot be read.
    """
    path = Path(path)
    read = text(path)
    return reader.read(
        read,
        str(path),
        now=now or clock.now(),
        known=known or known_names(),
        folder="" if path.parent == Path() else str(path.parent),
        flags=flags,
    )


def known_names(catalog: Catalog | None = None) -> Known:
    """What the catalog (with the account's own machines) and the table of models have names for."""
    from tradewind import catalog as catalogs
    from tradewind.catalog import places
    from tradewind.catalog.names import provider_name
    from tradewind.estimate import registry

    catalog = catalog or catalogs.load()
    columns = catalog.table.columns
    regions: dict[str, set[str]] = {provider: set() for provider in catalog.providers}
    for row in range(len(catalog.table)):
        regions[columns["provider"][row]].add(columns["region"][row])
    return Known(
        regions=regions,
        accelerators=tuple(catalog.accelerators),
        resolve=catalog.names.resolve,
        provider_name=provider_name,
        model=registry.find,
        country_of=places.country_of,
    )


def text(path: str | Path) -> str:
    """No more of it is read than could be right, whatever it is: a disk image, /dev/zero."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NoAccess(
            f"{path} cannot be read: {reason}",
            hint=beside(path) or "docs/workload.md describes the file",
        ) from None
    if len(data) > _MOST_BYTES:
        raise BadWorkload(f"{path} is larger than {_MOST_BYTES // 10**6} MB; is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadWorkload(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="docs/workload.md describes the file",
        ) from None


def beside(path: Path) -> str:
    """For what is not there or is a folder: which file might have been meant."""
    with suppress(OSError):
        folder = path if path.is_dir() else path.parent
        if path == folder or not path.exists():
            there = sorted(each.name for each in folder.iterdir() if each.suffix in _SUFFIXES)
            return f"in {folder} there {_some(there)}"
    return ""


def _some(names: list[str]) -> str:
    if not names:
        return "is no YAML file; docs/workload.md describes one"
    return f"{'is' if len(names) == 1 else 'are'} {format_names(names)}"
