"""What the budgets of projects leave for a run: asked before each purchase, and now and then.

The budgets file is the user's, and read anew for every pass. What counts is what all runs of the
project have spent and can still come to, from their journals, a purchase that is recorded and not
yet made included. Runs that one controller looks after wait for each other between asking and
recording. Two controllers that buy in the same instant do not see each other: one more reason for
their lease.

What cannot be known allows nothing: a file that cannot be read stops purchases, and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import BadFile, SourceFailed, TradewindError
from tradewind.controller import budgetfile
from tradewind.journal import journal, runs_store
from tradewind.journal.journal import Commit
from tradewind.ledger.budgets import Budgets, Standing, cap, standing, standings
from tradewind.ledger.postings import Posting, cost_of, longest_s
from tradewind.lifecycle.fold import fold
from tradewind.lifecycle.seen import Month
from tradewind.lifecycle.state import RunState
from tradewind.model.channels import Channels
from tradewind.model.run import Spec
from tradewind.store.base import Store

_STALE_S = 60.0
"""For a run that buys nothing now, what was read so long ago will do."""
_FRESH_S = 10.0
"""For one that buys too, but for the runs that we have looked after since."""


class AskMonth(Struct, frozen=True):
    """Month | None"""

    run_id: str
    spec: Spec
    buying: bool


class _Known(Struct, frozen=True):
    """A run as far as its journal was read."""

    commits: list[Commit]
    """None of one that is over: there may be many of those."""
    state: RunState
    postings: tuple[Posting, ...] = ()
    """What it has cost, once that is settled."""

    @property
    def settled(self) -> bool:
        machines = self.state.machines.values()
        return self.state.phase == "closed" and all(rented.ended for rented in machines)

    def posted(self, run_id: str, now_s: int) -> tuple[Posting, ...]:
        if self.settled:
            return self.postings
        events = (event for commit in self.commits for event in commit.events)
        try:
            return cost_of(run_id, events, now=now_s).postings
        except (BadFile, ArithmeticError, ValueError):
            return ()  # as where the journal cannot be read at all


class Purse:
    def __init__(self, store: Store, load: Callable[[], Budgets] = budgetfile.load) -> None:
        self._store, self._load = store, load
        self._budgets = Budgets()
        self._trouble = ""
        self._runs: dict[str, _Known] = {}
        self._empty: set[str] = set()
        self._none: set[str] = set()
        """Folders without a journal, and those that had none the time before either."""
        self._read_s: float | None = None
        self._looked_s: float | None = None
        self._touched: set[str] = set()
        """Runs that may have bought something since that."""
        self._reading = threading.Lock()
        self._buying = threading.Lock()
        self._mine = threading.local()

    def open(self) -> bool:
        """Before a pass: whether anything is to be asked at all."""
        try:
            self._budgets, self._trouble = self._load(), ""
        except TradewindError as error:
            self._trouble = error.message
        return bool(self._trouble or self._budgets)

    def month(self, step: AskMonth) -> Month | None:
        """Whoever is buying holds up other buyers until `done`: when it has recorded what it buys,
        before that is bought, or has bought nothing."""
        now_s = int(clock.now().timestamp())
        if self._trouble:
            return _unknown(now_s, self._trouble)
        if self._budgets.of(step.spec.project) is None:
            return None
        if step.buying and not getattr(self._mine, "buying", False):
            self._buying.acquire()
            self._mine.buying = True
        try:
            posted, pending = self._read(step, now_s)
        except TradewindError as error:
            return _unknown(now_s, f"what is spent cannot be read: {error.message}")
        stands = standing(posted, self._budgets, step.spec.project, now_s)
        assert stands is not None
        most = cap(step.run_id, step.spec, posted, self._budgets, now_s)
        return Month(
            number=_number(now_s),
            share=stands.share,
            words=stands.words,
            cap=None if most is None else max(most - pending, 0),
        )

    def due(self) -> tuple[Channels, list[Standing]] | None:
        """Where warnings go, and how all projects stand: at most once a minute, and None between.
        SourceFailed: it cannot be read now."""
        if self._trouble or not self._budgets.tell:
            return Channels(), []
        now_s = int(clock.now().timestamp())
        with self._reading:
            now = clock.stopwatch()
            if self._looked_s is not None and now - self._looked_s < _STALE_S:
                return None
            self._refresh()
            self._read_s = self._looked_s = now
            posted = [
                posting
                for name, known in self._runs.items()
                for posting in known.posted(name, now_s)
            ]
        return self._budgets.tell, standings(posted, self._budgets, now_s)

    def done(self) -> None:
        """Whoever asked on this thread has recorded what it buys, or buys nothing."""
        if getattr(self._mine, "buying", False):
            self._mine.buying = False
            self._buying.release()

    def _read(self, step: AskMonth, now_s: int) -> tuple[list[Posting], int]:
        """What all runs of the project cost, and what others are about to buy."""
        with self._reading:
            now = clock.stopwatch()
            good_s = _FRESH_S if step.buying else _STALE_S
            if self._read_s is None or now - self._read_s >= good_s:
                self._refresh()
                self._read_s = now
            else:
                self._again(self._touched | ({step.run_id} if step.buying else set()))
            if step.buying:  # else whoever is buying may still be about to record it
                self._touched = {step.run_id}
            mine = {
                run_id: known
                for run_id, known in self._runs.items()
                if known.state.spec and known.state.spec.project == step.spec.project
            }
            posted: list[Posting] = []
            for run_id, known in mine.items():
                posted += known.posted(run_id, now_s)
            others = (known.state for run_id, known in mine.items() if run_id != step.run_id)
            return posted, sum(_pending(state) for state in others)

    def _refresh(self) -> None:
        """Only what may have changed: runs that are looked at, and those that are new."""
        live = set(runs_store.live_ids(self._store))
        over = {run_id for run_id, known in self._runs.items() if known.settled}
        # A run is marked before it has a journal, and for longer than we look again: a folder that
        # is without either twice is none, whoever made it.
        self._again(set(runs_store.run_ids(self._store)) - ((over | self._none) - live))
        empty = {run_id for run_id, known in self._runs.items() if not known.state.number}
        self._none, self._empty = empty & self._empty, empty

    def _again(self, run_ids: set[str]) -> None:
        """Many at once: reading is mostly waiting for the store."""
        if not run_ids:
            return
        with ThreadPoolExecutor(min(runs_store.WORKERS, len(run_ids))) as pool:
            for run_id, known in zip(run_ids, pool.map(self._one, run_ids), strict=True):
                if known is not None:
                    self._runs[run_id] = known

    def _one(self, run_id: str) -> _Known | None:
        """None: nobody can say what it cost, and others must be able to go on."""
        known = self._runs.get(run_id) or _Known([], RunState())
        try:
            new = journal.read(self._store, run_id, known.state.number)
            if new and known.settled:  # it goes on, and what it was is to be counted too
                known, new = _Known([], RunState()), journal.read(self._store, run_id)
            if not new:
                return known
            read = _Known(known.commits + new, fold(new, known.state))
            if not read.settled:
                return read
            events = (event for commit in read.commits for event in commit.events)
            return _Known([], read.state, cost_of(run_id, events).postings)
        except SourceFailed:
            raise
        except Exception:  # in its journal, whatever it is: that is its own trouble
            return None


def _pending(state: RunState) -> int:
    """A purchase that is recorded, and of which nothing is known yet."""
    return sum(
        (leg.request.way.nodes - len(leg.machines))
        * leg.request.way.price
        * longest_s(leg.request)
        // 3600
        for leg in state.legs
        if leg.state in ("requested", "queued")
    )


def _unknown(now_s: int, why: str) -> Month:
    return Month(number=_number(now_s), share=0.0, words=why, cap=0)


def _number(now_s: int) -> int:
    day = datetime.fromtimestamp(now_s, UTC)
    return 100 * day.year + day.month
