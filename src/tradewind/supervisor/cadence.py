"""How often the job should save, told in a file: a fresh machine is lost sooner than an old one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec import json

from tradewind.base.errors import NoAccess
from tradewind.base.ownfiles import replace
from tradewind.model.run import Spec, Way
from tradewind.model.usage import Usage, cost
from tradewind.policy import cadence

_LOOK_S = 60.0
_NEWS = 0.05
_FAR_RATE = 0.25e9
"""Bytes a second of a machine to a store."""
_LAST_S = 20.0
"""Of a notice that are not counted on: it is looked for every few seconds, and best effort."""


class Cadence:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._told_s = self._looked_s = -_LOOK_S
        self._once, self._keep = 0, 0

    def tell(self, spec: Spec, way: Way | None, uptime_s: float) -> float:
        """Seconds between two saves; written where it has changed by enough."""
        if uptime_s - self._looked_s < _LOOK_S:
            return self._told_s
        self._looked_s = uptime_s
        every_s = of(spec, way, uptime_s)
        if abs(every_s - self._told_s) > _NEWS * every_s:
            self._keep = spec.checkpoint_keep
            self._write(every_s)
        return self._told_s

    def save_once(self) -> None:
        """At once, whatever the cadence: a job that is told so twice saves twice."""
        self._once += 1
        self._write(self._told_s)

    def _write(self, every_s: float) -> None:
        told = {"every_s": round(every_s), "keep": self._keep}
        if self._once:
            told["once"] = self._once
        with suppress(NoAccess):  # a full disk: the last word holds
            replace(self._path, json.encode(told))
            self._told_s = every_s


def of(spec: Spec, way: Way | None, uptime_s: float) -> float:
    if spec.checkpoint_stall_s is None:
        return float(spec.checkpoint_every_s)
    save_s = spec.checkpoint_stall_s + (_paid_s(spec, way) if way else 0.0)
    machines, spot = (way.nodes, way.market == "spot") if way else (1, True)
    noticed = cadence.NOTICED if way and _saves_in_time(spec, way) else 0.0
    return cadence.every_s(save_s, uptime_s, machines=machines, spot=spot, noticed=noticed)


def _paid_s(spec: Spec, way: Way) -> float:
    """What a save costs to carry to the store, in seconds of its machines: it is as well spent on
    doing work again."""
    if way.rates is None or not way.price_all:
        return 0.0
    return 3600 * cost(Usage(bytes_in=spec.checkpoint_bytes), way.rates) / way.price_all


def _saves_in_time(spec: Spec, way: Way) -> bool:
    """Whether a last save fits between a notice and the loss, also to a store far away."""
    save_s = (spec.checkpoint_stall_s or 0.0) + spec.checkpoint_bytes / way.nodes / _FAR_RATE
    return spec.checkpoint_bytes > 0 and _LAST_S + save_s <= way.facts.notice_s
