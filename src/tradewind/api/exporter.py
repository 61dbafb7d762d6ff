"""What runs do, for Prometheus to scrape: the runs of a store that have not ended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tradewind.api.follow import Sight
from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.units import usd
from tradewind.journal import runs_store
from tradewind.store.base import Store
from tradewind.telemetry import exposition, measured
from tradewind.telemetry.exposition import Metric, Sample

UP = Metric("tradewind_up", "1 where the store of the runs could be read.")
LOOK_S = Metric("tradewind_look_seconds", "How long the last look at the runs took.")
TROUBLES = Metric("tradewind_unreadable_runs", "Runs that could not be read.")
METRICS = (UP, LOOK_S, TROUBLES, *measured.METRICS)


class Exporter:
    """Looks at most once in `every_s`, however many ask: a look is several requests to the store
    for each run."""

    def __init__(self, store: Store, *, every_s: float) -> None:
        self._store, self._every_s = store, every_s
        self._sights: dict[str, Sight] = {}
        self._lock = threading.Lock()
        self._text, self._due = "", 0.0

    def text(self) -> str:
        # While one looks, which may take long, the others are told what was seen last.
        if not self._lock.acquire(blocking=not self._text):
            return self._text
        try:
            now = clock.stopwatch()
            if not self._text or now >= self._due:
                self._text = exposition.text(self._samples())
                self._due = now + self._every_s
            return self._text
        finally:
            self._lock.release()

    def _samples(self) -> list[Sample]:
        of_store = {"store": self._store.url}
        began, troubles, found = clock.stopwatch(), 0, list[Sample]()
        try:
            ids = runs_store.live_ids(self._store)
        except TradewindError:
            return [Sample(UP, of_store, 0)]
        self._sights = {each: sight for each, sight in self._sights.items() if each in ids}
        for run_id in ids:
            sight = self._sights.setdefault(run_id, Sight(self._store, run_id))
            try:
                sight.look()
                with suppress(TradewindError):  # then what was recorded must do
                    sight.feel()
                found += of_run(sight)
            except Exception:  # whatever a run's files hold, the others are told
                troubles += 1
        return [
            Sample(UP, of_store, 1),
            Sample(LOOK_S, of_store, clock.stopwatch() - began),
            Sample(TROUBLES, of_store, troubles),
            *found,
        ]


def of_run(sight: Sight) -> Iterator[Sample]:
    state, spec = sight.state, sight.state.spec
    if spec is None:
        return
    run = {"run": sight.run_id, "name": spec.name, "project": spec.project}
    yield Sample(measured.STATE, {**run, "state": state.leg.state if state.leg else state.phase}, 1)
    yield Sample(measured.STEP, run, sight.step)
    yield Sample(measured.WORK, run, spec.work)
    yield Sample(measured.COST, run, usd(sight.cost))
    if spec.budget is not None:
        yield Sample(measured.BUDGET, run, usd(spec.budget))
    if spec.deadline_s is not None:
        yield Sample(measured.DEADLINE, run, spec.deadline_s)
    yield Sample(measured.MACHINES, run, len(state.claimed))
    yield Sample(measured.LEGS, run, len({r.machine.leg for r in state.machines.values()}))
    yield Sample(measured.LATE, run, state.announced_late)
    yield from measured.of_bottleneck(run, sight.figures)
    for name, beat in sight.beats.items():
        machine = {**run, "machine": name}
        yield Sample(measured.DOING, {**machine, "doing": beat.doing}, 1)
        yield Sample(measured.UPTIME, machine, beat.uptime_s)
        if beat.rate is not None:
            yield Sample(measured.RATE, machine, beat.rate)
        yield Sample(measured.NOTICE, machine, beat.notice)
        yield Sample(measured.FAILURES, machine, beat.failures)
        yield Sample(measured.IDLE, machine, beat.idle_s)
        yield from measured.of_ranks(machine, beat.figures)


def server(exporter: Exporter, host: str, port: int) -> ThreadingHTTPServer:
    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self._say(404, "text/plain", "GET /metrics\n")
                return
            self._say(200, exposition.TYPE, exporter.text())

        def _say(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        found = Server((host, port), Answers)
    except OSError as error:
        raise NoAccess(
            f"nothing can listen at {host}:{port}: {error.strerror or error}",
            hint="--port 0 takes any that is free",
        ) from None
    found.daemon_threads = True
    return found
