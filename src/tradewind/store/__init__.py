"""Where runs live. `open` takes a URL or a path; base.py says what a store promises.

`$TRADEWIND_STORE`, else the URL that `tradewind init` wrote into `$TRADEWIND_HOME/store.url`, else
the folder `$TRADEWIND_HOME/store`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.base.ownfiles import home, replace
from tradewind.store.base import Store
from tradewind.store.memory import MemoryStore

__all__ = ["Store", "default_url", "open", "remember"]

_in_memory: dict[str, MemoryStore] = {}
_lock = threading.Lock()


def open(url: str | Path | None = None, *, env: Mapping[str, str] | None = None) -> Store:  # noqa: A001
    """`file:///folder` or a path, `s3://bucket/prefix`, `gs://…`, `az://container/…`, `memory://name`
    (one per name and process; without a name a fresh one), `relay:///file` on machines that reach
    a store through their user's connection only (relayed.py). Without a URL, the default.

    Opening a bucket asks it nothing yet."""
    text = str(url) if url is not None else default_url(env)
    if "\0" in unquote(text):
        raise InvalidValue(f"{text!r} cannot be the name of a store: it holds a zero byte")
    scheme, separator, rest = text.partition("://")
    if not separator:
        from tradewind.store.local import LocalStore

        if not text:
            raise InvalidValue("the name of the store is empty", hint="a folder, or s3://bucket")
        try:
            return LocalStore(Path(text).expanduser())
        except RuntimeError as error:
            raise NoAccess(f"there is no folder {text}: {error}") from None
    if scheme == "file":
        from tradewind.store.local import LocalStore

        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path or parts.query or parts.fragment:
            raise InvalidValue(f"{text!r} is no folder", hint="for example file:///data/tradewind")
        return LocalStore(Path(unquote(parts.path)))
    if scheme == "memory":
        with _lock:
            return _in_memory.setdefault(rest, MemoryStore(rest)) if rest else MemoryStore()
    if scheme in ("s3", "gs", "az"):
        from tradewind.store.objects import ObjectStore

        return ObjectStore(text, env=env)
    if scheme == "relay":
        from tradewind.store.relayed import RelayedStore

        return RelayedStore(text)
    raise InvalidValue(
        f"there is no kind of store {scheme}://",
        hint="a folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
    )


def default_url(env: Mapping[str, str] | None = None) -> str:
    chosen = (os.environ if env is None else env).get("TRADEWIND_STORE")
    if chosen:
        return chosen
    path = home(env) / "store.url"
    try:
        written = path.read_text("utf-8").strip()
    except FileNotFoundError:
        return (home(env).absolute() / "store").as_uri()
    except (OSError, UnicodeDecodeError) as error:
        raise NoAccess(f"{path} cannot be read: {error}") from None
    if not written or "\n" in written:
        raise BadFile(f"{path} is not one URL", hint="run `tradewind init URL` again")
    return written


def remember(url: str, env: Mapping[str, str] | None = None) -> Path:
    """Makes `url` the default of this user; returns the file that says so."""
    path = home(env) / "store.url"
    replace(path, (url + "\n").encode())
    return path
