"""A front as a service has it, and as HAProxy is told."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.front.routes import Affinity, Backend, By, Front, Key, State
from tradewind.model import frontorder
from tradewind.model.service import FrontSpec


def front_of(spec: FrontSpec, health: str, in_time_s: float, fronts: int = 1) -> Front:
    affinity = None
    if spec.affinity:
        by, _, name = spec.affinity.partition(":")
        affinity = Affinity(By(by), name)
    return Front(
        port=spec.port,
        address=spec.address,
        certificate=spec.certificate or None,
        keys=tuple(Key(each.name, each.sha256, each.requests_per_s) for each in spec.keys),
        health_path=health,
        queue=spec.queue,
        in_time_s=in_time_s,
        queue_wait_s=spec.queue_wait_s,
        hold_s=spec.hold_s,
        body_bytes=spec.body_bytes,
        silence_s=spec.silence_s,
        affinity=affinity,
        fronts=fronts,
    )


def backends_of(told: Iterable[frontorder.Backend]) -> list[Backend]:
    return [
        Backend(
            each.name,
            each.host,
            each.port,
            state=State.DRAINING if each.draining else State.READY,
            at_once=each.at_once,
        )
        for each in told
    ]
