"""Passes one after another, for as long as somebody wants them.

`tick` is one pass: for cron, a CI job, a function. `watch` goes on until the runs that were named
are over, or for ever. Several may be at work at once and all is well; so that they do not do the
same twice, each leaves a sign in the store (`controllers/lease.json`) and stands back while it sees
another's sign change. Nothing depends on that: a sign that cannot be read or written is no sign.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, json

from tradewind.base import clock
from tradewind.base.decoding import decoder
from tradewind.base.errors import NotFound, TradewindError, bug
from tradewind.controller import budgetfile, drive, persist, seed
from tradewind.controller.controller import Controller
from tradewind.controller.purse import Purse
from tradewind.controller.services import Serves, Services
from tradewind.controller.telling import Teller
from tradewind.journal import runs_store
from tradewind.ledger.budgets import Standing
from tradewind.lifecycle.capacity import Answer
from tradewind.model import bounds
from tradewind.model.channels import Channels
from tradewind.policy import careful
from tradewind.providers.base import Provider, Tidy
from tradewind.store.base import Store
from tradewind.store.lending import Pass

POLICY = careful.choose
"""Which market and place every controller holds next; what is shown before a run asks it, too."""
LEASE = "controllers/lease.json"
_DEAD = 3
"""A sign that has not changed for so many of its owner's passes is a dead one's."""
_LONGEST_S = 60.0
"""Whatever the sign says: it must not keep everybody else away."""
_TELLING_S = 2.0
"""A pass waits so long for warnings to be sent: a slow server must not hold up all runs."""
_LAST_TELLING_S = 10.0

Troubles = list[tuple[str, TradewindError]]


class Sign(Struct):
    """Renewed at each pass of whoever watches, and removed by one that ends in order."""

    writer: str
    count: int
    pass_s: float

    @property
    def dead_after_s(self) -> float:
        """Unchanged for so long it is a dead one's."""
        return _DEAD * min(self.pass_s, _LONGEST_S)


def sign(store: Store) -> Sign | None:
    """Whoever watches, or did until it was killed; NotFound where nobody does. None: no sign that
    could be read."""
    return _read(store.get(LEASE, most=bounds.RECORD))


class Loop:
    def __init__(
        self,
        store: Store,
        providers: Mapping[str, Provider],
        home: Path,
        *,
        pass_s: float = 15.0,
        may_use: Callable[[str, str], bool] = lambda run_id, provider: True,
        learned: Callable[[Sequence[Answer]], None] = lambda answers: None,
        lend: Callable[[str, int], Pass] = drive.no_lender,
        fronts: drive.Fronts | None = None,
        serves: Serves | None = None,
    ) -> None:
        self.store, self.pass_s = store, pass_s
        self._providers = providers
        self._path = persist.place(home, store.url)
        self._purse = Purse(store)
        self._teller = Teller(store)
        self._telling: threading.Thread | None = None
        self._untold: Troubles = []
        self._perform = drive.performer(store, providers, self._purse, lend, fronts)
        self.controller = Controller(
            clock.new_id("ctl"),
            tuple(providers),
            clock=_wall,
            watch=clock.epoch,
            asks_prices=True,
            policy=POLICY,
            may_use=may_use,
            learned=learned,
        )
        self.controller.memory = persist.load(self._path, store.url, clock.epoch())
        self.services = Services(self.controller, serves)
        self._count = 0
        self._other: tuple[Sign | None, float] = (None, 0.0)
        self.unkept: TradewindError | None = None
        """Why what the last pass has seen could not be kept for the next process."""

    def tick(self, telling_s: float = _TELLING_S) -> Troubles:
        """One pass; what went wrong with which run. `telling_s` is for whom this is the last one:
        how long it waits for warnings to be sent."""
        if not self.controller.seed:
            self.controller.seed = seed.find(self.store) or self._made_seed()
        self.controller.asks_month = self._purse.open()
        troubles = drive.whole_pass(
            self.controller, self._perform, done=self._purse.done, services=self.services
        )
        troubles += self._told(telling_s)
        for provider in self._providers.values():
            if isinstance(provider, Tidy):
                with suppress(TradewindError):
                    provider.tidy()
        self.unkept = None
        try:
            persist.save(self._path, self.controller.memory, self.store.url, clock.epoch())
        except TradewindError as error:
            self.unkept = error  # a full disk: the pass is done nevertheless
        except Exception as error:
            self.unkept = bug(str(self._path), error)
        return troubles

    def _told(self, patience_s: float) -> Troubles:
        """Warnings about budgets are sent; runs are looked after whether they can be or not, and
        however long that takes: by one thread at a time."""
        if self._telling is None or not self._telling.is_alive():
            self._telling = None
            with self._noting():
                due = self._purse.due()
                if due is not None and not due[0]:
                    self._untold = []
                elif due is not None:
                    self._telling = threading.Thread(target=self._tell, args=due, daemon=True)
                    self._telling.start()
        if self._telling is not None:
            self._telling.join(patience_s)
        return self._untold

    def _tell(self, channels: Channels, standings: Iterable[Standing]) -> None:
        with self._noting():
            found = self._teller.tell(channels, standings)
            self._untold = [(budgetfile.NAME, error) for error in found]

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except TradewindError as error:
            self._untold = [(budgetfile.NAME, error)]
        except Exception as error:
            self._untold = [(budgetfile.NAME, bug(budgetfile.NAME, error))]

    def _made_seed(self) -> bytes:
        """Only where there is a run to look after: in a store of a newer Tradewind, whose runs
        cannot be read, nothing is written."""
        for run_id in runs_store.live_ids(self.store):
            with suppress(TradewindError):
                runs_store.load(self.store, run_id)
                return seed.find_or_make(self.store)
        return b""

    def watch(
        self,
        wanted: Callable[[], bool],
        *,
        tell: Callable[[Troubles], None] = lambda troubles: None,
    ) -> None:
        """Passes until `wanted` says no. What goes wrong is told, and tried again next time."""
        try:
            while wanted():
                start = clock.stopwatch()
                if self._my_turn():
                    try:
                        troubles = self.tick()
                        unkept = [(str(self._path), self.unkept)] if self.unkept else []
                        tell([*troubles, *unkept])
                    except TradewindError as error:
                        tell([("", error)])
                clock.sleep(max(self.pass_s - (clock.stopwatch() - start), 0.05))
        finally:
            self._leave()
            if self._telling is not None:
                self._telling.join(_LAST_TELLING_S)

    def _my_turn(self) -> bool:
        try:
            found = sign(self.store)
        except NotFound:
            found = None
        except TradewindError:
            return True
        if found and found.writer != self.controller.writer:
            seen, since = self._other
            if found != seen:
                self._other = (found, clock.stopwatch())
                return False
            if clock.stopwatch() - since < found.dead_after_s:
                return False
        self._count += 1
        mine = Sign(self.controller.writer, self._count, self.pass_s)
        with suppress(TradewindError):
            self.store.replace(LEASE, json.encode(mine))
        return True

    def _leave(self) -> None:
        """So that whoever comes next need not wait."""
        with suppress(TradewindError):
            found = sign(self.store)
            if found and found.writer == self.controller.writer:
                self.store.delete(LEASE)


_read = decoder(Sign)


def _wall() -> float:
    return clock.now().timestamp()
