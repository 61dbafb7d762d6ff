"""The ways in which a question can be laid out: what it leaves open, spelled out. Pure.

Every degree of tensor, pipeline, context and expert parallelism that divides the model and the
accelerators, sharding, micro-batches and recompute; what the question decides is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.estimate import hardware
from tradewind.estimate.question import RECOMPUTES, SHARDINGS, Question, divisors, tensor_degrees
from tradewind.model.shape import Shape

if TYPE_CHECKING:
    from tradewind.estimate.cases import Cases, Column

_SIMPLER = 0.97
_DEGREES = ("dp", "tp", "pp", "vp", "cp", "ep", "shard", "micro_batch", "accumulation")
_degrees = attrgetter(*_DEGREES)
_LONG = 16_384  # tokens from which splitting a sequence is tried
_MOST_TOKENS = 2**18  # in a micro-batch that is tried; a quarter where only few are
_MOST_SAMPLES = 2**12
_MOST_TENSOR = 64
_MOST_SPLIT = 2**14  # tokens in a micro-batch of a model that is split, where only few are tried


@dataclass(frozen=True, slots=True)
class Layout:
    dp: int
    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    micro_batch: int
    accumulation: int
    sharding: str
    recompute: str
    shard: int  # devices over which the state is sharded

    @property
    def words(self) -> str:
        """`dp 16, tp 2, zero3; recompute none`: what is not split is left out."""
        degrees = [
            f"{name} {degree}"
            for name in ("dp", "tp", "pp", "vp", "cp", "ep")
            if (degree := getattr(self, name)) > 1 or name == "dp"
        ]
        if self.sharding != "none":
            groups = f" in groups of {self.shard}" if self.shard < self.dp else ""
            degrees.append(f"{self.sharding}{groups}")
        return f"{', '.join(degrees)}; recompute {self.recompute}"


def columns_of(ways: Sequence[Layout]) -> dict[str, Any]:
    """Layouts as the columns that the formulas take."""
    import numpy as np

    rows = np.array([_degrees(way) for way in ways], dtype=float)
    found = dict(zip(_DEGREES, rows.T, strict=True))
    found["zero"] = np.array([SHARDINGS[way.sharding] for way in ways], dtype=float)
    found["recompute"] = np.array([RECOMPUTES[way.recompute] for way in ways], dtype=float)
    return found


def preference(cases: Cases) -> Column:
    """What a layout's speed counts for in the choice: splitting the model must be worth its
    trouble, three in a hundred for each doubling."""
    import numpy as np

    found: Column = _SIMPLER ** np.log2(cases.tp * cases.pp * cases.cp)
    return found


def layouts(q: Question, coarse: float = 1.2) -> list[Layout]:
    """Raises InvalidValue, with what is legal, where there is none.

    Degrees and micro-batches that are tried lie a factor `coarse` apart. Those that differ in
    recompute alone come after one another, the least first.
    """
    found: list[Layout] = []
    units: set[int] = set()  # of what the global batch would have to be a multiple
    recomputes = [q.recompute] if q.recompute else list(RECOMPUTES)
    for tp, pp, cp in _splits(q, coarse):
        dp = q.devices // (tp * pp * cp)
        units.add(dp * (q.micro_batch or 1))
        if q.batch % dp:
            continue
        each = q.batch // dp
        micros = _micro_batches(q, each, coarse)
        if coarse >= 2 and dp < q.devices and not q.micro_batch:
            micros = [n for n in micros if n * min(q.length, 2048) <= _MOST_SPLIT]
        for micro, ep, (sharding, shard), recompute in product(
            micros, _expert_degrees(q, dp), _shardings(q, dp, tp, pp, cp, coarse), recomputes
        ):
            found.append(
                Layout(
                    dp, tp, pp, q.vp, cp, ep, micro, each // micro, sharding, recompute, shard
                )
            )  # fmt: skip
    if not found:
        raise _none(q, units)
    return found


def _splits(q: Question, coarse: float) -> Iterator[tuple[int, int, int]]:
    """Degrees (tp, pp, cp) that divide the devices."""
    shape = q.model
    if not isinstance(shape, Shape):
        yield 1, 1, 1
        return
    layers = shape.layers + shape.decoder_layers
    most = min(hardware.domain(q.accelerator, q.per_node), _MOST_TENSOR)
    tps = [q.tp] if q.tp else [n for n in tensor_degrees(shape) if n <= most]
    pps = [q.pp] if q.pp else divisors(gcd(layers, q.devices))
    cps = [q.cp] if q.cp else [1]
    if not q.cp and q.length >= _LONG:
        cps = [n for n in divisors(gcd(q.length, q.devices)) if q.length // n >= _LONG // 8]
    thin = (_thinned(degrees, coarse) for degrees in (tps, pps, cps))
    for tp, pp, cp in product(*thin):
        if not q.devices % (tp * pp * cp):
            yield tp, pp, cp


def _micro_batches(q: Question, each: int, coarse: float) -> list[int]:
    """Divisors of what a replica gets."""
    if q.micro_batch:
        return [q.micro_batch] if not each % q.micro_batch else []
    tokens = _MOST_TOKENS if coarse < 2 else _MOST_TOKENS // 4
    most = max(16, tokens // q.length) if isinstance(q.model, Shape) else _MOST_SAMPLES
    if q.sample == "token":
        most = _MOST_TOKENS
    return _thinned([n for n in divisors(each) if n <= most], coarse)


def _thinned(numbers: list[int], coarse: float) -> list[int]:
    """Those that are at least so many times the one before; the first is always among them."""
    found = numbers[:1]
    for n in numbers:
        if n >= coarse * found[-1]:
            found.append(n)
    return found


def _expert_degrees(q: Question, dp: int) -> list[int]:
    if q.ep:
        return [q.ep] if not dp % q.ep else []
    if not isinstance(q.model, Shape) or not q.model.experts:
        return [1]
    return divisors(gcd(q.model.experts, dp))


def _shardings(
    q: Question, dp: int, tp: int, pp: int, cp: int, coarse: float
) -> list[tuple[str, int]]:
    """Names with the number of devices over which they shard. Where few are tried, replicas that
    share nothing are not: zero1 sends as much and needs less memory."""
    inside = gcd(max(q.per_node // (tp * cp), 1), dp)
    if dp * cp == 1:  # nothing to shard over, whatever was asked
        return [("none", 1)]
    if q.sharding:
        return [(q.sharding, inside if q.sharding == "hybrid" else dp)]
    few = coarse >= 2 and q.stack != "ddp"
    found = [] if few and dp > 1 else [("none", dp)]
    if dp > 1:
        found.append(("zero1", dp))
        if pp == 1:
            found.append(("zero3", dp))
            if 1 < inside < dp:
                found.append(("hybrid", inside))
    return found


def _none(q: Question, units: set[int]) -> InvalidValue:
    if not units:
        fixed = {name: getattr(q, name) for name in ("tp", "pp", "cp") if getattr(q, name)}
        shown = " × ".join(f"{name} {degree}" for name, degree in fixed.items())
        return InvalidValue(
            f"{shown} does not divide {q.devices} accelerators",
            hint=f"devices = dp × tp × pp × cp; their product may be "
            f"{', '.join(map(str, divisors(q.devices)[:12]))}",
        )
    if all(q.batch % unit for unit in units):
        unit = min(units)
        below = q.batch // unit * unit
        legal = [n for n in (below, below + unit, below + 2 * unit) if n]
        return InvalidValue(
            f"a global batch of {q.batch} {q.sample}s cannot be divided among "
            f"{q.devices} accelerators"
            + (f" in micro-batches of {q.micro_batch}" if q.micro_batch else ""),
            hint=f"a multiple of {unit} can: {', '.join(map(str, legal))} "
            "(of dp × micro-batch, where devices = dp × tp × pp × cp)",
        )
    replicas = sorted({unit // (q.micro_batch or 1) for unit in units})
    return InvalidValue(
        f"ep is {q.ep}, which divides no data-parallel degree that is possible here",
        hint=f"dp may be {', '.join(map(str, replicas))}, and ep divides it",
    )
