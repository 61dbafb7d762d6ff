"""What most clouds answer alike. A cloud's class begins with it, and says what is otherwise there:
providers/cloud.py has all that it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.model import buckets
from tradewind.model.beside import NOTHING, Beside
from tradewind.model.finding import BROKEN, Finding
from tradewind.providers import elsewhere

if TYPE_CHECKING:
    from tradewind.base.errors import TradewindError
    from tradewind.model.ratecard import RateCard
    from tradewind.model.run import Spec
    from tradewind.model.usage import Rates
    from tradewind.providers.cloud import Library, Links


class Usual:
    name: str
    title: str
    lent: tuple[str, ...] = tuple(buckets.STORES)
    library: Library | None = None
    older_s = 0
    """It has no buckets."""

    @property
    def prints(self) -> Mapping[str, str]:
        return {}

    def printed(
        self, kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]
    ) -> str:
        raise InvalidValue(f"setup of {self.title} cannot be printed as {kind}")

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        return []

    def check(self, footprint: Any, store_url: str) -> None:
        """Nothing that could be known without asking."""

    def links(self, footprint: Any, store_url: str) -> Links:
        from tradewind.store.links import Links

        return Links(store_url)

    def beside(self, footprint: Any | None, region: str, instance_type: str, market: str) -> Beside:
        """Disk and address are in the machine's price."""
        return NOTHING

    def environment(self, footprint: Any, env: Mapping[str, str]) -> dict[str, str]:
        """Nothing: who lends the pass says where the store is."""
        return {}

    def warnings(
        self, footprint: Any, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        return []

    def outside(self, footprint: Any, card: RateCard) -> Rates:
        return elsewhere.outside(card, footprint)

    def check_shell(self, command: Sequence[str]) -> None:
        pass

    def no_credentials(self, error: TradewindError) -> Finding:
        """Of `checks`: nothing else can be looked at."""
        return Finding(
            about=self.name,
            level=BROKEN,
            what=error.message,
            why="no machine can be rented there",
            todo=error.hint or "",
        )
