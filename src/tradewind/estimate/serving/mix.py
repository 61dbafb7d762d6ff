"""The sizes of requests that arrive together: prompt, answer, and how many are of that size. Pure.

A mix is what a queue is asked about. Moments that matter are means over requests (work that
arrives), and means over running sequences, where a long answer counts for as long as it takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.model.lengths import Lengths

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

_INPUT_SLICES, _OUTPUT_SLICES = (0.0, 0.3, 0.6, 0.8, 0.92, 0.98, 1.0), (0.0, 0.5, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class Mix:
    """One entry a size. Shares sum to 1."""

    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    shares: tuple[float, ...]
    cached: float = 0.0
    """Share of a prompt's tokens that a prefix cache holds already."""

    @classmethod
    def of(cls, inputs: Lengths, outputs: Lengths, cached: float = 0.0) -> Mix:
        """Prompts and answers whose lengths have nothing to do with each other."""
        sizes = [
            (first, second, share * other)
            for first, share in inputs.points(6)
            for second, other in outputs.points(4)
        ]
        return cls._made(sizes, cached)

    @classmethod
    def of_requests(cls, requests: Sequence[tuple[float, float]], cached: float = 0.0) -> Mix:
        """Of requests that were seen: slices by prompt, and within each by answer."""
        if not requests:
            raise InvalidValue("there are no requests")
        ordered = sorted(requests)
        sizes = []
        for part in _sliced(ordered, _INPUT_SLICES):
            by_answer = sorted(part, key=lambda request: request[1])
            for few in _sliced(by_answer, _OUTPUT_SLICES):
                number = len(few)
                sizes.append(
                    (
                        max(sum(i for i, _ in few) / number, 1.0),
                        max(sum(o for _, o in few) / number, 1.0),
                        number / len(requests),
                    )
                )
        return cls._made(sizes, cached)

    @classmethod
    def _made(cls, sizes: Iterable[tuple[float, float, float]], cached: float) -> Mix:
        inputs, outputs, shares = zip(*sizes, strict=True)
        if not 0 <= cached < 1:
            raise InvalidValue(f"{cached:.0%} of prompts cached", hint="below 100 %")
        return cls(tuple(inputs), tuple(outputs), tuple(shares), cached)

    @property
    def input(self) -> float:
        return sum(i * s for i, s in zip(self.inputs, self.shares, strict=True))

    @property
    def output(self) -> float:
        return sum(o * s for o, s in zip(self.outputs, self.shares, strict=True))

    @property
    def longest(self) -> float:
        return max(i + o for i, o in zip(self.inputs, self.outputs, strict=True))

    def running(self, of_output: float) -> float:
        """Positions of a running sequence when that share of its answer is there, on average over
        running sequences: an answer counts for as many steps as it has tokens."""
        sizes = zip(self.inputs, self.outputs, self.shares, strict=True)
        return sum(s * o * (i + of_output * o) for i, o, s in sizes) / self.output

    @property
    def prompt_of_a_token(self) -> float:
        """The length of the prompt that a prompt's token belongs to, on average over tokens."""
        squares = sum(s * i * i for i, s in zip(self.inputs, self.shares, strict=True))
        return squares / self.input

    def split(self, longest: float) -> tuple[Mix, Mix, float] | None:
        """Those whose prompt is at most so long, the others, and the share of the first."""
        keys = [i <= longest for i in self.inputs]
        share = sum(s for s, key in zip(self.shares, keys, strict=True) if key)
        if not 0 < share < 1 - 1e-9:
            return None
        return self._part(keys, True), self._part(keys, False), share

    def _part(self, keys: Sequence[bool], wanted: bool) -> Mix:
        at = [n for n, key in enumerate(keys) if key is wanted]
        total = sum(self.shares[n] for n in at)
        return Mix(
            tuple(self.inputs[n] for n in at), tuple(self.outputs[n] for n in at),
            tuple(self.shares[n] / total for n in at), self.cached,
        )  # fmt: skip

    def columns(self) -> tuple[Column, Column, Column]:
        import numpy as np

        return np.array(self.inputs), np.array(self.outputs), np.array(self.shares)


def _sliced(
    ordered: Sequence[tuple[float, float]], bounds: Sequence[float]
) -> Iterable[Sequence[tuple[float, float]]]:
    edges = [round(share * len(ordered)) for share in bounds]
    for low, high in itertools.pairwise(edges):
        if high > low:
            yield ordered[low:high]
