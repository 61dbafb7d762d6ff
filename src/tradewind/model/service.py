"""A service: what was asked for, and what happens to it.

A service is a folder in the store, like a run: `services/<service-id>/journal/…`. Its replicas are
runs of their own, one machine (or gang) each and one leg each, so machines are bought, watched,
ended and paid for by the same code, and each has a journal, logs and a ledger of its own. The
service's journal says which of them there are to be, and why.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.model.run import Way


class Key(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An API key, by its hash: the key itself is in no journal."""

    name: str
    sha256: str
    requests_per_s: float | None = None


class FrontSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where requests come in, and what is asked of them."""

    port: int
    address: str = "127.0.0.1"
    certificate: str = ""
    """A PEM file of chain and private key on the front's machine; "": plain HTTP."""
    keys: tuple[Key, ...] = ()
    """None: everyone may ask."""
    queue: int = 1000
    queue_wait_s: float = 60.0
    hold_s: float = 600.0
    body_bytes: int = 8 << 20
    silence_s: float = 600.0
    ranges: tuple[str, ...] = ()
    """On rented machines: from where it is reached; none: from the network that it is in."""
    affinity: str = ""
    """`prefix`, `header:NAME` or `cookie:NAME`; "": the replica with the fewest requests."""


class EngineSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a replica runs."""

    job: dict[str, Any]
    """As a run's: command, setup, env, secrets, bundle."""
    port: int = 0
    """0: one that is free on its machine, in $PORT."""
    health: str = "/health"
    metrics: str = "/metrics"
    up_within_s: int = 600
    """How long its health check may take to pass."""
    drain_s: int = 120
    """How long running answers may take to finish."""
    at_once: int = 8
    """Requests that a replica answers at once inside the target."""
    warm_up: str = ""
    """The body of a request to `warm_path`, sent once before it is ready; "": none."""
    warm_path: str = "/v1/completions"


def place_of(way: Way) -> str:
    """Whose spot machines are taken together."""
    return "/".join((way.provider, way.region, way.zone))


class ServiceSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    model: str
    front: FrontSpec
    engine: EngineSpec
    ways: tuple[Way, ...]
    """On what a replica may run, the plan's own first: each market of each place."""
    start: int = 1
    """How many replicas the plan begins with."""
    fewest: int = 1
    most: int = 16
    on_demand: int = 0
    """So many of them are not spot, whatever that costs."""
    spare: int = 0
    """More than are needed, while any is spot: the target holds when one is interrupted."""
    idle_s: int = 300
    """Without any request for so long, a service whose `fewest` is 0 has no replica."""
    goal: float = 0.95
    """The share of requests that must be inside the target."""
    slack_s: float = 0.5
    """What the target leaves for waiting."""
    project: str = ""
    user: str = ""
    tags: dict[str, str] = {}
    predicted_month: int | None = None
    """Micro-dollars, as the plan had it."""
    fronts: int = 0
    """So many rented machines are its front. 0: it is on the computer of whoever submitted it, and
    so are its replicas."""
    front_ways: tuple[Way, ...] = ()
    """On what they may be."""
    front_job: dict[str, Any] = {}

    @property
    def rented(self) -> bool:
        """Whoever looks after the store may keep it, wherever that is."""
        return self.fronts > 0

    def __post_init__(self) -> None:
        if not self.ways:
            raise InvalidValue(f"there is nothing on which {self.name} could be served")
        if self.fronts and not self.front_ways:
            raise InvalidValue(f"there is nothing on which the front of {self.name} could be")
        if not 0 <= self.fewest <= self.most or self.most < 1:
            raise InvalidValue(
                f"{self.name} cannot have from {self.fewest} to {self.most} replicas"
            )


class _Event(
    Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True, gc=False
):
    pass


class ServiceSubmitted(_Event, frozen=True, kw_only=True, tag="service_submitted"):
    service_id: str
    spec: ServiceSpec


