"""Links to what lies in a store, signed by whoever uses this computer, with what opens the store
for them: a link lives as long as what it was signed with, and then is nobody's.

A folder has paths for links: who has the folder can open them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.store.base import check_key
from tradewind.store.handles import first_words, handle

_TRIED = "providers/tried"
_LONGEST = timedelta(days=7)
"""By what any kind of bucket signs for."""


def folder_of(url: str) -> Path:
    """That a file:// address names."""
    return Path(unquote(urlsplit(url).path))


class Linking(ABC):
    """Nothing is asked of anybody before a link is wanted."""

    def check(self) -> None:
        """That a link can be signed at all: one is tried."""
        try:
            self.get(_TRIED, 60)
        except TradewindError as error:
            raise NoAccess(
                f"no link for machines can be signed: {error.message}; nothing was launched",
                hint=error.hint,
            ) from error

    def get(self, key: str, for_s: int) -> str:
        return self._link("GET", key, for_s)

    def put(self, key: str, for_s: int) -> str:
        return self._link("PUT", key, for_s)

    @abstractmethod
    def _link(self, method: str, key: str, for_s: int) -> str: ...


class Links(Linking):
    """As the store itself is opened from here."""

    def __init__(self, store_url: str, env: Mapping[str, str] | None = None) -> None:
        self._url, self._env = store_url.rstrip("/"), os.environ if env is None else env

    def _link(self, method: str, key: str, for_s: int) -> str:
        scheme, _, rest = self._url.partition("://")
        check_key(key)
        if scheme == "file":
            return (folder_of(self._url) / key).as_uri()
        bucket, _, prefix = rest.partition("/")
        path = f"{prefix}/{key}" if prefix else key
        opened = handle(scheme, bucket, self._env, retries=2, timeout_s=30.0)
        import obstore
        from obstore.exceptions import BaseError

        lasts = min(timedelta(seconds=for_s), _LONGEST)
        try:
            return str(obstore.sign(opened, method, path, lasts))  # type: ignore[call-overload]
        except (BaseError, ValueError, OSError) as error:
            raise NoAccess(
                f"a link to {self._url} cannot be signed: {first_words(error)}",
                hint="keys of your own, or a service account's, can; or set the bucket's own cloud"
                " up for the store (tradewind setup)",
            ) from None
