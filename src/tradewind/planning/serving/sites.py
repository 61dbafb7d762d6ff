"""Machines in one place or in several, where users are in many. Pure.

A request takes its time to the machines and the answer its time back, so a first token may be that
much later at the server, and a place that is too far from somebody serves others only. Targets hold
for the users of each place. Every way to divide their places among sites is weighed: the
best site is found for each set of places, and the best division of all of them by what its sites
weigh together. Times are rounded up to `STEP_MS`, so that many regions ask for the same speeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tradewind.planning.serving.pools import Needs
from tradewind.planning.serving.search import Book, Part, Solution, Solver, fits
from tradewind.planning.serving.shelf import Shelf
from tradewind.planning.serving.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Targets = Mapping[str, tuple[float, float]]

STEP_MS = 20


@dataclass(slots=True)
class Sites:
    """`away`: seconds there and back, by entry of the shelf and place of users; infinite where it
    is not known where machines are. None: distance is not asked about, and there is one site."""

    book: Book
    shelf: Shelf
    needs: Needs
    shares: Sequence[float] = ()
    away: Column | None = None
    _solvers: dict[int, Solver] = field(default_factory=dict)

    def solve(self, traffic: Traffic, targets: Targets, *, single: bool = False) -> Solution | None:
        """The best. At a site among several there is one pool; `single`: so there is without users'
        places."""
        if self.away is None:
            return self._of(0, traffic, targets, single)
        everybody = (1 << len(self.shares)) - 1
        found: dict[int, Solution | None] = {
            users: self._of(users, traffic, targets, single) for users in range(1, everybody + 1)
        }
        best: dict[int, Solution | None] = {0: Solution(())}
        for users in range(1, everybody + 1):
            first = users & -users  # is at one of the sites: the others are divided without it
            best[users] = None
            site = users
            while site:
                here, rest = found[site], best[users ^ site]
                if site & first and here is not None and rest is not None:
                    whole = Solution(here.parts + rest.parts)
                    before = best[users]
                    if before is not None and before.weighed <= whole.weighed:
                        pass
                    elif fits(self.shelf, whole.parts):
                        best[users] = whole
                site = (site - 1) & users
        return best[everybody]

    def together(self, traffic: Traffic, targets: Targets) -> Solution | None:
        """The best with one site for all."""
        return self._of((1 << len(self.shares)) - 1, traffic, targets, False)

    def like(
        self, division: Sequence[tuple[int, ...]], usable: Flags | None, traffic: Traffic,
        targets: Targets,
    ) -> Solution | None:  # fmt: skip
        """The best with all or some entries, users divided like this, one pool at each site."""
        parts: list[Part] = []
        for users in division:
            number = sum(1 << n for n in users)
            if usable is None:
                found = self._of(number, traffic, targets, single=True)
                if found is None:
                    return None
                parts += found.parts
                continue
            solver = self._solver(number, usable)
            found = solver.single(self._traffic(number, traffic), targets)
            if found is None:
                return None
            parts += found.parts
        return Solution(tuple(parts))

    def _of(self, users: int, traffic: Traffic, targets: Targets, single: bool) -> Solution | None:
        if users not in self._solvers:
            self._solvers[users] = self._solver(users)
        solver, asked = self._solvers[users], self._traffic(users, traffic)
        if self.away is None:
            return solver.single(asked, targets) if single else solver.solve(asked, targets)
        found = solver.single(asked, targets)
        if found is None:
            return found
        who = members(users)
        parts = []
        for part in found.parts:
            delay = float(self.away[part.pool.entry, list(who)].max())
            parts.append(replace(part, users=who, delay_s=_rounded(delay) / 1e3))
        return Solution(tuple(parts))

    def _traffic(self, users: int, traffic: Traffic) -> Traffic:
        if self.away is None:
            return traffic
        return traffic.scaled(sum(self.shares[n] for n in members(users)))

    def _solver(self, users: int, usable: Flags | None = None) -> Solver:
        import numpy as np

        if self.away is None:
            return Solver(self.book, self.shelf, self.needs, usable=usable)
        far = self.away[:, list(members(users))].max(axis=1)
        known = np.isfinite(far)
        delays = _rounded(np.where(known, far, 0.0)).astype(np.int64)
        usable = known if usable is None else known & usable
        return Solver(self.book, self.shelf, self.needs, delays, usable)


def members(users: int) -> tuple[int, ...]:
    return tuple(n for n in range(users.bit_length()) if users >> n & 1)


def _rounded(seconds: Any) -> Any:
    """Milliseconds, up to the next step."""
    import numpy as np

    return np.ceil(1e3 * seconds / STEP_MS - 1e-9) * STEP_MS
