"""The job of one leg: it gets on only while every one of its machines works."""

from __future__ import annotations

from math import ceil, inf

from tradewind.model.run import Spec
from tradewind.supervisor.decide import Job

_SETTLES_S = 60


class SimJob:
    __slots__ = (
        "_ends",
        "_every",
        "_exits",
        "_fails_at",
        "_hangs_at",
        "_hung_at",
        "_last",
        "_nodes",
        "_pending",
        "_rate",
        "_saves",
        "_since",
        "_step",
        "_tells",
        "_working",
        "failures",
        "finished",
        "finished_at",
        "saved",
    )  # fmt: skip

    def __init__(
        self,
        spec: Spec,
        nodes: int,
        rate: float,
        fails_at: float | None = None,
        hangs_at: float | None = None,
        *,
        tells: bool = True,
    ) -> None:
        self._nodes, self._rate = nodes, rate
        self._fails_at = inf if fails_at is None else fails_at
        self._hangs_at = inf if hangs_at is None else hangs_at
        self._hung_at: int | None = None
        self._tells = tells
        self._ends = spec.work
        self._every = spec.checkpoint_every_s * rate
        self._step = 0.0
        self.saved = 0
        self._pending: int | None = None
        self._working: set[int] = set()
        self._saves: dict[int, int] = {}
        self._exits: dict[int, tuple[int, str]] = {}
        self._last = self._since = 0
        self.finished = False
        self.finished_at = 0
        self.failures = 0

    def starts(self, rank: int, resume: str, now: int) -> None:
        self.update(now)
        if self._exits.pop(rank, None) or not self._working:
            start = int(resume.rsplit("/", 1)[1].removesuffix(".json")) if resume else 0
            self.saved = max(self.saved, start)
            self._step = float(self.saved)
        self._working.add(rank)
        self._last = self._since = now
        self._hung_at = None

    def update(self, now: int) -> None:
        if len(self._working) == self._nodes:
            limit = min(self._ends, self._fails_at, self._hangs_at)
            self._step = min(self._step + self._rate * (now - self._last), limit)
            if self._step >= self._hangs_at:
                self._hung_at = now if self._hung_at is None else self._hung_at
            elif self._step >= limit:
                self._all_exit(now)
        self._last = now

    def _all_exit(self, now: int) -> None:
        if self._step >= self._ends:
            self.finished, self.finished_at = True, now
            code = (0, "")
        else:
            self.failures += 1
            code = (1, "user")
        for rank in self._working:
            self._exits[rank] = code
        self._working.clear()

    @property
    def left_s(self) -> float | None:
        if len(self._working) < self._nodes:
            return None
        return (self._ends - self._step) / self._rate

    def exits_in(self, rank: int, now: int) -> int:
        """Seconds until the supervisor would see the process end."""
        if rank in self._saves:
            return self._saves[rank] - now
        if len(self._working) == self._nodes:
            left = min(self._ends, self._fails_at, self._hangs_at) - self._step
            if self._hung_at is None:
                return ceil(left / self._rate)
        return 1_000_000

    def due(self, rank: int, now: int) -> int | None:
        """The step of the checkpoint that this machine is to write now."""
        if rank != 0:
            return None
        if self._pending is None:
            done = rank in self._saves and self._saves[rank] <= now
            if done or self._step - self.saved >= self._every:
                self._pending = int(self._step)
        return self._pending

    @property
    def step(self) -> float:
        return self._step

    @property
    def hung(self) -> bool:
        return self._hung_at is not None

    def works(self, rank: int) -> bool:
        return rank in self._working

    def saved_at(self, step: int) -> None:
        self.saved, self._pending = max(self.saved, step), None

    def saves(self, rank: int, now: int, until: int) -> None:
        self.update(now)
        self._working.discard(rank)
        if rank not in self._exits:
            self._saves[rank] = until

    def leaves(self, rank: int, now: int) -> None:
        self.update(now)
        self._working.discard(rank)
        self._saves.pop(rank, None)

    def breaks(self, rank: int, now: int, *, killed: bool) -> None:
        self.update(now)
        if rank in self._working:
            self._working.discard(rank)
            self._exits[rank] = (-9 if killed else -7, "infrastructure")

    def seen(self, rank: int, now: int) -> Job:
        until = self._saves.get(rank)
        if until is not None and until <= now and self._pending is None:
            del self._saves[rank]
            self._exits[rank] = (143, "user")
        code = self._exits.get(rank)
        if code:
            tail = "ValueError: bad batch" if code[1] == "user" else ""
            return Job(
                "exited", self._step, None, float(self.saved), code[0], code[1], tail,
                again=code[0] == -9,
            )  # fmt: skip
        if rank in self._working or rank in self._saves:
            settled = now - self._since >= _SETTLES_S and len(self._working) == self._nodes
            rate = self._rate if settled and self._tells else None
            still_s = 0.0 if self._hung_at is None else float(now - self._hung_at)
            return Job(
                "running", self._step, rate, float(self.saved), stalled_s=still_s, idle_s=still_s
            )
        return Job("none", self._step, None, float(self.saved))
