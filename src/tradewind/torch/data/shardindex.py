"""`index.json` beside shards: their names, sizes, checksums and how many samples each has.

Without the numbers nobody could say what the n-th sample is, and so neither share out what is left
of an epoch nor go on in it with another number of ranks. WebDataset's own index (`wids`) is read as
well.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tradewind.base.errors import BadFile

NAME = "index.json"
LARGEST = 256 << 20
"""In bytes: some million shards."""
_FORMAT = 1
_NOT_ONE = (
    *(msgspec.MsgspecError, UnicodeDecodeError, RecursionError),  # as JSON
    *(LookupError, TypeError, AttributeError),  # as WebDataset's
)

Count = Annotated[int, Meta(ge=0, le=1 << 48)]


class Shard(Struct, frozen=True):
    name: str
    """Its file, beside the index."""
    samples: Count
    size: Count = 0
    """In bytes; 0: not known."""
    sha256: str = ""


class Index(Struct, frozen=True):
    format: int
    shards: tuple[Shard, ...]


def encode(shards: list[Shard]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(Index(_FORMAT, tuple(shards))), indent=1)


def decode(data: bytes, where: str) -> list[Shard]:
    try:
        said: Any = msgspec.json.decode(data)
        if isinstance(said, dict) and "shardlist" in said:
            found = [
                {
                    "name": each["url"].rpartition("/")[2],
                    "samples": each["nsamples"],
                    "size": each.get("filesize") or 0,
                }
                for each in said["shardlist"]
            ]
            said = {"format": _FORMAT, "shards": found}
        index = msgspec.convert(said, Index)
        if index.format > _FORMAT:
            raise BadFile(f"{where} is of a newer format", hint="update tradewind")
        wrong = [each.name for each in index.shards if _is_elsewhere(each.name)]
        if wrong:
            raise BadFile(f"{where} names {wrong[0]!r}, which is not a file beside it")
        return list(index.shards)
    except _NOT_ONE as error:
        raise BadFile(
            f"{where} is not an index of shards: {error}", hint="tw.index_shards makes one"
        ) from None


def _is_elsewhere(name: str) -> bool:
    return "/" in name or "\0" in name or name in ("", ".", "..")
