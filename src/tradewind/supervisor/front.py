"""A rented front: `python -m tradewind.supervisor.front`, the job of its machine.

It keeps HAProxy as its orders say (model/frontorder.py), which a controller puts into the store,
and writes what HAProxy says into a file that the supervisor reports. Only an order that is signed
with the key of this machine's launch is carried out, and none that is older than the last one;
where the store cannot be reached, it goes on with what it has. It buys nothing and reads no more of
the store than any machine may.

When it is asked to save (a notice, or an order), its port is closed and running answers finish.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import json
from msgspec.structs import replace as replaced

from tradewind import store as stores
from tradewind.base import clock, signing
from tradewind.base.decoding import UNREADABLE, decoder
from tradewind.base.errors import NoAccess, NotFound, SourceFailed, TradewindError
from tradewind.base.ownfiles import make_folder, replace
from tradewind.front.runner import Runner
from tradewind.front.told import backends_of, front_of
from tradewind.model import bounds, places
from tradewind.model.frontorder import FrontOrder
from tradewind.model.serving import FrontTold, Serving
from tradewind.store.base import Store
from tradewind.supervisor.engine import TELLS
from tradewind.supervisor.folder import read_boot

COMMAND = "exec python -P -m tradewind.supervisor.front"
SETUP = (
    "PATH=$PATH:/usr/sbin:/usr/local/sbin; command -v haproxy > /dev/null ||"
    " (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y haproxy)"
)
_LOOK_S = 0.5
_ASK_S = 2.0
_MARGIN_S = 5.0
"""Of the time that it is given, for ending what has not finished."""
_LONGEST_S = 600.0
_SAID_S = 30.0
"""The same trouble is said again after this."""
_decode = decoder(FrontOrder)


class Front:
    def __init__(self, store: Store, env: dict[str, str]) -> None:
        self._tells, self._save = Path(env[TELLS]), Path(env["TRADEWIND_SAVE"])
        self._progress = env.get("TRADEWIND_PROGRESS", "")
        self._store, self._run_id = store, env["TRADEWIND_RUN"]
        self._key = read_boot(self._tells.parent / "boot.json").key
        folder = self._tells.parent / "front"
        make_folder(folder)
        self._runner = Runner(folder)
        self._kept = folder / "order.json"
        self._order: FrontOrder | None = None
        self._begun: FrontOrder | None = None
        """The last one with which HAProxy was started or told anew."""
        self._done = 0
        self._asked = False
        self._closed = False
        """Its port is: running answers finish."""
        self._asked_s = -_ASK_S
        self._said: tuple[str, float] = ("", 0.0)
        self._told = Serving()

    def ask(self, *_: object) -> None:
        """From a signal handler."""
        self._asked = True

    def run(self) -> int:
        self._restore()
        self._tell(FrontTold())
        try:
            while not self._asked:
                self._once()
                clock.sleep(_LOOK_S)
            self._finish()
        finally:
            self._runner.stop()
        return 0

    def _once(self) -> None:
        try:
            self._learn()
            if self._order is not None:
                self._carry_out(self._order)
            self._look()
        except SourceFailed as error:  # HAProxy, which is started again; or the store
            self._say(error.message)

    def _learn(self) -> None:
        now = clock.stopwatch()
        if now - self._asked_s < _ASK_S:
            return
        self._asked_s = now
        try:
            data = self._store.get(places.front_order(self._run_id), most=bounds.RECORD)
        except NotFound:
            return
        except TradewindError as error:
            self._say(f"its orders cannot be read, and the last one holds: {error.message}")
            return
        body = signing.opened(data, self._key, signing.FRONT)
        order = _decode(body) if body is not None else None
        if order is None:
            self._say("an order in the store is not signed by a controller: it is not followed")
        elif self._order is None or order.number > self._order.number:
            with suppress(NoAccess):  # a full disk: after a restart an older one may come back
                replace(self._kept, body or b"")
            self._order = order

    def _carry_out(self, order: FrontOrder) -> None:
        """Repeated: a replica that is not wanted any more is removed with its last answer."""
        if order.ending:
            self._close()
        elif not self._closed:
            front = front_of(order.front, order.health, order.in_time_s, order.fronts)
            like = replaced(order, number=0, backends=())
            if like != self._begun or not self._runner.alive():
                self._runner.start(front)
                self._begun = like
            self._runner.apply(backends_of(order.backends))
        self._done = order.number

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._runner.let_finish()

    def _look(self) -> None:
        if self._order is None:
            return
        if self._closed:
            over = not self._runner.running()
            last = self._told.front or FrontTold()
            self._tell(replaced(last, order=self._done, finished=over, busy={}, up=()))
            return
        found = self._runner.look()
        busy = {each.id: each.current + each.queued for each in found.replicas}
        self._tell(
            FrontTold(
                order=self._done,
                current=found.current,
                queued=found.queued,
                held=found.held,
                total=found.total,
                denied=found.denied,
                busy={name: count for name, count in busy.items() if count},
                up=tuple(each.id for each in found.replicas if each.health.value == "up"),
            )
        )

    def _finish(self) -> None:
        self._close()
        begun, within_s = clock.stopwatch(), self._within_s()
        while self._runner.running() and clock.stopwatch() - begun < within_s:
            clock.sleep(_LOOK_S)

    def _within_s(self) -> float:
        with suppress(OSError, TypeError, KeyError, *UNREADABLE):
            given_s = float(json.decode(self._save.read_bytes())["within_s"])
            return max(min(given_s - _MARGIN_S, _LONGEST_S), 0.0)
        return _LONGEST_S

    def _restore(self) -> None:
        """What was the last order, for whoever comes after one that was killed."""
        with suppress(OSError):
            self._order = _decode(self._kept.read_bytes())

    def _tell(self, front: FrontTold) -> None:
        state = "draining" if self._closed else "ready" if self._done else "starting"
        port = self._order.front.port if self._order is not None else 0
        told = Serving(state=state, port=port, front=front)
        if told != self._told:
            self._told = told
            with suppress(NoAccess):
                replace(self._tells, json.encode(told))

    def _say(self, words: str) -> None:
        now = clock.stopwatch()
        if words != self._said[0] or now - self._said[1] >= _SAID_S:
            self._said = (words, now)
            _print(words)


def _print(words: str) -> None:
    print(f"tradewind: {words}", flush=True)  # noqa: T201 -- into the log of the front


def main() -> int:
    env = dict(os.environ)
    try:
        front = Front(stores.open(env["TRADEWIND_STORE"]), env)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, front.ask)
        return front.run()
    except TradewindError as error:  # a port that is taken, no HAProxy: it says what to do
        _print(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
