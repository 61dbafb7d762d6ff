"""In which order the samples of shards are seen. Pure.

An epoch is one order of all samples, as in feeds/order.py, made so that a rank stays with few
shards: shards are shuffled and dealt out to as many lanes as ranks began the epoch; each lane takes
some of its shards at a time and shuffles their samples; and the lanes take turns, a batch each. A
rank of those that began the epoch so reads its own lane. Any other number of ranks can go on in the
middle: the order stays, only more ranks share a shard.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heapreplace
from itertools import accumulate
from typing import Any

from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.order import permutation

_SHARDS, _SAMPLES = 11, 12


class ShardOrder:
    """`counts`: samples of each shard. `lanes` and `block`: the ranks that began the epoch, and the
    batch of each. `mix`: how many shards of a lane are shuffled together; 0: none is."""

    def __init__(
        self, counts: Sequence[int], seed: int, epoch: int, lanes: int, block: int, mix: int
    ) -> None:
        self._seed, self._epoch = seed, epoch
        self._block, self._mix = block, mix
        self._counts = counts
        self._starts = [0, *accumulate(counts)]
        self._size = self._starts[-1]
        full = [number for number, count in enumerate(counts) if count]
        if mix:
            drawn = permutation(len(full), mixed(seed, _SHARDS), epoch)
            full = [full[each] for each in drawn[0 : len(full)].tolist()]
        self._lanes = [_Lane(shards, counts, mix) for shards in _dealt(full, counts, lanes, mix)]
        self._turn = (0, 0)
        self._shuffled: dict[tuple[int, int], Any] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, places: slice) -> list[int]:
        start, stop, step = places.indices(self._size)
        assert step == 1
        return [
            number
            for lane, low, high in self._stretches(start, stop)
            for number in self._of_lane(lane, low, high)
        ]

    def near(self, start: int, stop: int) -> list[int]:
        """The shards that samples at these places are in, and then those that the same lanes will
        take next."""
        now, later = dict[int, None](), dict[int, None]()
        for number, low, high in self._stretches(start, min(stop, self._size)):
            lane = self._lanes[number]
            first, last = lane.group(low), lane.group(high - 1)
            for group in range(first, last + 1):
                now |= dict.fromkeys(lane.groups[group])
            if last + 1 < len(lane.groups):
                later |= dict.fromkeys(lane.groups[last + 1])
        return [*now, *(each for each in later if each not in now)]

    # -- the lanes' turns --------------------------------------------------------------------------

    def _stretches(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """What of which lane is at these places of the order."""
        found = []
        turn, at = self._turn_at(start)
        while at < stop:
            for number, lane in enumerate(self._lanes):
                low = turn * self._block
                count = min(self._block, lane.size - low)
                if count <= 0:
                    continue
                begin, end = max(start, at), min(stop, at + count)
                if begin < end:
                    found.append((number, low + begin - at, low + end - at))
                at += count
            turn += 1
        return found

    def _turn_at(self, place: int) -> tuple[int, int]:
        """The turn that it is in, and where that one begins."""

        def begin(turn: int) -> int:
            return sum(min(lane.size, turn * self._block) for lane in self._lanes)

        turn, at = self._turn
        following = begin(turn + 1)
        if at <= place < following:  # nearly always: places come one after the other
            return turn, at
        if following <= place < begin(turn + 2):
            self._turn = (turn + 1, following)
            return self._turn
        low, high = 0, self._size // self._block + 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if begin(middle) <= place else (low, middle - 1)
        self._turn = (low, begin(low))
        return self._turn

    # -- one lane ----------------------------------------------------------------------------------

    def _of_lane(self, number: int, low: int, high: int) -> list[int]:
        lane, found = self._lanes[number], list[int]()
        while low < high:
            group = lane.group(low)
            begin, end = lane.ends[group - 1] if group else 0, lane.ends[group]
            upto = min(high, end)
            found += self._of_group(number, group)[low - begin : upto - begin]
            low = upto
        return found

    def _of_group(self, number: int, group: int) -> list[int]:
        known = self._shuffled.get((number, group))
        if known is None:
            shards = self._lanes[number].groups[group]
            known = [
                each
                for shard in shards
                for each in range(self._starts[shard], self._starts[shard + 1])
            ]
            if self._mix:
                seed = mixed(self._seed, number, group, _SAMPLES)
                order = permutation(len(known), seed, self._epoch)
                known = [known[each] for each in order[0 : len(known)].tolist()]
            # What is left behind is not needed again: one group of each lane, and a spare.
            if len(self._shuffled) > len(self._lanes) + 1:
                self._shuffled.pop(next(iter(self._shuffled)))
            self._shuffled[number, group] = known
        found: list[int] = known
        return found


class _Lane:
    def __init__(self, shards: list[int], counts: Sequence[int], mix: int) -> None:
        many = mix or 1
        self.groups = [shards[at : at + many] for at in range(0, len(shards), many)]
        self.ends = list(accumulate(sum(counts[each] for each in group) for group in self.groups))
        self.size = self.ends[-1] if self.ends else 0

    def group(self, place: int) -> int:
        return bisect_right(self.ends, place)


def _dealt(shards: list[int], counts: Sequence[int], lanes: int, mix: int) -> list[list[int]]:
    """Each to the lane that has the fewest samples yet, so that they end at about the same time. In
    the files' own order there is one lane."""
    many = min(lanes, len(shards)) if mix else 1
    dealt: list[list[int]] = [[] for _ in range(max(1, many))]
    heap = [(0, number) for number in range(len(dealt))]
    heapify(heap)
    for shard in shards:
        size, number = heap[0]
        dealt[number].append(shard)
        heapreplace(heap, (size + counts[shard], number))
    return dealt
