"""Shards where they lie: found by their index, written, and counted where there is no index."""

from __future__ import annotations

import fnmatch
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.base.units import parse_bytes
from tradewind.torch.data import download, parts, places, shardindex, tars, words
from tradewind.torch.data.cache import Item
from tradewind.torch.data.shardindex import NAME, Shard
from tradewind.torch.data.sources import Source, shown, source

_AT_ONCE = 4


def found(where: str) -> list[tuple[str, Shard]]:
    """The shards that are meant, each with its address."""
    if places.is_here(places.checked(where)):
        return _here(places.here(where))
    folder, pattern = _parted(where)
    index = _index(folder)
    wanted = {url.rpartition("/")[2] for url in places.expanded(where)} if "{" in where else None
    chosen = [
        (f"{folder}/{shard.name}", shard)
        for shard in index
        if (shard.name in wanted if wanted else fnmatch.fnmatchcase(shard.name, pattern))
    ]
    if not chosen:
        raise NotFound(f"{folder}/{NAME} has no shard {pattern}")
    return [(url, _sized(url, shard)) for url, shard in chosen]


def item(url: str, shard: Shard) -> Item:
    """A name for each content: a shard that was replaced is another one."""
    version = hashlib.sha256(f"{url} {shard.size} {shard.sha256}".encode()).hexdigest()[:16]
    return Item(url, f"{version}-{shard.name}", shard.size, shard.sha256)


def _parted(where: str) -> tuple[str, str]:
    folder, _, last = where.rstrip("/").rpartition("/")
    if last.endswith(".tar"):
        return folder, last
    return where.rstrip("/"), "*.tar"


def _index(folder: str) -> list[Shard]:
    url = f"{folder}/{NAME}"
    asked, trouble = source(url), words.Seldom(words.say)
    try:
        data = parts.patiently(lambda: _whole(asked, shardindex.LARGEST), trouble)
    except NotFound:
        raise NotFound(
            f"there is no {url}: how many samples each shard has is not known",
            hint=f"tw.index_shards({folder!r}) reads every shard once and writes it",
        ) from None
    return shardindex.decode(data, url)


def _whole(asked: Source, most: int) -> bytes:
    data = bytearray()
    for chunk in asked.read(0, None, ""):
        data += chunk
        if len(data) > most:
            raise BadFile(f"{shown(asked.url)} is larger than {words.sized(most)}: not an index")
    return bytes(data)


def _sized(url: str, shard: Shard) -> Shard:
    """Indexes of others do not say sizes."""
    if shard.size:
        return shard
    size = parts.patiently(source(url).look, words.Seldom(words.say)).size
    if size is None:
        raise InvalidValue(f"{url} does not say how large it is", hint="tw.index_shards helps")
    return Shard(shard.name, shard.samples, size)


def _here(where: str) -> list[tuple[str, Shard]]:
    paths = places.local(where, (".tar",))
    for path in paths:
        if path.suffix != ".tar":
            raise InvalidValue(f"{path} is no .tar file", hint="shards are tar files, not packed")
    known: dict[Path, Shard] = {}
    for folder in {path.parent for path in paths}:
        index = folder / NAME
        if index.exists():
            known |= {folder / s.name: s for s in shardindex.decode(index.read_bytes(), str(index))}
    return [
        (str(path), known.get(path) or Shard(path.name, len(tars.Tar(path)), path.stat().st_size))
        for path in paths
    ]


# -- writing ---------------------------------------------------------------------------------------


def write_shards(
    to: str | Path, samples: Iterable[Mapping[str, Any]], *, shard_bytes: str | int = "100MB"
) -> int:
    """Writes samples as shards of about that size into a folder, of a store or of this host, and
    their index; how many samples. A sample is a table from field to value: `{"jpg": bytes, "cls":
    3}`, and `__key__` if its name matters. Fields are written by what they are called, as
    WebDataset does. The index is written last: without it there is nothing."""
    from tradewind import store as stores

    most = parse_bytes(shard_bytes) if isinstance(shard_bytes, str) else int(shard_bytes)
    store = stores.open(to)
    if any(key.endswith((".tar", NAME)) and "/" not in key for key in store.list_after("")):
        raise InvalidValue(f"{to} holds shards already", hint="name an empty folder")
    made: list[Shard] = []
    with tempfile.TemporaryDirectory(prefix="tradewind-shards-") as folder:
        for number, some in enumerate(_portions(samples, most)):
            path = Path(folder) / f"{number:06d}.tar"
            tars.write(path, some)
            made.append(_described(path, len(some)))
            store.upload(path.name, path)
            path.unlink()
    if not made:
        raise InvalidValue("there are no samples to write")
    store.replace(NAME, shardindex.encode(made))
    return sum(shard.samples for shard in made)


def _portions(
    samples: Iterable[Mapping[str, Any]], most: int
) -> Iterator[list[tuple[str, dict[str, bytes]]]]:
    some: list[tuple[str, dict[str, bytes]]] = []
    size = 0
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise InvalidValue(
                f"sample {number} is a {type(sample).__name__}",
                hint='give tables: {"jpg": data, "cls": 3}',
            )
        key = str(sample.get("__key__", f"{number:09d}"))
        fields = {
            name: tars.encoded(name, value)
            for name, value in sample.items()
            if not name.startswith("__")
        }
        if not fields or not key or "." in key.rpartition("/")[2]:
            raise InvalidValue(
                f"sample {number} ({key!r}) has " + ("a dot in its key" if fields else "no fields"),
            )
        taken = sum(1024 + len(value) for value in fields.values())
        if some and size + taken > most:
            yield some
            some, size = [], 0
        some.append((key, fields))
        size += taken
    if some:
        yield some


def index_shards(where: str | Path) -> int:
    """Reads every `.tar` of a folder once, of a store or of this host, and writes `index.json`
    beside them; how many samples there are."""
    from tradewind import store as stores

    if str(where).startswith(("http://", "https://")):
        raise InvalidValue(f"{where} cannot be written to", hint="index them where they are kept")
    store: Any = stores.open(where)
    names = [key for key in store.list_after("") if key.endswith(".tar") and "/" not in key]
    if not names:
        raise NotFound(f"there are no .tar files in {where}")

    def one(name: str) -> Shard:
        path = Path(folder) / name
        url = f"{str(store.url).rstrip('/')}/{name}"
        download.fetched(source(url), path, "", say=lambda _: None)
        try:
            return _described(path, len(tars.Tar(path)))
        finally:
            path.unlink()

    with (
        tempfile.TemporaryDirectory(prefix="tradewind-shards-") as folder,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        made = list(pool.map(one, names))
    store.replace(NAME, shardindex.encode(made))
    return sum(shard.samples for shard in made)


def _described(path: Path, samples: int) -> Shard:
    return Shard(path.name, samples, path.stat().st_size, download.sha256_of(path))
