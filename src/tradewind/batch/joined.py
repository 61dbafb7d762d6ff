"""The outputs of a batch as one file, in the order of its items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tradewind import store as stores
from tradewind.base.errors import BadFile, NoAccess
from tradewind.batch.lanes import Lanes, existing
from tradewind.batch.work import ALONE
from tradewind.model import places
from tradewind.store import readers

if TYPE_CHECKING:
    from tradewind.store.base import Store


class Collected(NamedTuple):
    path: Path
    items: int
    missing: int  # items without an output yet


def collect(to: str | Path, *, store: Store | None = None, run: str | None = None) -> Collected:
    """Writes what there is; of a run in a store, or of the folder `outputs` here. A run's count as
    fetched then (`tradewind sweep --unread`)."""
    opened = store or stores.open(Path(ALONE))
    lanes = existing(opened, places.batch(run) if run else "batch/")
    path = Path(to)
    fresh = path.with_name(path.name + ".part")
    number = 0
    try:
        with fresh.open("wb") as file:
            for line in _lines(lanes):
                file.write(line + b"\n")
                number += 1
        fresh.replace(path)
    except OSError as error:
        raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None
    if run:
        readers.note(opened, run)
    return Collected(path, lanes.spec.items, lanes.spec.items - number)


def _lines(lanes: Lanes) -> Iterator[bytes]:
    """BadFile where an output is there twice, or one within a lane is not there."""
    for lane in range(lanes.spec.lanes):
        place = lanes.spec.range(lane)[0]
        for key in lanes.parts(lane):
            for line in lanes.lines(key):
                try:
                    index = json.loads(line)["index"]
                except (ValueError, KeyError, TypeError):
                    raise BadFile(f"{key} is damaged") from None
                if index != place:
                    raise BadFile(f"{key} has an output of item {index}, and {place} is due")
                place += 1
                yield line
