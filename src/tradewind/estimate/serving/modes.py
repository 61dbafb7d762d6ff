"""What a client sees of an engine under load: throughput, time per token, time to the first. Pure.

static    one batch from start to end; what does not fit beside the weights waits its turn
offline   everything queued at once: the batch is what cache, scheduler and chunk allow
closed    so many clients, each with one request; more than fit wait
server    an offered rate, or the highest that keeps a latency target
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tradewind.estimate.serving import memory, passes
from tradewind.estimate.serving.cases import Cases

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

    Terms = Mapping[str, Column]

_SHARP = 4.0  # how sharply one limit takes over from another
_HARD = 24.0  # the same where what is above the limit waits, and is counted
_RESERVED = 0.6  # of the output's positions that a running sequence holds on average, by paging
_ROUNDS = 4  # of the fixed points below: throughput and batch depend on each other
_LEAST = 0.5  # sequences: one that does not fit is taken as half, and `fits` says so
_STAGES = 0.8  # power of pipeline stages that throughput gains


class Seen(NamedTuple):
    """Of all replicas; seconds."""

    tokens_per_s: Column  # output
    tpot: Column
    ttft: Column
    running: Column  # sequences at once on a replica


def predict(cases: Cases, terms: Terms) -> Seen:
    import numpy as np

    found = Seen(*(np.empty(len(cases)) for _ in Seen._fields))
    for mode, answer in {
        "static": static,
        "offline": offline,
        "closed": closed,
        "server": server,
    }.items():
        mask = cases.mode == mode
        if not mask.any():
            continue
        every = bool(mask.all())
        part = answer(
            cases if every else cases.take(mask),
            terms if every else {name: column[mask] for name, column in terms.items()},
        )
        for column, values in zip(found, part, strict=True):
            column[mask] = values
    return found


def least(*limits: Column, sharp: float = _SHARP) -> Column:
    """Nearly the least of them, and never more."""
    import numpy as np

    stacked = np.stack(np.broadcast_arrays(*limits))
    low = stacked.min(axis=0)
    found: Column = low * ((low / stacked) ** sharp).sum(axis=0) ** (-1 / sharp)
    return found


def capacity(cases: Cases, terms: Terms) -> Column:
    """Sequences of a replica that the cache has room for."""
    import numpy as np

    room = memory.held(cases, terms["usable"])
    length = cases.input + _RESERVED * cases.output
    found: Column = np.maximum(memory.sequences(cases, room, length), _LEAST)
    return found


def _middle(cases: Cases) -> Column:
    """Positions that a decoding sequence looks back over, on average."""
    found: Column = cases.input + cases.output / 2
    return found


def _decode(cases: Cases, terms: Terms, batch: Column, inflow: Column | float) -> Column:
    """Seconds for each token of a sequence; guesses give several a step."""
    import numpy as np

    given = passes.accepted(cases) if cases.guesses.any() else 1.0
    step = passes.decode_step(cases, terms, batch, _middle(cases), inflow * given) / given
    found: Column = np.where(cases.speculative > 0, step / terms["guess"], step)
    return found


def static(cases: Cases, terms: Terms) -> Seen:
    import numpy as np

    asked = np.maximum(cases.batch, 1) / cases.replicas
    fit = capacity(cases, terms)
    batch = least(asked, fit)
    turns = asked / batch
    first = passes.prefill(cases, terms, batch, cases.group)
    token = _decode(cases, terms, batch, 0.0)
    whole = terms["start"] + turns * (first + np.maximum(cases.output - 1, 0) * token)
    made = asked * np.maximum(cases.output, 1)
    decoding = asked / (turns * token)
    speed = np.where(cases.decode_only > 0, decoding, made / whole)
    return Seen(speed * cases.replicas, token, terms["start"] + first, batch)


def _most(cases: Cases, terms: Terms) -> Column:
    """Sequences at once where nobody waits for anybody: cache, scheduler, tokens of a step."""
    import numpy as np

    said = np.where(cases.batch > 0, cases.batch / cases.replicas, terms["most"])
    chunk = terms["chunk"] / (1 + passes.fresh(cases) / np.maximum(cases.output, 1))
    return least(capacity(cases, terms), said, np.maximum(chunk, _LEAST))


def _full(cases: Cases, terms: Terms) -> tuple[Column, Column]:
    """The batch and the seconds of a step that is as full as can be."""
    import numpy as np

    batch = _most(cases, terms)
    inflow = batch * passes.fresh(cases) / np.maximum(cases.output, 1) * terms["prefill"]
    return batch, _decode(cases, terms, batch, inflow)


def offline(cases: Cases, terms: Terms) -> Seen:
    batch, token = _full(cases, terms)
    speed = batch / token * cases.replicas * cases.stages**_STAGES
    # The first are answered at once, the last of a batch when all of it is read.
    first = terms["start"] + passes.prefill(cases, terms, batch, cases.group) / 2
    return Seen(speed, token, first, batch)


def closed(cases: Cases, terms: Terms) -> Seen:
    """By Little's law: requests in the house are their throughput times their stay."""
    import numpy as np

    clients = np.maximum(cases.concurrency / cases.replicas, 1e-3)
    apart = cases.prefill_group > 0
    group = np.where(apart, cases.prefill_group, cases.group)
    output = np.maximum(cases.output, 1)
    alone = passes.prefill(cases, terms, np.ones(len(cases)), group)
    fit = least(capacity(cases, terms), terms["most"], sharp=_HARD)
    batch = least(clients, fit, sharp=_HARD)
    servers = np.where(apart, np.maximum(cases.prefill_workers / cases.replicas, 1e-3), 1.0)
    token = wait = alone
    # A run begins with a burst, in the mean: half of its prompts are read before one of them.
    at_once = np.maximum(least(clients, fit, sharp=_HARD) / servers - 1, 0.0)
    begun = passes.prefill(cases, terms, at_once, group) / 2
    begun = np.where(cases.mean > 0, terms["burst"] * begun * np.minimum(at_once, 1.0), 0.0)
    for _ in range(_ROUNDS):
        inflow = np.where(apart, 0.0, batch * passes.fresh(cases) / output * terms["inflow"])
        token = _decode(cases, terms, batch, inflow)
        stay = output * token
        # The share of the time in which a prefill is under way, and whom a newcomer finds there.
        busy = batch * alone / servers / stay
        load = np.minimum(busy, 0.95)
        others = np.maximum(batch / servers - 1, 0.0)
        wait = terms["clump"] * others ** terms["crowd"] + terms["queue"] * load / (1 - load)
        wait = alone * wait / np.where(apart, np.maximum(servers, 1), 1.0)
        first = terms["start"] + alone + terms["turn"] * token + wait + begun
        through = clients / (first + stay)
        # Workers that only prefill bound the rate; then requests wait before them.
        most = np.where(apart, servers / alone, fit / stay)
        through = least(through, most, sharp=_HARD)
        batch = np.minimum(through * stay, clients)
    queue = np.maximum(clients / through - (first + stay), 0.0)
    return Seen(through * output * cases.replicas, token, first + queue, batch)


def server(cases: Cases, terms: Terms) -> Seen:
    import numpy as np

    full, slowest = _full(cases, terms)
    output = np.maximum(cases.output, 1)
    most = full / slowest / output
    asked = np.where(cases.rate > 0, cases.rate / cases.replicas, most * terms["offered"])
    through = np.where(cases.rate > 0, least(asked, most), asked)
    batch, token = full, slowest
    for _ in range(_ROUNDS):
        batch = least(np.maximum(through * output * token, 1e-3), full)
        token = _decode(cases, terms, batch, batch * passes.fresh(cases) / output * terms["inflow"])
    alone = passes.prefill(cases, terms, np.ones(len(cases)), cases.group)
    load = np.minimum(through / most, 0.97)
    first = terms["start"] + alone * (1 + load / (2 * (1 - load))) + terms["turn"] * token
    return Seen(through * output * cases.replicas, token, first, batch)
