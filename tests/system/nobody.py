"""A cloud whose machines are nobody to the store: processes with an otherwise empty environment,
that begin as rented machines do, with a link to their first pass. Their minutes pass in seconds,
and so do passes: the door before the store refuses one when its time is over.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import json

from tests.store.door import Answer, Door
from tests.store.servers import ROLE
from tradewind.api.lending import Lending
from tradewind.api.luggage import Packer
from tradewind.base.errors import TradewindError
from tradewind.controller import drive
from tradewind.controller.controller import Controller
from tradewind.lifecycle.state import RunState
from tradewind.model import places
from tradewind.model.boot import Boot
from tradewind.model.run import Heartbeat, Listing, Machine, Request, Spec
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.links import Links
from tradewind.store.base import Store
from tradewind.store.lending import Pass

SPEED = 30.0
"""A beat is a sixth of a second, and fencing 4."""
ROOT = Path(__file__).parents[2]
_PROGRAM = f"""
import json, sys
from pathlib import Path
from tradewind.providers.boot import first
from tradewind.supervisor.__main__ import main

home = Path(sys.argv[1])
given = json.loads((home / "given.json").read_bytes())
first.again("the pass", lambda: first.take_pass(given["first_pass"], home / "pass.json"))
boot = given["boot"] | {{"pass_file": str(home / "pass.json")}}
(home / "boot.json").write_text(json.dumps(boot))
sys.exit(main([str(home / "boot.json")], speed={SPEED}))
"""


def watch() -> float:
    """By which controllers measure how long they have waited."""
    return time.monotonic() * SPEED


class EndingPasses(Door):
    """Refuses what is asked with a pass that has ended, as S3 does."""

    ends: dict[str, float]
    used: list[str]
    refused: list[str]

    def answer(self, body: bytes) -> Answer:
        token = self.headers.get("x-amz-security-token", "")
        if token and time.monotonic() > self.ends[token]:
            self.refused.append(self.path)
            words = b"<Error><Code>ExpiredToken</Code><Message>it has ended</Message></Error>"
            return 400, [("Content-Type", "application/xml")], words
        if token and token not in self.used:
            self.used.append(token)
        return self.passed(body)


class Counting(Lending):
    """Tells the door when what it lends is to end."""

    def __init__(self, store: Store, door: type[EndingPasses]) -> None:
        super().__init__(store)
        self._door = door

    def __call__(self, run_id: str, for_s: int) -> Pass:
        lent = super().__call__(run_id, for_s)
        self._door.ends[lent.credentials["token"]] = time.monotonic() + lent.for_s / SPEED
        return lent


class _Packer(Packer):
    def _sent(self, architecture: str) -> str:
        return "kits/0/kit.tar"  # what is here is used


@dataclass
class _Place:
    bucket_region: str = "us-east-1"


class _Cloud:
    schemes = ("s3",)
    """It signs links by itself: no other cloud is set up for the store."""

    def links(self, record: _Place, store_url: str) -> Links:
        return Links(Account(), record, store_url)  # type: ignore[arg-type]

    def environment(self, record: _Place, env: object) -> dict[str, str]:
        return {}


class Nobodies:
    """A Provider."""

    def __init__(self, folder: Path, store: Store, lending: Lending) -> None:
        self._folder, self._store = folder, store
        cloud: Any = _Cloud()
        self._pack = _Packer(store, cloud, _Place(), lending)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._machines: dict[str, Machine] = {}
        self.folders: dict[str, Path] = {}

    def list_machines(self) -> Listing:
        now = int(watch())
        for name, process in self.processes.items():
            found = self._machines[name]
            if process.poll() is not None and found.ended_s is None:
                self._machines[name] = Machine(**{**_fields(found), "ended_s": now})
        return Listing(at_s=now, machines=tuple(self._machines.values()))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        name = f"nobody-{request.launch_id}"
        if name in self._machines:
            return [self._machines[name]]
        luggage = self._pack(request, "x86_64")
        home = self.folders[name] = self._folder / name
        home.mkdir()
        boot = Boot(
            store_url=self._store.url,
            run_id=request.run_id,
            leg=request.leg,
            rank=0,
            nodes=1,
            machine_id=name,
            launch_id=request.launch_id,
            hard_stop_s=request.hard_stop_s,
            after=after,
            key=key,
        )
        given = {"first_pass": luggage.first_pass, "boot": json.decode(json.encode(boot))}
        (home / "given.json").write_bytes(json.encode(given))
        env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(home),
            "PYTHONPATH": f"{ROOT / 'src'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            **luggage.environment,
        }
        with (home / "said").open("wb") as said:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(home)],
                env=env,
                cwd=home,
                stdout=said,
                stderr=said,
            )
        self._machines[name] = Machine(
            machine_id=name,
            launch_id=request.launch_id,
            run_id=request.run_id,
            leg=request.leg,
            rank=0,
            launched_s=int(watch()),
        )
        return [self._machines[name]]

    def terminate(self, machine_ids: Sequence[str]) -> None:
        for name in machine_ids:
            self.processes[name].terminate()

    def end(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(60)


def _fields(machine: Machine) -> dict[str, Any]:
    return {name: getattr(machine, name) for name in machine.__struct_fields__}


class World:
    """A store, a controller that passes when the test says so, and that cloud."""

    def __init__(self, folder: Path, store: Store, door: type[EndingPasses]) -> None:
        self.store, self.door = store, door
        lending = Counting(store, door)
        self.cloud = Nobodies(folder, store, lending)
        self.controller = Controller("ctl-test", ("nobody",), clock=time.time, watch=watch)
        self._perform = drive.performer(store, {"nobody": self.cloud}, None, lending)
        self.state = RunState()

    def submit(self, run_id: str, spec: Spec) -> None:
        from tradewind.base import steps

        assert steps.run(self.controller.submit(run_id, spec), self._perform)
        self.run_id = run_id

    def attend(self, until: Callable[[], object], within_s: float = 180.0) -> None:
        """Passes, one after the other, until that is true."""
        limit = time.monotonic() + within_s
        while not until():
            troubles: list[tuple[str, TradewindError]] = drive.whole_pass(
                self.controller, self._perform
            )
            assert troubles == []
            memory = self.controller.memory.runs.get(self.run_id)
            self.state = memory.state if memory else self.state
            if self.state.outcome not in ("", "succeeded"):
                raise AssertionError(self.said())
            assert time.monotonic() < limit, self.said()
            time.sleep(0.1)

    def beat(self, leg: int = 1) -> Heartbeat | None:
        from tradewind.base.errors import NotFound

        try:
            data = self.store.get(places.heartbeat(self.run_id, self.machine(leg)))
        except NotFound:
            return None
        return json.decode(data, type=Heartbeat)

    def machine(self, leg: int = 1) -> str:
        return f"nobody-{self.run_id}-{leg}"

    def spool(self, leg: int = 1) -> str:
        folder = self.cloud.folders.get(self.machine(leg))
        path = folder / "spool.log" if folder else None
        return path.read_text() if path and path.exists() else ""

    def said(self) -> str:
        texts = [f"{self.state.phase} {self.state.over_cause} {self.door.refused[-3:]}"]
        for folder in self.cloud.folders.values():
            texts += [(folder / "said").read_text()[-3000:]]
            texts += (
                [(folder / "spool.log").read_text()[-1000:]]
                if (folder / "spool.log").exists()
                else []
            )
        return "\n".join(texts)


__all__ = ["ROLE", "SPEED", "EndingPasses", "World"]
