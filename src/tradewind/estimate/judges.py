"""Blocks of measurements to leave out: rows as strange to the rest as what will come.

    generations   a source on one generation of accelerators. A large one that is nearly all there
                  is of its stack is halved by the size of its models: without all of it the
                  question would be another stack.
    releases      software of the next months, by what was measured before it, in order of time
    networks      what crosses one kind of network between machines; rows within one machine stay

The first is a judge of what fits, too: outcomes have no dates, and no network. Pure. A row may be
in a block of each judge, or in none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tradewind.estimate.measurements import Measurements

if TYPE_CHECKING:
    from tradewind.estimate.cases import Cases, Flags

LARGE = 40  # rows of a source on a generation
# Years that software is judged from, as far apart as there were rows to tell.
RELEASES = (2024.0, 2024.5, 2024.8, 2025.0, 2025.2, 2025.6, 2026.0, 2026.2, 2026.4, 2026.6)


@dataclass(frozen=True, slots=True)
class Block:
    out: Flags  # the rows that are judged
    rest: Flags  # those that the constants are fitted to


class Rows(Protocol):
    """What was measured of speed, or came of trying."""

    @property
    def cases(self) -> Cases: ...
    @property
    def sources(self) -> Sequence[str]: ...
    @property
    def models(self) -> Sequence[str]: ...


def generations(measured: Rows) -> list[Block]:
    import numpy as np

    cases, source, model = measured.cases, np.array(measured.sources), np.array(measured.models)
    found = []
    for name, generation in sorted(set(zip(measured.sources, cases.generation, strict=True))):
        mine = (source == name) & (cases.generation == generation)
        alike = np.isin(cases.stack, cases.stack[mine]) & (cases.generation == generation)
        if mine.sum() < LARGE or (alike & ~mine).sum() >= mine.sum() / 2:
            found.append(Block(mine, ~mine))
            continue
        size = {m: (cases.layers * cases.d_model**2)[model == m].max() for m in set(model[mine])}
        order = sorted(size, key=lambda m: (size[m], m))
        for half in (order[: len(order) // 2], order[len(order) // 2 :]):
            out = mine & np.isin(model, half)
            if out.any():
                found.append(Block(out, ~out))
    return found


def releases(measured: Measurements) -> list[Block]:
    """Only of stacks that had been measured by then."""
    import numpy as np

    cases, found = measured.cases, []
    for start, end in zip(RELEASES, (*RELEASES[1:], np.inf), strict=True):
        before = cases.year < start
        out = (cases.year >= start) & (cases.year < end) & np.isin(cases.stack, cases.stack[before])
        if out.any():
            found.append(Block(out, before))
    return found


def networks(measured: Measurements) -> list[Block]:
    import numpy as np

    cases, network = measured.cases, np.array(measured.networks)
    far = cases.devices > cases.domain
    masks = [far & (network == name) for name in sorted(set(network[far]))]
    return [Block(out, ~out) for out in masks]


JUDGES: dict[str, Callable[[Measurements], list[Block]]] = {
    "generations": generations,
    "releases": releases,
    "networks": networks,
}
