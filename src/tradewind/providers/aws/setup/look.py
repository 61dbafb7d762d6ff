"""A look at an account for a store: where its bucket is, and what is there besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.base.errors import InvalidValue
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, bucket_of, is_home
from tradewind.providers.aws.setup import bucket, make, teardown
from tradewind.providers.aws.setup.calls import Calls
from tradewind.providers.aws.setup.make import Wish
from tradewind.providers.changes import Line, Prepared


class Look:
    def __init__(self, account: Account, wish: Wish) -> None:
        self._calls, self._wish = Calls(account), wish
        self._first = make.asking(account, wish.regions)
        self._region = ""  # of the bucket, where it is ours
        if is_home(wish.store_url):
            name, _ = bucket_of(wish.store_url)
            self._region = bucket.region_of(self._calls, name, self._first)

    @property
    def store_env(self) -> Mapping[str, str] | None:
        """A bucket answers in its own region, whichever is the user's. Another cloud's is opened as
        that cloud's tools do it, and must be there."""
        if not is_home(self._wish.store_url):
            return {}
        return {"AWS_REGION": self._region} if self._region else None

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        return make.prepared(self._calls, self._wish, self._region, known)

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        if delete_store and not is_home(self._wish.store_url):
            raise InvalidValue(
                "the bucket is not AWS's", hint="teardown of its own cloud deletes it"
            )
        calls, region, regions = self._calls, self._region, self._regions(known)
        make.check_account(calls, self._wish.store_url, known)
        make.check_regions(calls, regions, self._first)
        lines = teardown.look(calls, self._wish.store_url, regions, region or self._first)
        if delete_store and region:
            lines.append(teardown.look_at_bucket(calls, self._wish.store_url, region))
        return lines

    def _regions(self, known: Footprint | None) -> Sequence[str]:
        asked = [
            *(known.regions if known else ()),
            *self._wish.regions,
            self._calls.account.region,
            self._region,
        ]
        return [each for each in dict.fromkeys(asked) if each] or [self._first]
