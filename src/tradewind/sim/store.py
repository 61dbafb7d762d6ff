"""A store that does what a store promises, until a fault is asked of it.

A step that fails may have been done or not, or be done when everybody has forgotten it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any

from tradewind.base.errors import NotFound, SourceFailed
from tradewind.sim.world import World
from tradewind.store.base import check_size
from tradewind.store.steps import Create, Delete, Find, Get, GetMany, ListAfter, Replace, Weigh


class SimStore:
    """As MemoryStore, for steps only and without checking keys, which would take half of the time.
    Tells `on_create` of every object that really came to be."""

    def __init__(
        self,
        world: World,
        on_create: Callable[[str, bytes], None],
        on_replace: Callable[[str, bytes], None],
    ) -> None:
        self._world = world
        self._on_create, self._on_replace = on_create, on_replace
        self.objects: dict[str, bytes] = {}
        self._keys: list[str] = []  # sorted
        self._doers: dict[type, Callable[[Any], Any]] = {
            Get: self._get,
            Find: lambda step: self._get(step) if step.key in self.objects else None,
            GetMany: lambda step: [self._get(Get(key, step.most)) for key in step.keys],
            ListAfter: self._list_after,
            Weigh: self._weigh,
            Create: self._create,
            Replace: self._replace,
            Delete: self._delete,
        }

    def plant(self, key: str, data: bytes) -> None:
        """What somebody has put there whose word is nothing to the referee."""
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = data

    def perform(self, step: Any) -> Any:
        return self._doers[type(step)](step)

    def _get(self, step: Get | Find) -> bytes:
        try:
            found = self.objects[step.key]
        except KeyError:
            raise NotFound(f"there is no {step.key}") from None
        check_size(step.key, "the store", len(found), step.most)
        return found

    def _list_after(self, step: ListAfter) -> list[str]:
        keys, prefix = self._keys, step.prefix
        first = bisect_right(keys, step.after or prefix)
        last = first
        while last < len(keys) and keys[last].startswith(prefix):
            last += 1
        return keys[first:last]

    def _weigh(self, step: Weigh) -> list[tuple[int, float]]:
        since = float(self._world.now)  # nobody asks here for how long it lay
        return [(len(self.objects[key]), since) for key in self._list_after(ListAfter(step.prefix))]

    def _create(self, step: Create) -> bool:
        if step.key in self.objects:
            return False
        insort(self._keys, step.key)
        self.objects[step.key] = step.data
        self._on_create(step.key, step.data)
        return True

    def _replace(self, step: Replace) -> None:
        if step.key not in self.objects:
            insort(self._keys, step.key)
        self.objects[step.key] = step.data
        self._on_replace(step.key, step.data)

    def _delete(self, step: Delete) -> None:
        if self.objects.pop(step.key, None) is not None:
            self._keys.remove(step.key)

    def fail(self, step: Any) -> Any:
        """One of the ways in which a step can go wrong."""
        rng = self._world.rng
        changes = isinstance(step, Create | Replace | Delete)
        fate = rng.choice(("before", "after", "much later")) if changes else "before"
        self._world.fault(f"store fails {fate}")
        if fate == "after":
            self.perform(step)
        elif fate == "much later":
            self._world.later(rng.randrange(1, 120), lambda: self._late(step))
        raise SourceFailed(f"the store did not answer (sim: {fate})")

    def _late(self, step: Any) -> None:
        self.perform(step)
