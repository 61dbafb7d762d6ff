"""What a test may ask of the equipment besides AWS's own API; control.py is the other end of it.
Every public method here is a request: its arguments and answers are JSON."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from tests.ec2.bill import bill
from tests.ec2.dials import STATUS, Fault
from tests.ec2.images import Images
from tests.ec2.s3 import Books, serve
from tests.ec2.world import NOTICE_S, Machine, World


class Controls:
    def __init__(self, world: World, images: Images) -> None:
        self._world = world
        self._images = images

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

    def calls(self) -> list[dict[str, Any]]:
        return self._world.calls

    def alive(self, instance_id: str) -> list[Any]:
        return self._world.bodies.alive(self._machine(instance_id).id)

    def console(self, instance_id: str) -> str:
        return self._world.bodies.console(self._machine(instance_id).id).decode(errors="replace")

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

    def fail(self, action: str, code: str, count: int, message: str, status: int | None) -> None:
        status = STATUS.get(code, 400) if status is None else status
        self._world.dials.faults.append(Fault(action, code, message, status, count))

    def lose(self, action: str, count: int) -> None:
        self._world.dials.lost[action] = count

    def on_demand_price(self, kind: str, usd_hour: float, region: str) -> None:
        self._world.market.put_on_demand(kind, usd_hour, region)

    def spot_price(self, kind: str, zone: str, usd_hour: float, at: float | None) -> None:
        since = self._world.now() if at is None else at
        self._world.market.put_spot(kind, zone, usd_hour, since)

    def score(self, zone: str, score: int) -> None:
        self._world.market.scores[zone] = score

    def reservation(self, told: dict[str, Any]) -> None:
        if "EndDate" in told:
            told |= {"EndDate": datetime.fromisoformat(told["EndDate"])}
        self._world.reservations.append(told)

    def parameter(self, name: str, image: str) -> None:
        self._images.put(name, image)

    def credentials(self, access_key: str, secret_key: str, token: str) -> None:
        given = {"access_key": access_key, "secret_key": secret_key, "token": token}
        self._world.dials.credentials = given

    def expose(self, port: int) -> str:
        return self._world.bodies.expose(port)

    def s3(self, port: int) -> str:
        """A door before the S3 server at 127.0.0.1:port, which keeps AWS's books; its URL."""
        world = self._world
        world.s3 = Books(who=world.at_address, now=world.now)
        door = serve(world.s3, port, world.bodies.host)
        return f"http://{world.bodies.host}:{door.server_address[1]}"

    # -- what happens ------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        self._world.clock.advance(seconds)
        self._world.settle()

    def trace(self, zone: str, trace: list[tuple[float, int]], speed: float) -> None:
        if not (speed > 0 and math.isfinite(speed)):
            raise ValueError("a trace goes forward")
        self._world.follow(zone, trace, speed)

    def interrupt(self, instance_id: str, notice_s: float | None) -> None:
        world = self._world
        machine = self._machine(instance_id)
        if machine.market != "spot":
            raise ValueError(f"{instance_id} is no spot machine")
        world.notice(machine, NOTICE_S / world.dials.speed if notice_s is None else notice_s)
        world.settle()

    def rebalance(self, instance_id: str) -> None:
        machine = self._machine(instance_id)
        machine.rebalance_at = self._world.now()

    def crash(self, instance_id: str) -> None:
        """Its body dies, and AWS does not notice: a kernel panic, a dead disk."""
        self._world.bodies.kill(self._machine(instance_id))

    def _machine(self, instance_id: str) -> Machine:
        if instance_id not in self._world.machines:
            raise ValueError(f"there never was a machine {instance_id}")
        return self._world.machines[instance_id]
