"""Which files a user means: a file, a folder, a pattern or a range, here or in a store."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.ownfiles import home

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def is_here(where: str) -> bool:
    return "://" not in where or where.startswith("file://")


def checked(where: str) -> str:
    """Refuses what names nothing at all."""
    if not where or ("://" in where and not where.partition("://")[2].strip("/")):
        raise InvalidValue(
            f"{where!r} names no place", hint="a folder, s3://bucket/train or https://…"
        )
    return where


def here(where: str) -> str:
    """A path; of `file://…` the one that it names."""
    return unquote(urlsplit(where).path) if where.startswith("file://") else where


def expanded(where: str) -> list[str]:
    """`x-{000..119}.tar` as 120 names; anything else as itself."""
    found = _RANGE.search(where)
    if not found:
        return [where]
    first, last = found[1], found[2]
    if int(first) > int(last):
        raise InvalidValue(f"{where} ends before it begins", hint="for example {000..119}")
    return [
        name
        for number in range(int(first), int(last) + 1)
        for name in expanded(
            where[: found.start()] + str(number).zfill(len(first)) + where[found.end() :]
        )
    ]


def cache_folder(given: str | Path | None) -> Path:
    """`$TRADEWIND_HOME/cache` unless something else is said."""
    return (Path(given).expanduser() if given is not None else home() / "cache").absolute()


def files(where: str, suffixes: tuple[str, ...], cache: str | Path | None) -> list[Path]:
    """Local files; those of a store are brought first, and then lie in the cache for good."""
    if is_here(checked(where)):
        return local(here(where), suffixes)
    found = listed(where, suffixes)
    folder = cache_folder(cache) / "files"
    return [_brought(url, folder) for url in found]


def local(where: str, suffixes: tuple[str, ...]) -> list[Path]:
    path = Path(where).expanduser()
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in suffixes)
        if not found:
            raise NotFound(f"{path} holds no {' or '.join(suffixes)} file")
        return found
    if path.exists():
        return [path]
    found = [Path(each) for name in expanded(str(path)) for each in sorted(glob(name))]  # noqa: PTH207
    if not found:
        raise NotFound(f"there is no {where}", hint="it is looked for from the current folder")
    return found


def listed(where: str, suffixes: tuple[str, ...]) -> list[str]:
    """The addresses that one of a store or the web means, sorted."""
    if "{" in where:
        return expanded(where)
    if where.startswith(("http://", "https://")) or (
        where.endswith(suffixes) and not any(sign in where for sign in "*?[")
    ):
        return [where]
    from tradewind import store as stores

    fixed = re.split(r"[*?\[]", where)[0]
    place = where.rstrip("/") if fixed == where else fixed.rpartition("/")[0]
    pattern = "*" if fixed == where else where[len(place) + 1 :]
    store: Any = stores.open(place)
    keys = [
        key
        for key in store.list_after("")
        if fnmatch.fnmatchcase(key, pattern) and key.endswith(suffixes)
    ]
    if not keys:
        raise NotFound(f"{where} names no {' or '.join(suffixes)} object")
    return [f"{place}/{key}" for key in keys]


def _brought(url: str, folder: Path) -> Path:
    """Once for each address and version of it: an object that was replaced is brought again."""
    from tradewind.torch.data.download import download
    from tradewind.torch.data.sources import name_of, source

    facts = source(url).look()
    version = hashlib.sha256(f"{url} {facts.size} {facts.tag}".encode()).hexdigest()[:16]
    return download(url, folder / version / name_of(url))
