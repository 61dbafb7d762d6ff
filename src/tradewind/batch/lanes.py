"""Where outputs lie in a store, so that there is one for each item and never two.

Items are cut into lanes, each a range of them, once and for all (`spec.json`). A lane is a chain of
parts: the key of a part is the index of its first item, its content the outputs from there on, one
a line, and the next part begins where it ends. Keys are only ever created, never replaced: of two
machines that believe a lane to be theirs, one extends it and the other is told that it is too late.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import BadFile, InvalidValue, NotFound

if TYPE_CHECKING:
    from tradewind.store.base import Store

MOST_LANES = 64
_FEWEST = 50  # items of a lane: fewer are not worth a chain of their own
PART_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Spec:
    items: int
    sha256: str  # of the file of items
    lanes: int

    def range(self, lane: int) -> tuple[int, int]:
        """The first item of a lane, and where it ends."""
        return lane * self.items // self.lanes, (lane + 1) * self.items // self.lanes


class Lanes:
    def __init__(self, store: Store, folder: str, spec: Spec) -> None:
        self._store, self._folder, self.spec = store, folder, spec

    def parts(self, lane: int) -> list[str]:
        """Keys, in the order of items."""
        return self._store.list_after(f"{self._folder}parts/{lane:06d}/")

    def head(self, lane: int) -> int:
        """The first item of a lane that has no output yet; where the lane ends, if all have."""
        keys = self.parts(lane)
        if not keys:
            return self.spec.range(lane)[0]
        return _first(keys[-1]) + len(self.lines(keys[-1]))

    def lines(self, key: str) -> list[bytes]:
        return self._store.get(key, most=PART_BYTES).splitlines()

    def extend(self, lane: int, first: int, lines: Sequence[bytes]) -> bool:
        """Whether it was we who gave these items their outputs."""
        data = b"".join(line + b"\n" for line in lines)
        return self._store.create(f"{self._folder}parts/{lane:06d}/{first:012d}.jsonl", data)


def begun(store: Store, folder: str, items: int, sha256: str) -> Lanes:
    """The lanes of a batch: as they were cut first, by whoever came first."""
    wanted = Spec(items, sha256, max(min(MOST_LANES, items // _FEWEST), 1))
    key = f"{folder}spec.json"
    data = json.dumps({"items": items, "sha256": sha256, "lanes": wanted.lanes}).encode()
    if not store.create(key, data):
        kept = _spec(store, folder)
        if (kept.items, kept.sha256) != (items, sha256):
            raise InvalidValue(
                f"the outputs in {store.url} are of another file: of {kept.items:,} items, and this"
                f" one has {items:,}" + (" others" if kept.items == items else ""),
                hint="begin a new run, or another folder, for other items",
            )
        wanted = kept
    return Lanes(store, folder, wanted)


def existing(store: Store, folder: str) -> Lanes:
    return Lanes(store, folder, _spec(store, folder))


def _spec(store: Store, folder: str) -> Spec:
    try:
        told: dict[str, Any] = json.loads(store.get(f"{folder}spec.json", most=1 << 16))
        return Spec(int(told["items"]), str(told["sha256"]), int(told["lanes"]))
    except NotFound:
        raise NotFound(
            f"there are no outputs of a batch in {store.url}",
            hint="its job must have begun: tradewind.batch.open",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise BadFile(f"{folder}spec.json in {store.url} is damaged") from None


def _first(key: str) -> int:
    try:
        return int(key.rpartition("/")[2].partition(".")[0])
    except ValueError:
        raise BadFile(f"{key} is not a part of a batch") from None
