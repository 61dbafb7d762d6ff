"""What can be asked of a store, as values (see tradewind/base/steps.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tradewind.base.errors import NotFound
from tradewind.store.base import MOST_READ, Store, Weighed


class Get(Struct, frozen=True, gc=False):
    key: str
    most: int = MOST_READ


class Find(Struct, frozen=True, gc=False):
    """As Get, and None where there is no such key."""

    key: str
    most: int = MOST_READ


class GetMany(Struct, frozen=True):
    keys: tuple[str, ...]
    most: int = MOST_READ
    """Of each."""


class ListAfter(Struct, frozen=True, gc=False):
    prefix: str
    after: str = ""


class Weigh(Struct, frozen=True, gc=False):
    """What lies below the prefix: sizes, and since when; None where the store does not tell."""

    prefix: str


class Create(Struct, frozen=True, gc=False):
    key: str
    data: bytes


class Replace(Struct, frozen=True, gc=False):
    key: str
    data: bytes


class Delete(Struct, frozen=True, gc=False):
    key: str


def performer(store: Store) -> Callable[[Any], Any]:
    """Does one step on this store, at once."""

    def get_many(step: GetMany) -> list[bytes]:
        return store.get_many(step.keys, most=step.most)

    def find(step: Find) -> bytes | None:
        try:
            return store.get(step.key, most=step.most)
        except NotFound:
            return None

    def weigh(step: Weigh) -> list[tuple[int, float]] | None:
        return store.weigh(step.prefix) if isinstance(store, Weighed) else None

    doers: dict[type, Callable[[Any], Any]] = {
        Weigh: weigh,
        Get: lambda step: store.get(step.key, most=step.most),
        Find: find,
        GetMany: get_many,
        ListAfter: lambda step: store.list_after(step.prefix, step.after),
        Create: lambda step: store.create(step.key, step.data),
        Replace: lambda step: store.replace(step.key, step.data),
        Delete: lambda step: store.delete(step.key),
    }

    def perform(step: Any) -> Any:
        return doers[type(step)](step)

    return perform
