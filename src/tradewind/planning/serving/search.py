"""The cheapest plan: one pool for all requests, one for short and one for long prompts, or own
machines with rented ones beside them.

Rates within the targets are asked for lazily, in the order of what layouts could cost at least, so
that most are never asked for, and none is left out that could be the cheapest.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

from tradewind.estimate.serving.mix import Mix
from tradewind.planning.serving import pools
from tradewind.planning.serving.layouts import Layouts, ceiling, most_rate
from tradewind.planning.serving.pools import Needs, Pool
from tradewind.planning.serving.shelf import Shelf
from tradewind.planning.serving.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from tradewind.estimate.serving.steps import Steps

    Column = NDArray[np.float64]
    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Targets = Mapping[str, tuple[float, float]]

_AT_ONCE = 32  # layouts whose rates are asked for together
_CUTS = 5  # lengths of prompts at which requests are divided, at most


@dataclass(frozen=True, slots=True)
class Part:
    """A pool and what it answers."""

    pool: Pool
    mix: Mix
    hours: tuple[float, ...]
    sizes: str = ""  # which requests, where not all
    users: tuple[int, ...] = ()  # whose requests, where they are from several places
    delay_s: float = 0.0  # there and back


@dataclass(frozen=True, slots=True)
class Solution:
    parts: tuple[Part, ...]

    @property
    def cost(self) -> float:
        return sum(part.pool.cost for part in self.parts)

    @property
    def had(self) -> float:
        """The chance that all machines of the fullest hours are there."""
        return prod(part.pool.had for part in self.parts)

    @property
    def weighed(self) -> float:
        """The cost with what refusals are worth, by which it is chosen."""
        return sum(part.pool.weighed for part in self.parts)


class Rates:
    """Of one mix under one set of targets: by layout, asked for when needed."""

    def __init__(self, table: Steps, most: Column, mix: Mix, targets: Targets, cv: float) -> None:
        """`most`: what a rate could be, whatever the targets are."""
        import numpy as np

        self.mix, self.targets, self.cv = mix, targets, cv
        self.table, self.ceiling = table, most
        self.known = np.full(len(self.table), np.nan)
        if min(seconds for seconds, _ in targets.values()) <= 0:
            self.known[:] = 0.0  # the way there takes longer

    def ask(self, at: Any) -> None:
        ask([(self, at)])

    def all(self) -> Column:
        import numpy as np

        self.ask(np.arange(len(self.table)))
        return self.known

    @property
    def upper(self) -> Column:
        """Known, or what it could be at most."""
        import numpy as np

        found: Column = np.where(np.isnan(self.known), self.ceiling, self.known)
        return found


def ask(wanted: Sequence[tuple[Rates, Any]]) -> None:
    """Rates of one mix under several targets, found together: a few hundred layouts cost little
    more than a few."""
    import numpy as np

    new = [(rates, at[np.isnan(rates.known[at])]) for rates, at in wanted]
    new = [(rates, at) for rates, at in new if len(at)]
    if not new:
        return
    first = new[0][0]
    sizes = [len(at) for _, at in new]
    targets = {
        name: (np.repeat([rates.targets[name][0] for rates, _ in new], sizes), share)
        for name, (_, share) in first.targets.items()
    }
    table = first.table.take(np.concatenate([at for _, at in new]))
    found = most_rate(table, first.mix, targets, first.cv)
    for (rates, at), part in zip(new, np.split(found, np.cumsum(sizes)[:-1]), strict=True):
        rates.known[at] = part


class Book:
    """Rates that were asked for, kept for whoever asks again."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self._tables: dict[Mix, tuple[Steps, Column]] = {}
        self._rates: dict[
            tuple[Mix, tuple[tuple[str, tuple[float, float]], ...], float], Rates
        ] = {}

    def rates(self, mix: Mix, targets: Targets, cv: float) -> Rates:
        key = (mix, tuple(sorted(targets.items())), cv)
        if key not in self._rates:
            if mix not in self._tables:
                table = self.layouts.tables(mix)
                self._tables[mix] = (table, ceiling(table, mix))
            self._rates[key] = Rates(*self._tables[mix], mix, targets, cv)
        return self._rates[key]


