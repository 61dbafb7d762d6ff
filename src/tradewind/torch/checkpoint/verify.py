"""What was written is read back, before what it replaces is removed.

Each rank reads its own file from the disk, past the page cache, by a few threads, beside the
training. All ranks must find theirs whole. Where files are only in a bucket, that has checked them
as they came, and their sizes have been looked at.
"""

from __future__ import annotations

import mmap
import threading

from tradewind.base.errors import TradewindError
from tradewind.torch.checkpoint.files import Files
from tradewind.torch.checkpoint.group import Group
from tradewind.torch.checkpoint.pieces import PIECE, Team, threads
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.shelf import Found

_READERS = 4
"""One is held up by its check sums at a third of a disk's speed."""
STOPPED = "the reading was stopped"


def agreed(group: Group | None, number: int, trouble: str, timeout_s: float) -> str:
    """The first trouble that any rank had with its file; "": all are whole."""
    if group is None:
        return trouble
    told = group.gather(f"save/{number}/whole", trouble, str, timeout_s)
    silent = "a rank did not say whether its file is whole"
    return next(
        (words for words in (silent if each is None else each for each in told) if words), ""
    )


def read_back(place: Place, found: Found, file: str, stop: threading.Event, limit_s: float) -> str:
    """What is wrong with it, "" for nothing; STOPPED where nobody knows."""
    if place.files is None or not (place.files / found.name / file).exists():
        return ""
    rooms = threading.local()

    def read(number: int) -> None:
        if stop.is_set():
            raise _Stopped
        if not hasattr(rooms, "mine"):
            rooms.mine = memoryview(mmap.mmap(-1, PIECE))
        opened.read(file, number, rooms.mine)

    try:
        with Files(place, found.manifest) as opened:
            team = Team(read, min(_READERS, threads()))
            for number in range(len(found.manifest.files[file][1])):
                team.put(number)
            team.wait(limit_s, "reading it back")
    except _Stopped:
        return STOPPED
    except TradewindError as error:
        return error.message
    return ""


class _Stopped(Exception):
    pass
