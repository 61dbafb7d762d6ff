"""What a test may ask of the equipment besides the cloud's own API; control.py is its other end.
Every public method here is a request: its arguments and answers are JSON."""

from __future__ import annotations

import math
from typing import Any

from tests.cloud.bill import bill
from tests.cloud.dials import Fault
from tests.cloud.s3 import Books, serve
from tests.cloud.world import Machine, World


class Controls:
    def __init__(self, world: World) -> None:
        self._world = world

    def do(self, name: str, asked: dict[str, Any]) -> Any:
        method = None if name.startswith("_") or name == "do" else getattr(self, name, None)
        if method is None:
            raise ValueError(f"there is no control {name!r}")
        with self._world.lock:
            self._world.settle()
            return method(**asked)

    # -- how things are ----------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        world = self._world
        return {"now": world.now(), "host": world.bodies.host, "bodies": world.bodies.sort}

    def bill(self) -> dict[str, Any]:
        return bill(self._world)

    def everything(self) -> list[dict[str, Any]]:
        machines = [
            {"id": each.id, "sort": "machine", "region": each.region}
            | {"made": each.launched, "gone": each.ended}
            for each in self._world.machines.values()
        ]
        things = [
            {"id": each.id, "sort": each.sort, "region": each.region}
            | {"made": each.made, "gone": each.gone}
            for each in self._world.things.values()
        ]
        return machines + things

    def state(self, machine_id: str) -> str:
        return self._machine(machine_id).state

    def calls(self) -> list[dict[str, Any]]:
        return self._world.calls

    def alive(self, machine_id: str) -> list[Any]:
        return self._world.bodies.alive(self._machine(machine_id).id)

    def console(self, machine_id: str) -> str:
        return self._world.bodies.console(self._machine(machine_id).id).decode(errors="replace")

    # -- dials -------------------------------------------------------------------------------------

    def dials(self, **settings: Any) -> None:
        self._world.dials.turn(**settings)

    def capacity(self, most: int | None, zone: str, kind: str, market: str) -> None:
        key = zone, kind, market
        if most is None:
            self._world.dials.capacity.pop(key, None)
        else:
            self._world.dials.capacity.pop(key, None)  # the newest of equals decides
            self._world.dials.capacity[key] = most

    def quota(self, code: str, value: float, region: str) -> None:
        self._world.quotas.put(code, value, region)

    def fail(
        self, action: str, code: str, count: int, message: str, status: int | None, after: bool
    ) -> None:
        status = self._world.face.statuses.get(code, 400) if status is None else status
        self._world.dials.faults.append(Fault(action, code, message, status, count, after))

    def lose(self, action: str, count: int) -> None:
        self._world.dials.lost[action] = count

    def on_demand_price(self, kind: str, usd_hour: float, region: str) -> None:
        self._world.market.put_on_demand(kind, usd_hour, region)

    def spot_price(self, kind: str, zone: str, usd_hour: float, at: float | None) -> None:
        since = self._world.now() if at is None else at
        self._world.market.put_spot(kind, zone, usd_hour, since)

    def sustained(self, begins: str, steps: list[tuple[str, str]]) -> None:
        self._world.market.sustained[begins] = steps

    def expose(self, port: int) -> str:
        return self._world.bodies.expose(port)

    def s3(self, port: int) -> str:
        """A door before the S3 server at 127.0.0.1:port, which keeps its books; its URL."""
        world = self._world
        own = (world.bodies.host, "127.0.0.1")

        def who(address: str) -> str:
            return world.at_address(address) or ("" if address in own else address)

        world.s3 = Books(who=who, now=world.now)
        door = serve(world.s3, port, world.bodies.host)
        return f"http://{world.bodies.host}:{door.server_address[1]}"

    # -- what happens ------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        self._world.clock.advance(seconds)
        self._world.settle()

    def hold(self) -> None:
        self._world.clock.hold()

    def trace(self, zone: str, trace: list[tuple[float, int]], speed: float) -> None:
        if not (speed > 0 and math.isfinite(speed)):
            raise ValueError("a trace goes forward")
        self._world.follow(zone, trace, speed)

    def interrupt(self, machine_id: str, notice_s: float | None) -> None:
        world = self._world
        machine = self._machine(machine_id)
        if machine.market != "spot":
            raise ValueError(f"{machine_id} is no spot machine")
        usual_s = world.face.notice_s / world.dials.speed
        world.notice(machine, usual_s if notice_s is None else notice_s)
        world.settle()

    def warn(self, machine_id: str) -> None:
        machine = self._machine(machine_id)
        machine.warned_at = self._world.now()

    def ask_to_end(self, machine_id: str) -> None:
        self._world.bodies.ask_to_end(self._machine(machine_id))

    def crash(self, machine_id: str) -> None:
        """Its body dies, and the cloud does not notice: a kernel panic, a dead disk."""
        self._world.bodies.kill(self._machine(machine_id))

    def end_all(self) -> None:
        for each in self._world.alive():
            self._world.end(each, "user")

    def _machine(self, machine_id: str) -> Machine:
        if machine_id not in self._world.machines:
            raise ValueError(f"there never was a machine {machine_id}")
        return self._world.machines[machine_id]
