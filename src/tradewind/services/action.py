"""What a service's `decide` wants done, each with its reason."""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.frontorder import Backend as Backend
from tradewind.model.run import Spec
from tradewind.model.service import FrontSpec, ServiceEvent


class Record(Struct, frozen=True):
    """Into the service's journal, before anything is done about it."""

    event: ServiceEvent


class Submit(Struct, frozen=True):
    """The run of a replica, whose id only one commit can have given it."""

    run_id: str
    spec: Spec


class Cancel(Struct, frozen=True):
    run_id: str
    reason: str


class TendFront(Struct, frozen=True):
    service_id: str
    front: FrontSpec
    health: str
    backends: tuple[Backend, ...]
    in_time_s: float
    """Who waits longer for a replica with room is late."""


class EndFront(Struct, frozen=True):
    """The port is free at once; running answers finish."""

    service_id: str
    finish_s: float


class LookFront(Struct, frozen=True):
    """Answered with what it says, or with None: there is none."""

    service_id: str
    front: FrontSpec


class Forget(Struct, frozen=True):
    """Nothing is left to do for this service."""

    reason: str


Action = Record | Submit | Cancel | TendFront | EndFront | Forget
