"""What is set up at clouds for a store: one record each, in the store itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra, NotFound
from tradewind.model import places
from tradewind.providers import registry
from tradewind.providers.cloud import Rentable
from tradewind.store.base import Store


def owner(store: Store) -> str:
    """By which a store's machines know each other."""
    return store.url.rstrip("/")


def suits(cloud: Rentable, store_url: str) -> bool:
    """Whether its machines can be somebody to such a store."""
    return store_url.partition("://")[0] in cloud.schemes


def footprint(store: Store, cloud: Rentable) -> Any:
    """None: nothing was set up for this store, or its machines could not reach it."""
    return written(store, cloud) if suits(cloud, store.url) else None


def written(store: Store, cloud: Rentable) -> Any:
    """What setup has written down there; None: nothing."""
    try:
        return cloud.decoded(store.get(places.footprint(cloud.name)))
    except NotFound:
        return None


def set_up(store: Store) -> dict[str, tuple[Rentable, Any]]:
    """By name, the clouds that something was set up at for this store."""
    found = {}
    for name in registry.RENTED:
        cloud = registry.rentable(name)
        if (record := footprint(store, cloud)) is not None:
            found[name] = (cloud, record)
    return found


def check_library(cloud: Rentable) -> None:
    """Raises what to install. Worth asking before a store is opened, which may need it too."""
    if cloud.library and find_spec(cloud.library.package) is None:
        raise MissingExtra(
            f"machines of {cloud.title} need {cloud.library.package}",
            hint=f"pip install 'tradewind[{cloud.library.extra}]'",
        )


def needed(store: Store, name: str) -> tuple[Rentable, Any]:
    """Raises what to do where nothing is set up."""
    cloud = registry.rentable(name)
    check_library(cloud)
    if not suits(cloud, store.url):
        url = f"{cloud.schemes[0]}://BUCKET"
        raise InvalidValue(
            f"machines of {cloud.title} cannot reach the store {store.url}",
            hint=f"--store {url}, after {cloud.setup_command(url)}",
        )
    record = footprint(store, cloud)
    if record is None:
        raise NotFound(
            f"nothing is set up at {cloud.title} for {store.url}",
            hint=cloud.setup_command(store.url),
        )
    return cloud, record
