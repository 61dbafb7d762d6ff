"""An engine under requests that arrive at random: how many run at once, who waits, and how long.

Pure; one row a layout. Continuous batching is a birth-death chain over the sequences of a replica:

    up        requests arrive at `rate`
    down      n sequences finish at n / (answer × step), step being that of n sequences among the
              prefills that arrive meanwhile
    full      what the cache or the scheduler has no room for waits, first come first served
    prefills  are a queue of their own before the first token, slowed by the decoding beside them

Bursts (a squared coefficient of variation of the gaps, `burst`, above 1) widen the chain as by
Hayward's rule for peaked traffic, and the waiting as by Allen and Cunneen's. With more load every
rate down falls and every rate up grows, so no latency ever falls: the order is that of likelihood
ratios. Bursts are not thinned where replicas share the traffic, so that more replicas only lower
the load of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from statistics import NormalDist
from typing import TYPE_CHECKING

from tradewind.estimate.serving.mix import Mix
from tradewind.estimate.serving.steps import Steps

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

_SINGLE, _GROWTH = 8, 1.15  # states one by one, and then in growing strides
_AVERAGED = 0.86
"""How far a request's time per token still differs from the mean when the batch does: it averages
over its own stay, about as long as the batch remembers. √(2/e) of a window of that length."""
_LONGEST_S, _HALVINGS = 1e6, 60
_TAIL = (0.005, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)
_NORMAL = tuple(max(NormalDist().inv_cdf(level), 0.0) for level in _TAIL)


@dataclass(slots=True)
class State:
    """What a replica of each layout is like at its rate. Columns by layout, or layout × size."""

    rate: Column
    stable: Column  # bool
    running: Column  # sequences at once, on average
    tpot: Column  # mean
    step_quantiles: Column  # layout × _TAIL, of the step as requests see it
    spread: Column  # layout × size: of a request's own share of prefills, one standard deviation
    first: Column  # layout × size: to the first token, where nobody waits
    held_up: Column  # the chance that there is no room
    room_rate: Column  # 1/s, of the exponential wait for room
    busy: Column  # share of the time in which prompts are read
    prefill_rate: Column  # 1/s, of the exponential wait for others' prompts
    wait: Column  # mean, of both


def at_rate(steps: Steps, mix: Mix, rate: Column, burst: float = 1.0) -> State:
    """`rate` is of one replica, requests a second, by layout."""
    import numpy as np

    peaked = (1 + burst) / 2
    room = np.maximum(steps.room, 1.0)
    n = np.minimum(_grid(float(room.max()))[None, :], room[:, None])
    alone = steps.seconds(n)
    step = _among_prefills(steps, mix, rate, n, alone)
    pi, beyond, ratio = _chain(n, step, rate, mix.output, peaked)
    stable = ratio < 1
    total = pi.sum(axis=1) + beyond
    # What runs at once: those that wait are not among them.
    seen = pi * n
    seen[:, -1] += beyond * room
    share = seen / np.maximum(seen.sum(axis=1), 1e-300)[:, None]
    tpot = (share * step).sum(axis=1)
    decode = ((pi * alone).sum(axis=1) + beyond * alone[:, -1]) / total
    _, outputs, shares = mix.columns()
    mean = steps.prefill @ shares
    square = steps.prefill**2 @ shares
    stretch = 1 + decode / steps.full
    # The step that reads a prompt also carries the sequences that run.
    beside = decode - alone[:, 0]
    busy = rate * mean * stretch
    stable = stable & (busy < 1) & (steps.room >= 1)
    busy = np.minimum(busy, 1 - 1e-9)
    varied = np.maximum(square / mean**2 - 1, 0.0)
    prefill_rate = (1 - busy) * 2 / (stretch * mean * (burst + varied))
    held_up = np.clip((pi[:, -1] / _weights(n)[:, -1] + beyond) / total, 0.0, 1.0)
    drained = room / (mix.output * step[:, -1])
    uneven = max(float(shares @ outputs**2) / mix.output**2 - 1, 0.0)  # of the answers
    room_rate = np.maximum(drained - rate, 1e-9) * 2 / (burst + uneven)
    own = steps.inflow * np.sqrt(rate * tpot * square * peaked)
    return State(
        rate=rate, stable=stable, running=seen.sum(axis=1) / total, tpot=tpot,
        step_quantiles=_quantiles(share, step, tpot), spread=own[:, None] / np.sqrt(outputs)[None],
        first=(steps.start + steps.turn * decode + beside)[:, None] + steps.prefill,
        held_up=held_up, room_rate=room_rate, busy=busy, prefill_rate=prefill_rate,
        wait=held_up / room_rate + busy / prefill_rate,
    )  # fmt: skip


def within_first(state: State, seconds: float | Column) -> Column:
    """Layout × size: the share of requests whose first token is there in time. Seconds are the same
    for all layouts, or one for each; so they are below."""
    seconds = _by_layout(seconds)
    return _settled(state, 1 - _waits(state, seconds - state.first))


def within_token(state: State, seconds: float | Column) -> Column:
    """Layout × size: … whose mean time per further token is at most that."""
    import numpy as np

    levels = np.array(_TAIL)
    # Requests differ here by their answers alone.
    _, different, same = np.unique(state.spread[0], return_index=True, return_inverse=True)
    shares = [_share_below(_tokens(state, int(size)), levels, seconds) for size in different]
    found = np.stack(shares, axis=1)[:, same]
    return _settled(state, found)


def within_whole(state: State, outputs: Column, seconds: float | Column) -> Column:
    """Layout × size: … that are over in time, from arrival to the last token."""
    import numpy as np

    seconds = _by_layout(seconds)

    found = np.zeros(state.spread.shape)
    middles = [(a + b) / 2 for a, b in itertools.pairwise(_TAIL)]
    bounds = [0.0, *middles, 1.0]
    parts = np.diff(np.array(bounds))
    for size in range(len(outputs)):
        values = _tokens(state, size) * max(float(outputs[size]) - 1, 0.0)
        left = seconds - state.first[:, size][:, None] - values
        found[:, size] = ((1 - _waits(state, left)) * parts).sum(axis=1)
    return _settled(state, found)


def percentile(of: Callable[[float], Column], shares: Column, level: float) -> float:
    """Of one layout: the seconds within which that share of the requests is. `of` is one of the
    above, given seconds; infinite where the queue only grows."""
    low, high = 0.0, _LONGEST_S
    if float(of(high)[0] @ shares) < level:
        return inf
    for _ in range(_HALVINGS):
        near = low > high / 4
        middle = (low + high) / 2 if near else (max(low, 1e-6) * high) ** 0.5
        if float(of(middle)[0] @ shares) >= level:
            high = middle
        else:
            low = middle
    return high


def _settled(state: State, share: Column) -> Column:
    """Nobody is served in time where the queue only grows."""
    import numpy as np

    found: Column = np.where(state.stable[:, None], np.clip(share, 0.0, 1.0), 0.0)
    return found


def _grid(most: float) -> Column:
    import numpy as np

    found = [float(n) for n in range(_SINGLE + 1)]
    while found[-1] < most:
        found.append(found[-1] * _GROWTH)
    return np.array(found)


def _among_prefills(steps: Steps, mix: Mix, rate: Column, n: Column, alone: Column) -> Column:
    """A step of n sequences, stretched by the share of the time that prefills take. They come as
    whole prompts, as many tokens at once as a step takes."""
    import numpy as np

    fresh = 1 - mix.cached
    lump = np.minimum(np.maximum(mix.prompt_of_a_token * fresh, 1.0), steps.chunk)[:, None]
    each = (steps.seconds(n, lump) - alone) / lump * steps.inflow[:, None]
    taken = rate[:, None] * mix.input * fresh * each
    slowest = steps.seconds(n, np.maximum(steps.chunk[:, None] - n, 1.0))
    stretched = alone / np.maximum(1 - taken, 1e-9)
    found: Column = np.minimum(stretched, np.maximum(slowest, alone))
    return found


def _weights(n: Column) -> Column:
    """How many states each entry of the grid stands for."""
    import numpy as np

    gaps = np.diff(n, axis=1)
    found = np.ones(n.shape)
    found[:, 1:-1] = (gaps[:, :-1] + gaps[:, 1:]) / 2
    found[:, -1] = gaps[:, -1] / 2 + 0.5
    return found


def _chain(
    n: Column, step: Column, rate: Column, output: float, peaked: float
) -> tuple[Column, Column, Column]:
    """The mass of each entry, that of the states beyond the last, and the ratio between those."""
    import numpy as np

    rise = np.log(np.maximum(rate, 1e-30)[:, None] * output * step[:, 1:] / n[:, 1:])
    gap = np.diff(n, axis=1)
    up = np.zeros(n.shape)
    up[:, 1] = rise[:, 0] * gap[:, 0]
    before, after, wide = rise[:, :-1], rise[:, 1:], gap[:, 1:]
    # The sum over the states between two entries, of which the lower is counted already.
    strided = (after * (wide + 1) + before * (wide - 1)) / 2
    up[:, 2:] = np.where(wide >= 1, strided, wide * after)
    height = np.cumsum(up / peaked, axis=1)
    density = np.exp(height - height.max(axis=1)[:, None])
    ratio = np.exp(np.minimum(rise[:, -1] / peaked, 50.0))
    beyond = density[:, -1] * ratio / np.maximum(1 - ratio, 1e-12)
    return density * _weights(n), beyond, ratio


def _quantiles(share: Column, step: Column, mean: Column) -> Column:
    """Of the step over requests, each of which averages over its stay."""
    import numpy as np

    below = np.cumsum(share, axis=1)
    found = np.empty((len(mean), len(_TAIL)))
    rows = np.arange(len(mean))
    for number, level in enumerate(_TAIL):
        at = np.minimum((below < level).sum(axis=1), step.shape[1] - 1)
        low = np.maximum(at - 1, 0)
        first, last = below[rows, low], below[rows, at]
        part = np.clip((level - first) / np.maximum(last - first, 1e-300), 0.0, 1.0)
        part = np.where(at == 0, 1.0, part)
        found[:, number] = step[rows, low] + part * (step[rows, at] - step[rows, low])
    return _AVERAGED * found + (1 - _AVERAGED) * mean[:, None]


def _tokens(state: State, size: int) -> Column:
    """Layout × _TAIL: time per token of requests of a size. Below the middle, chance prefills are
    left out: fewer of them than usual make nobody late."""
    import numpy as np

    found: Column = state.step_quantiles + state.spread[:, size][:, None] * np.array(_NORMAL)
    return found


def _by_layout(seconds: float | Column) -> Column:
    import numpy as np

    return np.reshape(seconds, (-1, 1))


def _share_below(values: Column, levels: Column, limit: float | Column) -> Column:
    """By row, the level at which increasing values cross a limit."""
    import numpy as np

    at = (values <= _by_layout(limit)).sum(axis=1)
    rows = np.arange(len(values))
    low, high = np.maximum(at - 1, 0), np.minimum(at, len(levels) - 1)
    first, last = values[rows, low], values[rows, high]
    part = np.clip((limit - first) / np.maximum(last - first, 1e-300), 0.0, 1.0)
    found = levels[low] + part * (levels[high] - levels[low])
    found = np.where(at == len(levels), 1.0, found)
    result: Column = np.where(at == 0, 0.0, found)
    return result


def _waits(state: State, seconds: Column) -> Column:
    """The chance to wait longer than that: for room, for others' prompts, one after the other."""
    import numpy as np

    after = np.maximum(seconds, 0.0)
    p, q = state.held_up[:, None], state.busy[:, None]
    a, b = state.room_rate[:, None], state.prefill_rate[:, None]
    a = np.where(np.abs(a - b) < 1e-4 * b, a * (1 + 1e-3), a)
    slow, quick = np.exp(-a * after), np.exp(-b * after)
    both = (b * slow - a * quick) / (b - a)
    found = p * (1 - q) * slow + (1 - p) * q * quick + p * q * both
    result: Column = np.where(seconds < 0, 1.0, np.clip(found, 0.0, 1.0))
    return result
