"""What was written is read back, before what it replaces is removed.

Each rank reads its own file from the disk, past the page cache, by one thread: training's own reads
come first. All ranks must find theirs whole. Where files are only in a bucket, that has checked
them as they came, and their sizes have been looked at.
"""

from __future__ import annotations

import mmap

from tradewind.errors import TradewindError
from tradewind.torch.checkpoint.files import Files
from tradewind.torch.checkpoint.group import Group
from tradewind.torch.checkpoint.pieces import PIECE
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.shelf import Found


def agreed(group: Group | None, number: int, trouble: str, timeout_s: float) -> str:
    """The first trouble that any rank had with its file; "": all are whole."""
    if group is None:
        return trouble
    told = group.gather(f"save/{number}/whole", trouble, str, timeout_s)
    silent = "a rank did not say whether its file is whole"
    return next(
        (words for words in (silent if each is None else each for each in told) if words), ""
    )


def read_back(place: Place, found: Found, file: str) -> str:
    """What is wrong with it, "" for nothing."""
    if place.files is None or not (place.files / found.name / file).exists():
        return ""
    space = memoryview(mmap.mmap(-1, PIECE))
    try:
        with Files(place, found.manifest) as opened:
            for number in range(len(found.manifest.files[file][1])):
                opened.read(file, number, space)
    except TradewindError as error:
        return error.message
    return ""
