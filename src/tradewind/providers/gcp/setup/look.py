"""A look at a project for a store: where its bucket is, and what is there besides."""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.base.errors import InvalidValue
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.footprint import Footprint, is_home
from tradewind.providers.gcp.setup import make, teardown
from tradewind.providers.gcp.setup.make import Wish, wish_of

__all__ = ["Look", "Wish", "wish_of"]


class Look:
    def __init__(self, google: Google, wish: Wish) -> None:
        self._wish = wish
        self._calls, self._seen = make.first(google, wish)

    @property
    def store_env(self) -> Mapping[str, str] | None:
        """Nothing but credentials, which are found as ours are, or as that bucket's own cloud's
        are: it must be there then."""
        there = self._seen.bucket is not None or not is_home(self._wish.store_url)
        return {} if there else None

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        return make.prepared(self._calls, self._wish, self._seen, known)

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        make.check_project(self._calls, self._wish.store_url, known)
        if delete_store and not is_home(self._wish.store_url):
            raise InvalidValue(
                "the bucket is not Google's", hint="teardown of its own cloud deletes it"
            )
        lines = teardown.look(self._calls, self._wish.store_url, self._seen.bucket is not None)
        if delete_store and self._seen.bucket is not None:
            bucket = teardown.look_at_bucket(self._calls, self._wish.store_url, self._seen.bucket)
            lines.append(bucket)
        return lines
