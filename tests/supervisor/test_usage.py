"""What a machine says of its use of the store is what the store's books have."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec import json

from tests.cloud.s3 import Asked, Books, booked
from tests.eventually import eventually
from tests.lifecycle.builders import AT, WAY
from tests.store import servers
from tests.supervisor.builders import RUNNING, working
from tradewind.base import steps
from tradewind.base.errors import NotFound
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.boot import Boot
from tradewind.model.event import Event, LegOver, LegRequested, Submitted
from tradewind.model.run import Heartbeat, Request, Spec
from tradewind.model.timing import EACH_S
from tradewind.model.usage import Usage
from tradewind.store.memory import MemoryStore
from tradewind.store.objects import ObjectStore
from tradewind.store.steps import performer
from tradewind.supervisor import keeper
from tradewind.supervisor.beat import tell

pytestmark = pytest.mark.slow

SPEED = 5.0
SUPERVISOR = [sys.executable, "-m", "tests.supervisor.fast_supervisor", str(SPEED)]
RUN, HEART = "run-1", places.heartbeat("run-1", "m1")
JOB = """
import os, sys
from tradewind import store
opened = store.open(os.environ["TRADEWIND_STORE"])
opened.upload_parts("mine", [b"x" * (3 << 20)] * 5, 15 << 20)
opened.get("mine")
opened.replace("child", b"123")
if sys.argv[1] == "dies":
    os.kill(os.getpid(), 9)
opened.list_after("")
"""


def test_a_report_counts_itself() -> None:
    for before in (Usage(), Usage(writes=9, bytes_in=9_999_700), Usage(bytes_in=10**12 - 400)):
        store = MemoryStore()
        told = tell(working(), RUNNING, 60.0, lambda used=before: used)  # type: ignore[misc]
        steps.run(told, performer(store))
        data = store.get(HEART)
        expected = before + Usage(writes=1, bytes_in=len(data))
        assert json.decode(data, type=Heartbeat).usage == expected


def test_where_nobody_charges_nothing_is_said() -> None:
    store = MemoryStore()
    steps.run(tell(working(), RUNNING, 60.0), performer(store))
    assert json.decode(store.get(HEART), type=Heartbeat).usage is None


@dataclass
class World:
    """A bucket, with a door before it that keeps books of a machine."""

    store: ObjectStore
    """Not through the door."""
    books: Books
    env: dict[str, str]
    home: Path

    @contextmanager
    def machine(self) -> Iterator[subprocess.Popen[bytes]]:
        """Killed at the end of the block."""
        process = subprocess.Popen([*SUPERVISOR, _boot(self.home)], env=self.env)
        try:
            yield process
        finally:
            process.kill()  # and with it goes its job
            process.wait()
        eventually(lambda: not keeper.find(f"l-1-{os.getpid()}/m1/command"))

    def finishes(self) -> None:
        eventually(lambda: (beat := _beat(self.store)) and beat.doing == "finished", within_s=90)

    def compared(self) -> tuple[Usage, Asked]:
        """What the machine has told, and what S3's books have."""
        last = _beat(self.store)
        assert last is not None
        assert last.usage is not None
        (row,) = self.books.asked.values()
        return last.usage, row

    def booked_all(self) -> bool:
        told, row = self.compared()
        return told.writes == row.writes

    def has_told_all(self) -> Usage:
        told, row = self.compared()
        for name in ("writes", "reads", "bytes_in", "bytes_out"):
            assert getattr(told, name) == getattr(row, name), name
        return told


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    books, home = Books(), tmp_path / "m1"
    home.mkdir()
    (tmp_path / "s3").mkdir()
    with (
        servers.s3(tmp_path / "s3") as env,
        booked(books, int(env["AWS_ENDPOINT_URL"].rpartition(":")[2])) as port,
    ):
        there = os.environ | dict(env) | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        yield World(ObjectStore("s3://runs/team", env=env), books, there, home)


def test_a_machine_that_ends_in_order_has_told_all(world: World) -> None:
    """The supervisor's own requests, those of the job and of a process of it that was killed, and
    of a supervisor that was."""
    job = f"{sys.executable} -c '{JOB}'"
    # The first machine is killed between two requests: nobody can know of one in the middle.
    dead, again = world.home / "dead", world.home / "again"
    between = f"touch {dead}; test -e {again} || sleep 600"
    _submit(world.store, f"{job} dies; {between}; {job} lives && sleep 3")
    with world.machine():
        eventually(lambda: dead.exists() and _beat(world.store), within_s=60)
    again.touch()
    with world.machine() as second:
        world.finishes()
        _record(world.store, 3, LegOver(leg=1, cause="finished", reason="all is done"))
        assert second.wait(60) == 0
    assert world.has_told_all().bytes_in > 3 * 15 << 20  # the job was begun twice


def test_a_machine_that_is_done_is_quiet(world: World) -> None:
    """So whoever ends it at once, whenever that is, loses nothing."""
    _submit(world.store, "echo done")
    with world.machine():
        world.finishes()
        eventually(world.booked_all)  # a door writes down what it has answered, after the answer
        asked = len(world.books.log)
        time.sleep(2 * EACH_S / SPEED)  # it would have asked for its orders by now
    assert world.books.log[asked:] == []
    world.has_told_all()


def test_a_machine_that_is_taken_loses_what_came_after_its_last_words(world: World) -> None:
    """And no more than that: what it asked for after the report before it."""
    busy = 'while True: opened.replace("beat", b"1")'
    _submit(world.store, f"exec {sys.executable} -c '{JOB}{busy}' lives")
    with world.machine():
        eventually(
            lambda: (beat := _beat(world.store)) and beat.beat > 4 and _read(world.store, "beat")
        )
    told, row = world.compared()
    log = world.books.log
    reports = [n for n, (_, _, path, _) in enumerate(log) if path.endswith(HEART)]
    since = [method for _, method, _, _ in log[reports[-2] :]]
    assert 0 < row.writes - told.writes <= sum(each == "PUT" for each in since)
    assert 0 <= row.reads - told.reads <= sum(each == "GET" for each in since)


def _submit(store: ObjectStore, command: str) -> None:
    job = {"command": command}
    _record(store, 1, Submitted(run_id=RUN, spec=Spec(name="t", work=1.0, ways=(WAY,), job=job)))
    request = Request(launch_id="l-1", run_id=RUN, leg=1, way=WAY, hard_stop_s=36_000)
    _record(store, 2, LegRequested(request=request, reason="r"))


def _record(store: ObjectStore, number: int, event: Event) -> None:
    assert journal.append(store, RUN, number, writer="w", at=AT, events=[event])


def _boot(home: Path) -> str:
    boot = Boot(
        store_url="s3://runs/team", run_id=RUN, leg=1, rank=0, nodes=1, machine_id="m1",
        launch_id=f"l-1-{os.getpid()}", hard_stop_s=36_000, after=2,
    )  # fmt: skip
    (home / "boot.json").write_bytes(json.encode(boot))
    return str(home / "boot.json")


def _read(store: ObjectStore, key: str) -> bytes | None:
    try:
        return store.get(key)
    except NotFound:
        return None


def _beat(store: ObjectStore) -> Heartbeat | None:
    data = _read(store, HEART)
    return json.decode(data, type=Heartbeat) if data else None
