"""Machines that lie: all that one which was broken into can write into the store, and no more.

It may write where machines write, in every run of the store. It has the key of its own launch, and
no other. So of its own run it can say anything, and the run may end in any way; but not cost more
than it may, nor leave a machine behind, nor stop whoever looks after it. For another run it can
only make noise, which must change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import replace

from tradewind.base import signing
from tradewind.base.decoding import decoder
from tradewind.model import places
from tradewind.model.run import Heartbeat
from tradewind.model.usage import Usage
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, World

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

    from tradewind.sim.cloud import Rental, SimCloud

OWN, OTHER = "own", "other"
"""Whom a lying machine belongs to: the run that is looked at, or another one of the store."""
OFTEN = (0.3, 1.0, 0.3, 0.9)
"""Of its own reports, how many are lies, by what it likes to say best: who wants machines bought
without end never stops."""
_SIGNATURE = 65
_decode = decoder(Heartbeat)
_DOING = ("setup", "working", "saving", "stopped", "failed", "finished")
_POINTED: tuple[dict[str, Any], ...] = (
    {"doing": "finished", "exit_code": 0},
    {"doing": "stopped", "notice": True},
    {"doing": "failed", "trouble": "infrastructure"},
    {"notice": True},
)
"""What ends a leg, or has another one bought."""
_SIZES = (0.0, 1e-12, 1.0, 1e3, 1e15)
_COUNTS = (0, 1, 10**6, 2**63 - 1)


def lie(rng: Random, report: bytes, key: str, best: int) -> bytes:
    """What it says in place of this report."""
    true = _decode(report[:-_SIGNATURE])
    if true is None or rng.random() < 0.3:
        return noise(rng, report)
    false: dict[str, Any] = {
        "machine_id": "m1",
        "leg": rng.randrange(1, 4),
        "beat": rng.choice(_COUNTS),
        "uptime_s": rng.choice(_SIZES),
        "doing": rng.choice(_DOING),
        "step": rng.choice(_SIZES),
        "rate": rng.choice((None, *_SIZES[1:])),
        "saved": rng.choice((*_SIZES, true.saved + rng.random())),
        "failures": rng.choice(_COUNTS),
        "exit_code": rng.choice((None, 0, -9, 2**31)),
        "trouble": rng.choice(("", "user", "infrastructure", "?")),
        "notice": rng.random() < 0.7,
        "at_risk": rng.random() < 0.5,
        "reason": "\x1b]0;owned\x07",
        "stalled_s": rng.choice(_SIZES),
        "idle_s": rng.choice(_SIZES),
        "usage": Usage(
            writes=rng.choice(_COUNTS), reads=rng.choice(_COUNTS), byte_s=rng.choice(_COUNTS)
        ),
    }
    told = rng.sample(sorted(false), rng.randrange(1, 6))
    if rng.random() < 0.8:
        false = _POINTED[best] | {"saved": true.saved + rng.choice((0.0, 0.01))}
        told = list(false)
    beat = replace(true, **{name: false[name] for name in told})
    return signing.signed(json.encode(beat), key, signing.HEARTBEAT)


def noise(rng: Random, data: bytes) -> bytes:
    """What nobody who has the key has written."""
    garbage = bytes(rng.randrange(256) for _ in range(rng.randrange(60)))
    cut = rng.randrange(len(data) + 1)
    return rng.choice(
        (
            b"",
            garbage,
            data[:cut],
            data[:cut] + garbage + data[cut:],
            data[:-_SIGNATURE],
            data[:-_SIGNATURE].replace(b'"notice":false', b'"notice":true') + data[-_SIGNATURE:],
            b"[" * 5000,
            b'{"reason":"\xff"}',
            b'{"rate":1e-300,"usage":{"writes":-1}}',
        )
    )


class Stranger:
    """A machine of another run in the same store, that was broken into."""

    def __init__(
        self, world: World, store: SimStore, clouds: Iterable[SimCloud], quiet_s: int
    ) -> None:
        self._world, self._store, self._clouds = world, store, tuple(clouds)
        self._until = START_S + quiet_s
        self._key = signing.key_of(b"another", "run-2-1")
        self._heard: list[bytes] = []
        self.met: dict[str, int] = {}
        """Whose reports it has overwritten, and when last."""

    def wake(self) -> None:
        world, rng = self._world, self._world.rng
        if world.now >= self._until:
            return
        rentals = [rental for cloud in self._clouds for rental in cloud.rentals.values()]
        rental = rng.choice(rentals or [None])
        if rental is not None:
            world.fault("stranger writes")
            if rng.random() < 0.5:
                self._speaks_for(rental)
            else:
                self._points_elsewhere(rental)
        world.later(rng.randrange(5, 120), self.wake)

    def _speaks_for(self, rental: Rental) -> None:
        rng, machine = self._world.rng, rental.machine
        key = places.heartbeat(machine.run_id, machine.machine_id)
        found = self._store.objects.get(key, b"")
        if found:
            self._heard.append(found)
        said = rng.choice(
            (
                noise(rng, found),
                rng.choice(self._heard or [b""]),  # an older one, or another machine's
                lie(rng, found, self._key, rng.randrange(4)),
            )
        )
        self.met[machine.machine_id] = self._world.now
        self._plants(key, said)

    def _points_elsewhere(self, rental: Rental) -> None:
        rng, machine = self._world.rng, rental.machine
        place = rng.choice((places.resume, places.address))
        key = place(machine.run_id, machine.leg + rng.randrange(3))
        said = rng.choice(
            (
                b"\xff",
                places.checkpoint("run-2", 1, 7).encode(),
                places.checkpoint(machine.run_id, 1, 10**15).encode(),
                signing.signed(b"", self._key, signing.RESUME),
                b"10.6.6.6:29500",
            )
        )
        self._plants(key, said)

    def _plants(self, key: str, said: bytes) -> None:
        if self._world.telling:
            self._world.tell("stranger", f"writes {key}: {said[:40]!r}")
        self._store.plant(key, said)
