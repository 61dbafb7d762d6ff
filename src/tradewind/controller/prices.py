"""What ways cost now, as their providers tell: asked every ten minutes, whoever's runs they are of.

What a provider does not tell, or not in time, costs what it told last, or what was planned.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from math import inf

from tradewind.base import clock
from tradewind.model.run import Way
from tradewind.providers.asking import within
from tradewind.providers.base import AskPrices, Provider, Quotes

_NEWS_S = 600.0
_PATIENCE_S = 15.0


class Prices:
    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._quotes = {
            name: provider for name, provider in providers.items() if isinstance(provider, Quotes)
        }
        self._told: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        """By `Way.what`, when it was last asked for."""
        self._one = threading.Lock()

    def __call__(self, step: AskPrices) -> Mapping[str, int]:
        ours = [way for way in step.ways if way.provider in self._quotes]
        if not ours:
            return {}
        with self._one:  # ticks of other runs, which ask for much the same
            due: dict[str, list[Way]] = {}
            for way in ours:
                if clock.epoch() - self._asked.get(way.what, -inf) >= _NEWS_S:
                    due.setdefault(way.provider, []).append(way)
            for way in (way for some in due.values() for way in some):
                self._asked[way.what] = clock.epoch()
            jobs = {name: partial(self._asking, name, ways) for name, ways in due.items()}
            for found in within(_PATIENCE_S, jobs).values():
                self._told.update(found)
            return {way.what: self._told[way.what] for way in ours if way.what in self._told}

    def _asking(self, name: str, ways: list[Way]) -> Mapping[str, int]:
        try:
            return self._quotes[name].prices(ways)
        except Exception:  # a fault of ours, too: no run is to stand still for it
            return {}
