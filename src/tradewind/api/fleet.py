"""Which providers can be rented from, and the loop over them, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.ownfiles import home

if TYPE_CHECKING:
    from tradewind.controller.loop import Loop
    from tradewind.model.run import Facts
    from tradewind.providers.base import Provider
    from tradewind.providers.local.provider import LocalProvider
    from tradewind.store.base import Store

LOCAL_PASS_S = 1.0
"""Looking at processes of this computer costs next to nothing."""


def local(store: Store) -> LocalProvider:
    from tradewind.api.wishes import PerRun
    from tradewind.providers.local.provider import LocalProvider

    return LocalProvider(home(), store.url, interruptions=PerRun(), own_only=True)


def providers(store: Store) -> dict[str, Provider]:
    return {"local": local(store)}


def facts(provider: str) -> Facts:
    from tradewind.providers.local.provider import FACTS

    assert provider == "local"
    return FACTS


def loop(store: Store) -> Loop:
    from tradewind.controller.loop import Loop

    return Loop(store, providers(store), home(), pass_s=LOCAL_PASS_S)