class ReplicaOrdered(_Event, frozen=True, kw_only=True, tag="replica_ordered"):
    """Its run will be submitted, or has been, if whoever wrote this was cut off."""

    number: int
    run_id: str
    market: str
    tries: int
    """How often its engine may fail by itself."""
    reason: str
    place: str = ""
    """Where, of several places of its market (`place_of`); "": wherever its run finds one."""


class ReplicaReady(_Event, frozen=True, kw_only=True, tag="replica_ready"):
    """Its health check has passed, and it is warm."""

    run_id: str
    machine_s: float
    """From the order until its supervisor had started the engine, as its observer saw it."""
    answered_s: float
    warm_s: float
    reason: str


class ReplicaLeaves(_Event, frozen=True, kw_only=True, tag="replica_leaves"):
    """It gets no new requests, and is given back when those that it has are answered."""

    run_id: str
    lost: bool
    """Its machine goes anyway: it is not waited for."""
    reason: str


class ReplicaGone(_Event, frozen=True, kw_only=True, tag="replica_gone"):
    """Its run is closed: every machine has ended and is accounted for."""

    run_id: str
    outcome: str
    failed: bool
    """Its engine is to blame."""
    reason: str
    tail: str = ""


class ReplicasWanted(_Event, frozen=True, kw_only=True, tag="replicas_wanted"):
    count: int
    load: float
    """In replicas, when it was decided."""
    reason: str


class RuleChosen(_Event, frozen=True, kw_only=True, tag="rule_chosen"):
    """By which rule the number of replicas follows the load (services/scaling.py)."""

    window_s: int
    growth: float
    hold_s: int
    fill: float
    reason: str


class SpotGone(_Event, frozen=True, kw_only=True, tag="spot_gone"):
    """Spot machines could not be bought: for a while others are bought elsewhere, or on demand."""

    reason: str
    place: str = ""
    """"": anywhere."""


class Scaled(_Event, frozen=True, kw_only=True, tag="scaled"):
    """Its user's word on how many there may be."""

    fewest: int
    most: int
    reason: str


class FrontOrdered(_Event, frozen=True, kw_only=True, tag="front_ordered"):
    """A rented front is a run, as a replica is."""

    number: int
    run_id: str
    reason: str


class FrontReady(_Event, frozen=True, kw_only=True, tag="front_ready"):
    """It has been told of the service, and listens."""

    run_id: str
    host: str
    public: str
    """Its address in the world; "": it has none."""
    reason: str


class FrontLeaves(_Event, frozen=True, kw_only=True, tag="front_leaves"):
    run_id: str
    reason: str


class FrontGone(_Event, frozen=True, kw_only=True, tag="front_gone"):
    run_id: str
    outcome: str
    failed: bool
    """By itself: its machine is not to blame."""
    reason: str
    tail: str = ""


class ServiceStopAsked(_Event, frozen=True, kw_only=True, tag="service_stop_asked"):
    reason: str


class ServiceEnded(_Event, frozen=True, kw_only=True, tag="service_ended"):
    outcome: str
    """stopped, failed"""
    reason: str
    tail: str = ""


class ServiceClosed(_Event, frozen=True, kw_only=True, tag="service_closed"):
    """Every replica is accounted for, and its front is gone."""

    reason: str


ServiceEvent = (
    ServiceSubmitted | ReplicaOrdered | ReplicaReady | ReplicaLeaves | ReplicaGone | ReplicasWanted
    | RuleChosen | SpotGone | Scaled | FrontOrdered | FrontReady | FrontLeaves | FrontGone
    | ServiceStopAsked | ServiceEnded | ServiceClosed
)  # fmt: skip

FORMAT = 1


class ServiceCommit(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What came N-th, as of a run's journal."""

    format: int
    number: int
    writer: str
    at: datetime
    events: tuple[ServiceEvent, ...]
