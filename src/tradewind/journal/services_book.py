"""The journals of services, and which services a store has."""

from __future__ import annotations

from tradewind.base import steps
from tradewind.base.errors import NotFound
from tradewind.base.units import format_names
from tradewind.journal.book import Book
from tradewind.model import places
from tradewind.model.service import FORMAT, ServiceCommit
from tradewind.store.base import Store
from tradewind.store.steps import performer

BOOK = Book("services", ServiceCommit, FORMAT)
_SHOWN = 5


def read(store: Store, service_id: str, after: int = 0) -> list[ServiceCommit]:
    return steps.run(BOOK.read_steps(service_id, after), performer(store))


def service_ids(store: Store) -> list[str]:
    """Of every service that ever was, the oldest first."""
    found = [name for name in store.folders(places.SERVICES) if places.is_run_id(name)]
    return sorted(found, key=lambda name: name.rsplit("-", 2)[-2:])


def live_ids(store: Store) -> list[str]:
    found = (places.marked_service(key) for key in store.list_after(places.LIVE))
    return [name for name in found if name is not None]


def named(store: Store, name: str) -> str:
    """The service that is meant: its id, the beginning of one that no other has, or its name where
    one service of that name goes on."""
    ids = service_ids(store)
    if name in ids:
        return name
    meant = [each for each in ids if name and each.startswith(name)]
    if len(meant) > 1:
        marked = set(live_ids(store))
        going = [each for each in meant if each in marked]
        meant = going if len(going) == 1 else meant
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise NotFound(
            f"{name!r} may be any of {len(meant)} services: {format_names(meant, _SHOWN)}",
            hint="write more of the id",
            choices=meant,
        )
    hint = f"the newest is {ids[-1]}" if ids else f"there are no services in {store.url}"
    raise NotFound(f"there is no service {name!r}", hint=hint)
