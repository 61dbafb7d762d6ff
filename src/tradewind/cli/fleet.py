"""Which providers can be rented from, and the loop over them: put together for the commands.

How a run's machines on this computer are interrupted stands beside them, in
`$TRADEWIND_HOME/local/interruptions/<run-id>.json`, because whoever looks after the run may be
another process than the one that submitted it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json

from tradewind.ownfiles import home, replace

if TYPE_CHECKING:
    from pathlib import Path

    from tradewind.controller.loop import Loop
    from tradewind.model.run import Facts
    from tradewind.providers.base import Provider
    from tradewind.providers.local.provider import LocalProvider
    from tradewind.store.base import Store

LOCAL_PASS_S = 1.0
"""Looking at processes of this computer costs next to nothing."""


class ChaosWish(Struct, frozen=True, kw_only=True):
    """What `--chaos` asks for."""

    mean_life_s: float
    notice_s: float = 10.0
    seed: int = 0


class PerRun:
    """Interruptions as each run has asked for them; none, for the others."""

    def __init__(self) -> None:
        self.notice_s = 0.0

    def lives(self, zone: str, machine_ids: Sequence[str], now: float) -> tuple[float | None, ...]:
        from tradewind.providers.local.interruptions import Chaos

        wish = _wish(machine_ids[0])
        if wish is None:
            return tuple(None for _ in machine_ids)
        chaos = Chaos(mean_life_s=wish.mean_life_s, notice_s=wish.notice_s, seed=wish.seed)
        self.notice_s = wish.notice_s
        return chaos.lives(zone, machine_ids, now)


def _wish(machine_id: str) -> ChaosWish | None:
    run_id = machine_id.removeprefix("local-").rsplit("-", 2)[0]  # local-<run>-<leg>-<rank>
    try:
        return json.decode(_place(run_id).read_bytes(), type=ChaosWish)
    except (OSError, DecodeError):
        return None


def _place(run_id: str) -> Path:
    return home() / "local" / "interruptions" / f"{run_id}.json"


def wish_for(run_id: str, wish: ChaosWish) -> None:
    replace(_place(run_id), json.encode(wish))


def local(store: Store) -> LocalProvider:
    from tradewind.providers.local.provider import LocalProvider

    return LocalProvider(home(), store.url, interruptions=PerRun())


def providers(store: Store) -> dict[str, Provider]:
    return {"local": local(store)}


def facts(provider: str) -> Facts:
    from tradewind.providers.local.provider import FACTS

    assert provider == "local"
    return FACTS


def loop(store: Store) -> Loop:
    from tradewind.controller.loop import Loop

    return Loop(store, providers(store), home(), pass_s=LOCAL_PASS_S)
