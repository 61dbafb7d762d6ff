"""`tw.shards`: samples in tar files, WebDataset's format, from a store by way of a cache.

Map-style, with an order of its own (shardorder.py): shards come shuffled, few at a time, the next
ones while these are read; and a training goes on to the bit, with any number of ranks and workers,
every sample once an epoch. WebDataset itself is not needed: its readers are streams, whose place in
an epoch belongs to one number of ranks and workers.
"""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.units import parse_bytes
from tradewind.torch.data import bringing, places, shardfiles, tars, words
from tradewind.torch.data.cache import Cache
from tradewind.torch.data.shardfiles import index_shards, write_shards
from tradewind.torch.data.shardindex import Shard
from tradewind.torch.data.shardorder import ShardOrder

__all__ = ["Shards", "index_shards", "shards", "write_shards"]

_MOST_BYTES = 50 * 10**9


class Shards:
    """Samples by number. A sample is a table of its fields and its `__key__`, as `decode` and then
    `transform` make it."""

    def __init__(
        self,
        found: list[tuple[str, Shard]],
        cache: Cache | None,
        *,
        transform: Callable[[dict[str, Any]], Any] | None,
        decode: bool,
        mix: int,
    ) -> None:
        self._found, self._cache = found, cache
        self.transform = transform
        self._decode, self._mix = decode, mix
        self._counts = [shard.samples for _, shard in found]
        self._ends = list(accumulate(self._counts))
        self._items = [shardfiles.item(url, shard) for url, shard in found] if cache else []
        self._open: OrderedDict[int, tars.Tar] = OrderedDict()
        self._ahead: bringing.Ahead | None = None
        if not len(self):
            raise InvalidValue(f"the {len(found)} shards hold no samples")

    @property
    def shard_count(self) -> int:
        return len(self._found)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> Any:
        index = range(len(self))[index]
        shard = bisect_right(self._ends, index)
        sample = self._tar(shard)[index - (self._ends[shard - 1] if shard else 0)]
        if self._decode:
            for field, value in sample.items():
                if field != "__key__":
                    sample[field] = self._decoded(shard, sample["__key__"], field, value)
        return sample if self.transform is None else self.transform(sample)

    def _decoded(self, shard: int, key: str, field: str, value: bytes) -> Any:
        try:
            return tars.decoded(field, value)
        except Exception as error:
            short = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise BadFile(
                f"{key}.{field} in {self._found[shard][0]} cannot be read: {short}",
                hint="decode=False leaves all fields as bytes",
            ) from None

    # -- files -------------------------------------------------------------------------------------

    def _tar(self, number: int) -> tars.Tar:
        found = self._open.get(number)
        if found is not None:
            self._open.move_to_end(number)
            return found
        found = self._opened(number)
        self._open[number] = found
        if len(self._open) > 2 * self._mix + 2:
            self._open.popitem(last=False)
        return found

    def _opened(self, number: int) -> tars.Tar:
        url, shard = self._found[number]
        if self._cache is None:
            return _counted(tars.Tar(Path(url)), url, shard)
        item = self._items[number]
        trouble: BadFile | None = None
        for _ in range(4):  # it may go while we wait, if the cache is small
            bringing.bring(self._cache, item)
            try:
                return _counted(tars.Tar(self._cache.path(item)), url, shard)
            except FileNotFoundError:
                continue
            except BadFile as error:
                self._cache.drop(item)
                if trouble is not None:
                    raise
                trouble = error
                words.say(f"warning: {error.message}; it is brought again")
        raise trouble or BadFile(
            f"{url} does not stay in the cache", hint="make the cache larger: cache_bytes='100GB'"
        )

    # -- what feeds ask for ------------------------------------------------------------------------

    def tradewind_order(
        self, seed: int, epoch: int, *, ranks: int, batch: int, shuffle: bool
    ) -> ShardOrder:
        return ShardOrder(self._counts, seed, epoch, ranks, batch, self._mix if shuffle else 0)

    def tradewind_near(self, shards: list[int]) -> None:
        if self._cache is None:
            return
        if self._ahead is None:
            self._ahead = bringing.Ahead(self._cache, self._items)
        self._ahead.near(shards)

    def tradewind_facts(self) -> dict[str, Any]:
        """On which the order depends: to change them in the middle of an epoch mixes it up."""
        return {"shards": len(self._found), "shards mixed": self._mix}

    def __getstate__(self) -> dict[str, Any]:
        """For workers that are spawned."""
        kept = {**self.__dict__, "_open": OrderedDict(), "_ahead": None}
        if self._cache is not None:
            kept["_cache"] = Cache(self._cache.folder, self._cache.most_bytes)
        return kept


def _counted(tar: tars.Tar, url: str, shard: Shard) -> tars.Tar:
    if len(tar) != shard.samples:
        raise BadFile(
            f"{url} has {len(tar):,} samples, and its index says {shard.samples:,}",
            hint="tw.index_shards makes the index again",
        )
    return tar


def shards(
    where: str | Path | Iterable[str | Path],
    *,
    transform: Callable[[dict[str, Any]], Any] | None = None,
    decode: bool = True,
    cache: str | Path | None = None,
    cache_bytes: str | int | None = None,
    mix: int = 4,
) -> Shards:
    """Samples of tar shards: a folder of a store (`s3://bucket/train`) or of this host, a pattern,
    a range like `https://example.org/train-{000..119}.tar`, or several of these. `index.json` lies
    beside them (`tw.write_shards` and `tw.index_shards` make it).

    Those of a store come through `cache`, a folder of at most `cache_bytes` (50 GB, or half of
    what is free). `mix`: how many shards are shuffled together. `decode`: text, numbers, JSON and
    tensors are read by what their fields are called; the rest stays bytes."""
    given = [where] if isinstance(where, str | Path) else list(where)
    if not given:
        raise InvalidValue("no shards are named", hint="for example s3://bucket/train")
    if isinstance(mix, bool) or not isinstance(mix, int) or mix < 1:
        raise InvalidValue(f"{mix!r} shards cannot be mixed", hint="mix=4; 1 for one at a time")
    if transform is not None and not callable(transform):
        raise InvalidValue(f"transform is a {type(transform).__name__}, which cannot be called")
    found = [each for one in given for each in shardfiles.found(str(one))]
    here = all(places.is_here(str(one)) for one in given)
    if here and cache is None:
        return Shards(found, None, transform=transform, decode=decode, mix=mix)
    folder = places.cache_folder(cache) / "shards"
    made = Cache(folder, _most_bytes(cache_bytes, folder))
    largest = max((shard.size for _, shard in found), default=0)
    if made.most_bytes < (needed := 3 * mix * largest):
        raise InvalidValue(
            f"a cache of {words.sized(made.most_bytes)} is too small: {mix} shards are read at a"
            f" time while {mix} more come and {mix} go, of up to {words.sized(largest)} each",
            hint=f"cache_bytes={needed} or more for each rank of a host, or a smaller mix",
        )
    return Shards(found, made, transform=transform, decode=decode, mix=mix)


def _most_bytes(given: str | int | None, folder: Path) -> int:
    if given is None:
        above = next(each for each in (folder, *folder.parents) if each.exists())
        return min(_MOST_BYTES, shutil.disk_usage(above).free // 2)
    most = parse_bytes(given) if isinstance(given, str) else int(given)
    if most < 1:
        raise InvalidValue(f"a cache cannot have {given!r} bytes", hint="cache_bytes='50GB'")
    return most
