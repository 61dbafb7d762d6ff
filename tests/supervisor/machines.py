"""A real supervisor with real processes and a folder store, whose minutes pass in seconds.

Nothing here waits for a time to pass: `until` waits for something to become true, and gives up
after a time that no machine needs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import AT, WAY
from tradewind.base import signing
from tradewind.base.errors import NotFound, SourceFailed
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.boot import Boot
from tradewind.model.event import Event, LegRequested, Submitted
from tradewind.model.run import Heartbeat, Request, Spec, Way
from tradewind.store.base import MOST_READ, Store
from tradewind.store.local import LocalStore
from tradewind.supervisor import keeper, notice
from tradewind.supervisor.folder import MachineFolder
from tradewind.supervisor.logs import read_logs
from tradewind.supervisor.runtime import Supervisor
from tradewind.supervisor.watch import Watch

T = TypeVar("T")
RUN = "run-1"
_DEADLINE_S = 180.0
SPEED = 20.0
"""A beat is 1.5 s, and fencing 6."""


def until(true: Callable[[], T | None], what: str = "") -> T:
    give_up = time.monotonic() + _DEADLINE_S
    while time.monotonic() < give_up:
        value = true()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"it did not come: {what or true}")


class TroubledStore(LocalStore):
    """A folder store that fails, or hangs, while it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fails = False
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.hanging = 0

    def _trouble(self) -> None:
        if not self.goes_on.is_set():
            self.hanging += 1
            self.goes_on.wait()
        if self.fails:
            raise SourceFailed("the store did not answer")

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        self._trouble()
        return super().get(key, most=most)

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        self._trouble()
        return super().list_after(prefix, after)

    def create(self, key: str, data: bytes) -> bool:
        self._trouble()
        return super().create(key, data)

    def replace(self, key: str, data: bytes) -> None:
        self._trouble()
        super().replace(key, data)


class Run:
    """A run in a folder store, with one leg."""

    def __init__(
        self, folder: Path, *, nodes: int = 1, tries: int = 3, way: Way = WAY, **job: Any
    ) -> None:
        self.folder = folder
        self.store = TroubledStore(folder / "store")
        self.calm = LocalStore(folder / "store")
        """The same, as others see it who have no trouble."""
        self.nodes = nodes
        self._number = 0
        way = replace(way, nodes=nodes)
        spec = Spec(name="test", work=100.0, ways=(way,), tries=tries, job=job)
        self.record(Submitted(run_id=RUN, spec=spec))
        request = Request(launch_id="l-1", run_id=RUN, leg=1, way=way, hard_stop_s=36_000)
        self.record(LegRequested(request=request, reason="it is the cheapest"))

    def record(self, *events: Event) -> None:
        self._number += 1
        done = journal.append(self.calm, RUN, self._number, writer="w", at=AT, events=list(events))
        assert done

    def machine(self, rank: int = 0, **more: Any) -> MachineUnderTest:
        return MachineUnderTest(self, rank, **more)


class MachineUnderTest:
    def __init__(
        self,
        run: Run,
        rank: int = 0,
        *,
        speed: float = SPEED,
        hard_stop_s: int = 36_000,
        leg: int = 1,
        **more: Any,
    ) -> None:
        self.run, self.rank, self.speed = run, rank, speed
        self.name = f"m{rank}"
        self.folder = run.folder / self.name
        self.folder.mkdir(exist_ok=True)
        self.notice = self.folder / "notice"
        self.boot = Boot(
            store_url=run.calm.url,
            run_id=RUN,
            leg=leg,
            rank=rank,
            nodes=run.nodes,
            machine_id=self.name,
            # Marks processes, and other tests may be run at the same time.
            launch_id=f"l-1-{os.getpid()}-{abs(hash(str(run.folder)))}",
            hard_stop_s=hard_stop_s,
            after=2,
            **({"notice": str(self.notice)} | more),
        )
        (self.folder / "boot.json").write_bytes(json.encode(self.boot))
        self.supervisor: Supervisor
        self._thread: threading.Thread | None = None
        self.why: list[str] = []

    def start(self, store: Store | None = None) -> MachineUnderTest:
        folder = MachineFolder(self.folder)
        folder.lock()
        watch = Watch(folder.up_since_s(self.boot), self.speed)
        source = notice.source(self.boot.notice)
        self.supervisor = Supervisor(self.boot, store or self.run.store, folder, watch, source)

        def work() -> None:
            try:
                self.why.append(self.supervisor.run())
            finally:
                folder.unlock()

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        return self

    @property
    def off(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    def beat(self) -> Heartbeat | None:
        try:
            data = self.run.calm.get(places.heartbeat(RUN, self.name))
        except NotFound:
            return None
        return json.decode(signing.bare(data), type=Heartbeat)

    def does(self, *doing: str) -> Heartbeat:
        """Waits until it reports one of these."""

        def told() -> Heartbeat | None:
            beat = self.beat()
            return beat if beat is not None and beat.doing in doing else None

        return until(told, f"{doing}; {self.beat()}")

    def log(self) -> str:
        return read_logs(self.run.calm, RUN, self.boot.leg, self.rank).decode()

    def spool(self) -> str:
        return (self.folder / "spool.log").read_text(errors="replace")

    def said(self, words: str) -> str:
        """Waits until the job has said so."""
        until(lambda: words in self.spool(), words)
        return self.spool()

    def end(self) -> None:
        if self._thread is not None:
            self.run.store.goes_on.set()
            self.supervisor.end("the test is over")
            until(lambda: self.off, "the supervisor ends")
        assert not self.left()

    def left(self) -> Sequence[int]:
        """What lives of the job."""
        mark = f"{self.boot.launch_id}/{self.name}"
        return keeper.find(f"{mark}/command") + keeper.find(f"{mark}/setup")


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")
