"""A small discrete-event simulation of continuous batching, to hold the queueing model against.

Every step takes what runs and as many tokens of waiting prompts as fit beside it, first come first
served, and takes as long as the same tables say. What it does not share with the queueing model is
everything that model is about: who runs when, who waits, what percentiles follow.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tradewind.estimate.serving.mix import Mix
from tradewind.estimate.serving.steps import Steps


class Served(NamedTuple):
    ttft: np.ndarray
    tpot: np.ndarray
    e2e: np.ndarray
    running: float


@dataclass(slots=True)
class _Request:
    came: float
    left_in: float
    left_out: int
    outputs: int
    first: float = 0.0


def plain(steps: Steps, mix: Mix) -> Steps:
    """With nothing in it that is of a harness: a prefill is a step of its tokens."""
    inputs, _, _ = mix.columns()
    prompts = np.minimum(np.tile(inputs, (len(steps), 1)), steps.chunk[:, None])
    none = np.zeros((len(steps), 1))
    return replace(
        steps,
        inflow=np.ones(len(steps)),
        start=np.zeros(len(steps)),
        turn=np.full(len(steps), 0.5),
        prefill=steps.seconds(none, prompts),
        full=steps.seconds(none, steps.chunk[:, None])[:, 0],
    )


def gaps(rng: np.random.Generator, rate: float, count: int, burst: float) -> np.ndarray:
    """Exponential, or a hyperexponential with that squared coefficient of variation."""
    if burst <= 1:
        return rng.exponential(1 / rate, count)
    share = (1 + np.sqrt((burst - 1) / (burst + 1))) / 2
    quick = rng.random(count) < share
    means = np.where(quick, 1 / (2 * share * rate), 1 / (2 * (1 - share) * rate))
    found: np.ndarray = rng.exponential(1.0, count) * means
    return found


def simulate(
    steps: Steps, mix: Mix, rate: float, *, count: int, seed: int, burst: float = 1.0
) -> Served:
    rng = np.random.default_rng(seed)
    inputs, outputs, shares = mix.columns()
    sizes = rng.choice(len(shares), size=count, p=shares)
    arrivals = np.cumsum(gaps(rng, rate, count, burst))
    requests = deque(
        _Request(float(at), float(inputs[s]), round(outputs[s]), round(outputs[s]))
        for at, s in zip(arrivals, sizes, strict=True)
    )
    decode, prefill = _tables(steps)
    room, chunk = int(steps.room[0]), float(steps.chunk[0])
    now, area = 0.0, 0.0
    waiting: deque[_Request] = deque()
    reading: deque[_Request] = deque()
    running: list[_Request] = []
    found: list[tuple[float, float, float]] = []
    while requests or waiting or reading or running:
        if not (waiting or reading or running):
            now = max(now, requests[0].came)
        while requests and requests[0].came <= now:
            waiting.append(requests.popleft())
        while waiting and len(running) + len(reading) < room:
            reading.append(waiting.popleft())
        budget, taken, done = max(chunk - len(running), 1.0), 0.0, []
        while reading and taken < budget:
            part = min(reading[0].left_in, budget - taken)
            reading[0].left_in -= part
            taken += part
            if reading[0].left_in <= 0:
                done.append(reading.popleft())
        seconds = float(np.interp(len(running) + taken, *prefill)) + decode(len(running), taken)
        now += seconds
        area += seconds * len(running)
        for one in running:
            one.left_out -= 1
        for one in done:
            one.first = now
            one.left_out -= 1
        for one in [*running, *done]:
            if one.left_out <= 0:
                each = (now - one.first) / max(one.outputs - 1, 1)
                found.append((one.first - one.came, each, now - one.came))
        running = [one for one in [*running, *done] if one.left_out > 0]
    kept = np.array(found[len(found) // 10 :])  # without the beginning
    return Served(kept[:, 0], kept[:, 1], kept[:, 2], area / now)


def _tables(steps: Steps):  # type: ignore[no-untyped-def]
    """As scalars, for speed: the matrices by tokens, and what is linear."""
    tokens = 2.0 ** (np.arange(steps.table.shape[1]) / 2)
    sequence, token, fixed = (float(c[0]) for c in (steps.sequence, steps.token, steps.fixed))
    return lambda n, g: n * sequence + g * token + fixed, (tokens, steps.table[0])
