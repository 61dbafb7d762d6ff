"""`index.json` beside shards: their names, sizes, checksums and how many samples each has.

Without the numbers nobody could say what the n-th sample is, and so neither share out what is left
of an epoch nor go on in it with another number of ranks. WebDataset's own index (`wids`) is read as
well.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from tradewind.errors import BadFile

NAME = "index.json"
_FORMAT = 1


class Shard(Struct, frozen=True):
    name: str
    """Its file, beside the index."""
    samples: int
    size: int = 0
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
            return [
                Shard(each["url"].rpartition("/")[2], each["nsamples"], each.get("filesize") or 0)
                for each in said["shardlist"]
            ]
        index = msgspec.convert(said, Index)
        if index.format > _FORMAT:
            raise BadFile(f"{where} is of a newer format", hint="update tradewind")
        wrong = [each.name for each in index.shards if each.samples < 0 or "/" in each.name]
        if wrong:
            raise BadFile(f"{where} says nonsense of {wrong[0]}")
        return list(index.shards)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadFile(
            f"{where} is no index of shards: {error}", hint="tw.index_shards makes one"
        ) from None
