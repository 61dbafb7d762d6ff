"""What is set up at clouds for a store: one record each, in the store itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra, NotFound
from tradewind.model import bounds, buckets, places
from tradewind.providers import registry
from tradewind.providers.cloud import Identifies, Lease, Rentable, Shared
from tradewind.store.base import Store


def owner(store: Store) -> str:
    """By which a store's machines know each other."""
    return store.url.rstrip("/")


def suits(cloud: Rentable, store_url: str) -> bool:
    """Whether its machines can be somebody to such a store, or be lent passes to it."""
    return store_url.partition("://")[0] in schemes(cloud)


def schemes(cloud: Rentable) -> tuple[str, ...]:
    """Of stores that its machines reach: as somebody, or by passes that they are lent."""
    return tuple(sorted((*cloud.schemes, *cloud.lent), key=lambda each: each not in buckets.STORES))


def is_lent(cloud: Rentable, store_url: str, record: Any) -> bool:
    """Whether its machines are nobody to such a store, and hold a pass."""
    if isinstance(cloud, Identifies):
        return cloud.lends(record, store_url)
    return store_url.partition("://")[0] in cloud.lent


def signing(store: Store, cloud: Rentable, record: Any) -> tuple[Rentable, Any]:
    """Who signs links to what lies in the store: a cloud whose machines are somebody to it, or else
    the bucket's own, which must be set up for it too."""
    if store.url.partition("://")[0] in cloud.schemes:
        return cloud, record
    home = buckets.home(store.url)
    if isinstance(cloud, Identifies):
        there = registry.rentable(home) if home in registry.RENTED else None
        signs = footprint(store, there) if there is not None else None
        return (cloud, record) if there is None or signs is None else (there, signs)
    if home not in registry.RENTED:
        raise InvalidValue(
            f"nobody here can sign links to {store.url}, by which machines of {cloud.title} begin",
            hint="--store s3://BUCKET, after tradewind setup aws --store s3://BUCKET --lend, and"
            f" {cloud.setup_command('s3://BUCKET')}",
        )
    return needed(store, home)


def footprint(store: Store, cloud: Rentable) -> Any:
    """None: nothing was set up for this store, or its machines could not reach it."""
    return written(store, cloud) if suits(cloud, store.url) else None


def written(store: Store, cloud: Rentable) -> Any:
    """What setup has written down there; None: nothing."""
    try:
        record = cloud.decoded(store.get(places.footprint(cloud.name), most=bounds.RECORD))
    except NotFound:
        return None
    cloud.check(record, owner(store))
    return record


def set_up(store: Store) -> dict[str, tuple[Rentable, Any]]:
    """By name, the clouds that something was set up at for this store."""
    found = {}
    for name in registry.RENTED:
        cloud = registry.rentable(name)
        if (record := footprint(store, cloud)) is not None:
            found[name] = (cloud, record)
    return found


def leases(store: Store) -> list[Lease]:
    """Of all clouds of this store that others use too."""
    found: list[Lease] = []
    for cloud, record in set_up(store).values():
        if isinstance(cloud, Shared):
            found += cloud.leases(record)
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor what it would be a part of
        return False


def check_library(cloud: Rentable) -> None:
    """Raises what to install. Worth asking before a store is opened, which may need it too."""
    if cloud.library and not _is_there(cloud.library.module or cloud.library.package):
        raise MissingExtra(
            f"machines of {cloud.title} need {cloud.library.package}",
            hint=f"pip install 'tradewind[{cloud.library.extra}]'",
        )


def needed(store: Store, name: str) -> tuple[Rentable, Any]:
    """Raises what to do where nothing is set up."""
    cloud = registry.rentable(name)
    check_library(cloud)
    if not suits(cloud, store.url):
        url = f"{schemes(cloud)[0]}://BUCKET"
        first = "" if cloud.schemes else f"tradewind setup aws --store {url} --lend, and "
        raise InvalidValue(
            f"machines of {cloud.title} cannot reach the store {store.url}",
            hint=f"--store {url}, after {first}{cloud.setup_command(url)}",
        )
    record = footprint(store, cloud)
    if record is None:
        raise NotFound(
            f"nothing is set up at {cloud.title} for {store.url}",
            hint=cloud.setup_command(store.url),
        )
    return cloud, record