class Solver:
    """Over all entries of a shelf, or those that are `usable`. `delays`: the milliseconds that
    requests take to an entry and answers back, which leave so much less for the targets."""

    def __init__(
        self, book: Book, shelf: Shelf, needs: Needs, delays: Numbers | None = None,
        usable: Flags | None = None,
    ) -> None:  # fmt: skip
        import numpy as np

        self.book, self.shelf, self.needs = book, shelf, needs
        given = np.zeros(len(shelf), dtype=np.int64) if delays is None else delays
        self.delays, number = np.unique(given, return_inverse=True)
        self.number = len(book.layouts.layouts)
        self._at = number * self.number + shelf.layout  # of rates: by delay, and in it by layout
        self._held = shelf.replicas if usable is None else np.where(usable, shelf.replicas, 0.0)

    def rates(self, mix: Mix, targets: Targets, cv: float) -> list[Rates]:
        """By delay."""
        return [self.book.rates(mix, sooner(targets, ms / 1e3), cv) for ms in self.delays.tolist()]

    def solve(self, traffic: Traffic, targets: Targets) -> Solution | None:
        """The best of all ways."""
        best = self.single(traffic, targets)
        mine = self._beside_own(traffic, targets, best.weighed if best else inf)
        if mine is not None and fits(self.shelf, mine.parts):
            best = mine
        for length in cuts(traffic.mix):
            found = self._split(traffic, targets, length, best.weighed if best else inf)
            if found is not None and fits(self.shelf, found.parts):
                best = found
        return best

    def single(self, traffic: Traffic, targets: Targets) -> Solution | None:
        """The best with one pool."""
        pool = self.pool(traffic.mix, targets, traffic.cv, traffic.hours)
        return None if pool is None else Solution((Part(pool, traffic.mix, traffic.hours),))

    def pool(
        self, mix: Mix, targets: Targets, cv: float, hours: Sequence[float], below: float = inf
    ) -> Pool | None:
        import numpy as np

        rates = self.rates(mix, targets, cv)
        if not rates:
            return None
        upper = self._upper(rates)
        least = self._least(upper, hours)
        order = np.argsort(least, kind="stable")
        best: Pool | None = None
        for first in range(0, len(order), _AT_ONCE):
            chunk = order[first : first + _AT_ONCE]
            if not least[chunk[0]] < below:
                break
            tried = np.zeros(len(upper))
            places, layouts = chunk // self.number, chunk % self.number
            ask([(rates[n], layouts[places == n]) for n in set(places.tolist())])
            tried[chunk] = [rates[n].known[i] for n, i in zip(places, layouts, strict=True)]
            found = pools.best_pool(self.shelf, self._each(tried), hours, self.needs, below)
            if found is not None:
                best, below = found, found.weighed
        return best

    def least(self, mix: Mix, targets: Targets, cv: float, hours: Sequence[float]) -> float:
        """What any pool costs at least."""
        rates = self.rates(mix, targets, cv)
        if not rates:
            return inf
        upper = self._upper(rates)
        return float(self._least(upper, hours).min(initial=inf))

    def _upper(self, rates: Sequence[Rates]) -> Column:
        """What rates could be at most: from farther away, no more than from nearer."""
        import numpy as np

        stacked = np.array([one.upper for one in rates])
        found: Column = np.minimum.accumulate(stacked, axis=0).ravel()
        return found

    def _each(self, rates: Column) -> Column:
        """Requests a second of one machine, by entry."""
        found: Column = rates[self._at] * self._held
        return found

    def _least(self, upper: Column, hours: Sequence[float]) -> Column:
        """By rate."""
        import numpy as np

        entries = pools.least(self.shelf, self._each(upper), hours, self.needs)
        found = np.full(len(upper), inf)
        np.minimum.at(found, self._at, entries)
        return found

    def _split(
        self, traffic: Traffic, targets: Targets, length: float, below: float
    ) -> Solution | None:
        """Short prompts to one pool, long ones to another."""
        divided = traffic.mix.split(length)
        if divided is None:
            return None
        short, long, share = divided
        few = tuple(rate * share for rate in traffic.hours)
        rest = tuple(rate * (1 - share) for rate in traffic.hours)
        bound = self.least(long, targets, traffic.cv, rest)
        if not self.least(short, targets, traffic.cv, few) + bound < below:
            return None
        first = self.pool(short, targets, traffic.cv, few, below - bound)
        if first is None:
            return None
        second = self.pool(long, targets, traffic.cv, rest, below - first.weighed)
        if second is None:
            return None
        words = f"{length:,.0f} tokens"
        return Solution(
            (
                Part(first, short, few, f"prompts up to {words}"),
                Part(second, long, rest, f"prompts above {words}"),
            )
        )

    def _beside_own(self, traffic: Traffic, targets: Targets, below: float) -> Solution | None:
        """All machines of one own kind first, and rented ones for what is left."""
        import numpy as np

        best: Solution | None = None
        rates = self.rates(traffic.mix, targets, traffic.cv)
        for i in np.flatnonzero(self.shelf.own).tolist():
            n, layout = divmod(int(self._at[i]), self.number)
            rates[n].ask(np.array([layout]))
            each = float(rates[n].known[layout] * self._held[i])
            most = each * float(min(self.shelf.most_steady[i], self.shelf.most[i]))
            if not 0 < most < max(traffic.hours):
                continue  # useless, or enough alone
            mine = tuple(min(rate, most) for rate in traffic.hours)
            rest = tuple(rate - own for rate, own in zip(traffic.hours, mine, strict=True))
            sure = Needs(0.0, self.needs.warm, self.needs.scale_to_zero)
            first = pools.priced(self.shelf, i, each, mine, sure)
            first = first and pools.weighed(self.shelf, first)
            if first is None or not first.weighed < below:
                continue
            more = copy(self)
            more.needs = Needs(self.needs.availability, 0, True)
            second = more.pool(traffic.mix, targets, traffic.cv, rest, below - first.weighed)
            if second is not None:
                below = first.weighed + second.weighed
                best = Solution(
                    (
                        Part(first, traffic.mix, mine, "your own machines first"),
                        Part(second, traffic.mix, rest, "what is left"),
                    )
                )
        return best


def fits(shelf: Shelf, parts: Sequence[Part]) -> bool:
    """Whether all pools together have no more machines at once than limits allow."""
    for hour in range(max((len(part.hours) for part in parts), default=0)):
        taken = 0.0
        for part in parts:
            held = part.pool.hours[hour]
            count = part.pool.committed + held.on_demand + held.spot
            taken += count / float(shelf.most[part.pool.entry])
        if taken > 1 + 1e-9:
            return False
    return True


def sooner(targets: Targets, seconds: float) -> dict[str, tuple[float, float]]:
    """What is left of targets for the server: a first token and a whole answer come by the way that
    the request took; further tokens follow it without a pause."""
    return {
        name: (target - (0.0 if name == "tpot" else seconds), share)
        for name, (target, share) in targets.items()
    }


def cuts(mix: Mix) -> list[float]:
    """Lengths of prompts between which requests may be divided."""
    lengths = sorted(set(mix.inputs))[:-1]
    if len(lengths) <= _CUTS:
        return lengths
    return [lengths[round(n * (len(lengths) - 1) / (_CUTS - 1))] for n in range(_CUTS)]
